"""R10 over the pages: each form that changes something is sent twice with its request id. It is done once, and leads alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import psycopg
import pytest
from flask import Flask
from werkzeug.test import TestResponse

from engine.commands.api_keys import add_api_key
from engine.commands.outcome import SYSTEM, ApiKeyAdded
from tests.conftest import Clock
from tests.web.conftest import Browser
from tests.web.operations import Client, deployed, failed_external_task, model, one, started
from tests.web.rows import Rows
from tests.web.test_the_same_request_twice import (
    CHANGES,
    SHOP,
    a_delivery,
    a_destination,
    a_failed_job,
    a_key_to_revoke,
    a_lease,
    a_pause_to_remove,
    a_person,
    a_task,
    a_version,
    an_instance,
    everything,
)

Conn = psycopg.Connection[Any]

# What needs no request id, and why.
WITHOUT = {
    "auth.signed_in": "whoever signs in twice is signed in",
    "auth.sign_out": "whoever signs out twice is signed out",
    "auth.choose_theme": "a setting, not a deed",
    "people.password": "the same password set twice is the same password",
}
# `/engine-rest` has no forms, and Camunda 7's protocol no request id: the lock's owner or the state of a thing recognise a repeat there.
# Nothing does for a start, message or signal: sent twice, it is done twice, as in Camunda (docs/engine-rest.md names `/api/v1` for it).
NO_FORMS = ("api.", "engine_rest.")


@dataclass(frozen=True)
class Press:
    path: str
    form: dict[str, Any] = field(default_factory=dict)
    by: str = "olga"
    file: str = ""


def on_a_task(change: str, **form: Any) -> Callable[[Conn], Press]:
    def make(conn: Conn) -> Press:
        sent = a_task(change)(conn)
        return Press(sent.path, form, by=sent.by)

    return make


def the_next_task(conn: Conn) -> Press:
    deployed(conn, "a_task_a_delivery_a_task")
    for _ in range(2):
        started(conn, "relay")
    return Press("/inbox/next", by="ada")


def a_start(conn: Conn) -> Press:
    deployed(conn, "an_external_task")
    return Press("/start/shipping", {"business_key": "ORD-1"}, by="ada")


def on_a_delivery(change: str) -> Callable[[Conn], Press]:
    def make(conn: Conn) -> Press:
        deployed(conn, "an_external_task")
        here = started(conn, "shipping")
        process = one(conn, "SELECT definition_id FROM process_instance WHERE id = %s", here)
        made = Rows(conn)
        delivery = made.delivery(process, here, status="failed", attempts=3)
        made.incident("Mailer: refused", definition=process, instance=here, delivery_id=delivery)
        return Press(f"/operations/outbox/{delivery}/{change}", {"reason": "sent by hand"})

    return make


def a_deployment(conn: Conn) -> Press:
    return Press("/operations/deploy", {"name": "first"}, file="an_external_task")


def a_failed_item(conn: Conn) -> Press:
    item = a_failed_job(conn).path.split("/")[2]
    return Press(f"/operations/failed/job/{item}/retry", {"attempts": "2"})


def failed_items(conn: Conn) -> Press:
    deployed(conn, "an_external_task")
    items = [f"external_task:{failed_external_task(conn, business_key=key)}" for key in ("ORD-1", "ORD-2")]
    return Press("/operations/failed/retry", {"attempts": "2", "item": items})


def a_lease_to_end(conn: Conn) -> Press:
    item = a_lease("release")(conn).path.split("/")[2]
    return Press(f"/operations/leases/external_task/{item}/release", {"reason": "it hangs"})


def on_a_version(change: str, **form: Any) -> Callable[[Conn], Press]:
    def make(conn: Conn) -> Press:
        a_version(change)(conn)
        return Press(f"/operations/processes/shipping/1/{change}", {"reason": "as agreed"} | form)

    return make


def on_an_instance(change: str) -> Callable[[Conn], Press]:
    return lambda conn: Press("/operations" + an_instance(change)(conn).path.replace("process-instances", "instances"), {"reason": "so"})


def a_pause(conn: Conn) -> Press:
    return Press("/operations/pauses/add", {"kind": "external_task", "topic": "ship", "reason": "the carrier is down"})


def a_pause_less(conn: Conn) -> Press:
    return Press("/operations/pauses/remove", a_pause_to_remove(conn).body)


def a_delivery_to_replay(conn: Conn) -> Press:
    item = a_delivery("replay")(conn).path.split("/")[2]
    return Press(f"/operations/outbox/{item}/replay", {"reason": "lost there"})


def on_a_destination(change: str, **form: Any) -> Callable[[Conn], Press]:
    def make(conn: Conn) -> Press:
        a_destination(change)(conn)
        return Press(f"/operations/outbox/destinations/shop/{change}", form)

    return make


def on_a_person(change: str, **form: Any) -> Callable[[Conn], Press]:
    def make(conn: Conn) -> Press:
        sent = a_person(change)(conn)
        return Press(f"/administration{sent.path}" if change else "/administration/people/add", form, by=sent.by)

    return make


def a_key_of_another(conn: Conn) -> Press:
    a_person("keys")(conn)
    made = add_api_key(conn, "dora", actor=SYSTEM, name="leaked")
    assert isinstance(made, ApiKeyAdded), made
    return Press(f"/administration/people/dora/keys/{made.key_id}/revoke", by="root")


NEW_KEY = {"name": "nightly import", "days": "30", "scope": "read"}

EXAMPLES: dict[str, Callable[[Conn], Press]] = {
    "inbox.take": the_next_task,
    "tasks.claim": on_a_task("claim"),
    "tasks.unclaim": on_a_task("unclaim"),
    "tasks.assign": on_a_task("assign", assignee="bo"),
    "tasks.complete": on_a_task("complete", approved="true"),
    "start.begin": a_start,
    "operations.retry_one_delivery": on_a_delivery("retry"),
    "operations.skip_one_delivery": on_a_delivery("skip"),
    "operations.replay_one_delivery": a_delivery_to_replay,
    "operations.register_destination": lambda conn: Press("/operations/outbox/destinations/new", {"name": "shop", **SHOP}),
    "operations.change_one_destination": on_a_destination("change", **SHOP, redirects="2"),
    "operations.rotate_one_secret": on_a_destination("rotate", hours="2"),
    "operations.test_one_destination": on_a_destination("test", to="/ping"),
    "operations.remove_one_destination": on_a_destination("remove"),
    "operations.deploy_files": a_deployment,
    "operations.retry": a_failed_item,
    "operations.retry_many": failed_items,
    "operations.delete_process": on_a_version("delete"),
    "operations.cancel": on_an_instance("cancel"),
    "operations.release": a_lease_to_end,
    "operations.pause": a_pause,
    "operations.unpause": a_pause_less,
    "operations.suspend": on_an_instance("suspend"),
    "operations.resume": on_an_instance("resume"),
    "operations.suspend_process": on_a_version("suspend", with_cases="1"),
    "operations.resume_process": on_a_version("resume"),
    "account.make_key": lambda conn: Press("/account/keys", NEW_KEY),
    "account.revoke_key": lambda conn: Press(f"/account{a_key_to_revoke(conn).path}"),
    "people.add": on_a_person("", username="dora", display_name="Dora Maar", role="user", groups="clerks", kind="person"),
    "people.change": on_a_person("change", display_name="Dora Maar", role="user", groups="drivers"),
    "people.disable": on_a_person("disable"),
    "people.enable": on_a_person("enable"),
    "people.make_key": on_a_person("keys", **NEW_KEY),
    "people.revoke_key": a_key_of_another,
}


def test_R10_every_form_that_changes_something_has_an_example_here_or_a_reason_to_have_none(app: Flask) -> None:
    changing = {
        rule.endpoint for rule in app.url_map.iter_rules() if not rule.endpoint.startswith(NO_FORMS) and CHANGES & (rule.methods or set())
    }
    assert changing == set(EXAMPLES) | set(WITHOUT)


# A list of what was retried and what not; a secret that is shown once, to both presses; a key that is shown once, to the first.
SHOW_WHAT_CAME_OF_IT = {
    "operations.retry_many": 200,
    "operations.register_destination": 200,
    "operations.rotate_one_secret": 200,
    "account.make_key": 201,
    "people.make_key": 201,
}


@pytest.mark.parametrize("endpoint", sorted(EXAMPLES))
def test_R10_a_form_that_is_sent_twice_leads_alike_and_is_done_once(
    endpoint: str, client_for: Client, committed_db: Conn, clock: Clock
) -> None:
    press = EXAMPLES[endpoint](committed_db)
    browser = client_for(press.by)
    before = everything(committed_db)
    first = send(browser, press)
    assert first.status_code == SHOW_WHAT_CAME_OF_IT.get(endpoint, 303), first.text
    done = everything(committed_db)
    assert done != before, "the example changes nothing, and so proves nothing"
    clock.advance(seconds=7)  # what is done again would have another time
    again = send(browser, press)
    assert (again.status_code, again.headers.get("Location")) == (first.status_code, first.headers.get("Location"))
    assert everything(committed_db) == done


def send(browser: Browser, press: Press) -> TestResponse:
    files = {"file": [(BytesIO(model(press.file)), f"{press.file}.bpmn")]} if press.file else {}
    return browser.post(press.path, {"request_id": "press-1", **press.form, **files})
