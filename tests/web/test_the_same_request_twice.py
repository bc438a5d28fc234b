"""R10 over the route table: each change is sent twice under one key. The second time has the answer of the first, and no effect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import psycopg
import pytest
from flask import Flask

from engine.commands.api_keys import add_api_key
from engine.commands.deliveries import skip_delivery
from engine.commands.deploy import deploy
from engine.commands.destinations import Wanted, add_destination
from engine.commands.event_feeds import add_feed
from engine.commands.external_tasks import acquire_external_tasks
from engine.commands.outcome import SYSTEM, ApiKeyAdded, Deployed, PersonSaved, Rejected
from engine.commands.pause import pause_work
from engine.commands.people import add_person, disable_person
from engine.commands.suspend import suspend_instance
from engine.commands.suspend_definition import suspend_definition
from engine.commands.tasks import claim
from tests.conftest import Clock
from tests.web.conftest import HASH
from tests.web.operations import ADA, OLGA, deployed, failed_external_task, model, one, started
from tests.web.rows import Rows
from tests.web.test_api_contract import program as program
from tests.web.test_api_operations import CALLER
from tests.web.test_request_ids import CHANGES, WITHOUT

Conn = psycopg.Connection[Any]

NOT_OURS = {"api_key": "says when it was last used", "web_session": "says when it was last used", "test_clock": "of the tests"}
"""Tables that a request may touch without having an effect, and why."""


@dataclass(frozen=True)
class Sent:
    path: str
    body: dict[str, Any] = field(default_factory=dict)
    by: str = "olga"
    file: str = ""


def a_deployment(conn: Conn) -> Sent:
    return Sent("/deployments", file="an_external_task")


def a_version(change: str, **body: Any) -> Callable[[Conn], Sent]:
    def make(conn: Conn) -> Sent:
        deployed(conn, "an_external_task")
        if change == "resume":
            suspend_definition(conn, one(conn, "SELECT id FROM process_definition"), actor=OLGA, reason="", with_cases=False)
        return Sent(f"/process-definitions/shipping/versions/1/{change}", body)

    return make


def a_start(conn: Conn) -> Sent:
    deployed(conn, "an_external_task")
    return Sent("/process-definitions/shipping/start", {"variables": {"boxes": 3}, "business_key": "ORD-1"})


def an_instance(change: str) -> Callable[[Conn], Sent]:
    def make(conn: Conn) -> Sent:
        deployed(conn, "an_external_task")
        here = started(conn, "shipping")
        if change == "resume":
            suspend_instance(conn, here, actor=OLGA, reason="")
        return Sent(f"/process-instances/{here}/{change}", {"reason": "as agreed"})

    return make


def a_lease(change: str, **body: Any) -> Callable[[Conn], Sent]:
    def make(conn: Conn) -> Sent:
        deployed(conn, "an_external_task")
        started(conn, "shipping")
        [task] = acquire_external_tasks(conn, actor=OLGA, worker_id="w", topics=["ship"], limit=1, lease_seconds=60)
        return Sent(f"/external-tasks/{task.id}/{change}", {"lease_number": task.lease_number} | body)

    return make


def a_failed_task(conn: Conn) -> Sent:
    deployed(conn, "an_external_task")
    return Sent(f"/external-tasks/{failed_external_task(conn)}/retry", {"attempts": 2})


def a_failed_job(conn: Conn) -> Sent:
    deployed(conn, "order-fulfilment")
    here = started(conn, "order-fulfilment", business_key="ORD-1")
    job = one(conn, "UPDATE job SET status = 'failed', attempts = max_attempts WHERE kind = 'service' RETURNING id")
    process = one(conn, "SELECT definition_id FROM process_instance WHERE id = %s", here)
    Rows(conn).incident("LedgerTimeout", definition=process, instance=here, job_id=job)
    return Sent(f"/jobs/{job}/retry", {"attempts": 2})


def failed_tasks(conn: Conn) -> Sent:
    deployed(conn, "an_external_task")
    ids = [failed_external_task(conn, business_key=key) for key in ("ORD-1", "ORD-2")]
    return Sent("/incidents/retry", {"items": [{"item_kind": "external_task", "item_id": str(id)} for id in ids], "attempts": 2})


def a_failed_token(conn: Conn) -> Sent:
    assert isinstance(deploy(conn, [("caller.bpmn", CALLER)], actor=OLGA), Deployed)
    started(conn, "caller")
    token = one(conn, "SELECT token_id FROM incident")
    deployed(conn, "an_order_calls_a_check")  # what it calls
    return Sent(f"/tokens/{token}/retry")


def a_lease_to_end(conn: Conn) -> Sent:
    task = a_lease("release")(conn).path.split("/")[2]
    return Sent(f"/leases/external_task/{task}/release", {"reason": "it hangs"})


def a_feed(change: str) -> Callable[[Conn], Sent]:
    def make(conn: Conn) -> Sent:
        add_destination(conn, "shop", Wanted("http", "https://shop.example"), actor=OLGA)
        if not change:
            return Sent("/feeds", {"name": "watch", "destination": "shop", "kinds": "instance_started"})
        add_feed(conn, "watch", "shop", actor=OLGA)
        return Sent(f"/feeds{change}")

    return make


def a_task(change: str, **body: Any) -> Callable[[Conn], Sent]:
    def make(conn: Conn) -> Sent:
        deployed(conn, "a_task_a_delivery_a_task")
        started(conn, "relay")
        task = one(conn, "SELECT id FROM user_task")
        if change in ("unclaim", "complete"):
            claim(conn, task, actor=ADA, request_id=None)
        return Sent(f"/tasks/{task}/{change}", body, by="olga" if change == "assign" else "ada")

    return make


def the_next_task(conn: Conn) -> Sent:
    deployed(conn, "a_task_a_delivery_a_task")
    for _ in range(2):
        started(conn, "relay")
    return Sent("/tasks/take-next", by="ada")


def a_pause(conn: Conn) -> Sent:
    return Sent("/pauses", {"kind": "external_task", "topic": "ship", "reason": "the carrier is down"})


def a_pause_to_remove(conn: Conn) -> Sent:
    assert not isinstance(pause_work(conn, "external_task", "ship", actor=OLGA, reason="down"), Rejected)
    return Sent("/pauses/remove", {"kind": "external_task", "topic": "ship"})


def a_message(conn: Conn) -> Sent:
    return Sent("/messages", {"name": "paid", "correlation_key": "42", "variables": {"a": 1}, "time_to_live_seconds": 60})


def a_signal(conn: Conn) -> Sent:
    return Sent("/signals", {"name": "ALARM", "variables": {"floor": 3}})


def a_delivery(change: str, **body: Any) -> Callable[[Conn], Sent]:
    def make(conn: Conn) -> Sent:
        deployed(conn, "an_external_task")
        here = started(conn, "shipping")
        process = one(conn, "SELECT definition_id FROM process_instance WHERE id = %s", here)
        made = Rows(conn)
        delivery = made.delivery(process, here, status="failed", attempts=3)
        made.incident("Mailer: refused", definition=process, instance=here, delivery_id=delivery)
        if change == "replay":
            skip_delivery(conn, delivery, actor=OLGA, reason="")
        return Sent(f"/deliveries/{delivery}/{change}", body)

    return make


SHOP = {"kind": "http", "address": "https://shop.example/hooks"}


def a_destination(change: str, **body: Any) -> Callable[[Conn], Sent]:
    def make(conn: Conn) -> Sent:
        assert not isinstance(add_destination(conn, "shop", Wanted(**SHOP), actor=OLGA), Rejected)
        return Sent(f"/destinations/shop/{change}", body)

    return make


def a_person(change: str, **body: Any) -> Callable[[Conn], Sent]:
    """By `root`, an administrator; to `dora`, a service account."""

    def make(conn: Conn) -> Sent:
        root = add_person(conn, "root", actor=SYSTEM, display_name="Root Account", role="administrator", password_hash=HASH)
        assert isinstance(root, PersonSaved), root
        if not change:
            return Sent("/people", body, by="root")
        assert isinstance(add_person(conn, "dora", actor=SYSTEM, display_name="Dora", groups=["clerks"], kind="service"), PersonSaved)
        if change == "enable":
            disable_person(conn, "dora", actor=SYSTEM)
        return Sent(f"/people/dora/{change}", body, by="root")

    return make


def a_key_to_revoke(conn: Conn) -> Sent:
    made = add_api_key(conn, "olga", actor=OLGA, name="leaked")
    assert isinstance(made, ApiKeyAdded), made
    return Sent(f"/keys/{made.key_id}/revoke")


EXAMPLES: dict[str, Callable[[Conn], Sent]] = {
    "api.create_deployment": a_deployment,
    "api.delete": a_version("delete", reason="never used"),
    "api.suspend_version": a_version("suspend", with_instances=True),
    "api.resume_version": a_version("resume"),
    "api.start": a_start,
    "api.cancel": an_instance("cancel"),
    "api.suspend": an_instance("suspend"),
    "api.resume": an_instance("resume"),
    "api.complete_external": a_lease("complete", variables={"carrier": "Kestrel"}),
    "api.fail_external": a_lease("fail", error="CarrierDown: 503"),
    "api.throw_external": a_lease("error", code="REFUSED"),
    "api.renew_external": a_lease("renew", lease_seconds=90),
    "api.release_external": a_lease("release"),
    "api.retry_external_task": a_failed_task,
    "api.retry_job": a_failed_job,
    "api.retry_many": failed_tasks,
    "api.retry_token": a_failed_token,
    "api.release_lease": a_lease_to_end,
    "api.take_next_task": the_next_task,
    "api.claim_task": a_task("claim"),
    "api.unclaim_task": a_task("unclaim"),
    "api.assign_task": a_task("assign", assignee="bo"),
    "api.complete": a_task("complete", variables={"approved": True}),
    "api.add_event_feed": a_feed(""),
    "api.remove_event_feed": a_feed("/watch/remove"),
    "api.report_external": a_lease("report", progress=0.5, lines=[{"text": "half"}]),
    "api.retry_a_delivery": a_delivery("retry", attempts=2),
    "api.skip_a_delivery": a_delivery("skip", reason="sent by hand"),
    "api.replay_a_delivery": a_delivery("replay", reason="lost there"),
    "api.register": lambda conn: Sent("/destinations", {"name": "shop", **SHOP, "retry": "PT1M,PT5M", "concurrency": 2}),
    "api.change": a_destination("change", **SHOP, redirects=2),
    "api.rotate": a_destination("rotate", overlap=60),
    "api.try_destination": a_destination("test", to="/ping"),
    "api.remove": a_destination("remove", reason="they are gone"),
    "api.pause": a_pause,
    "api.unpause": a_pause_to_remove,
    "api.publish": a_message,
    "api.broadcast": a_signal,
    "api.create_person": a_person("", username="dora", display_name="Dora Maar", groups=["clerks"], password="another good password"),
    "api.change_a_person": a_person("change", display_name="Dora Maar", groups=["drivers"]),
    "api.disable_a_person": a_person("disable"),
    "api.enable_a_person": a_person("enable"),
    "api.make_key_for": a_person("keys", name="nightly import", days=30),
    "api.make_my_key": lambda conn: Sent("/keys", {"name": "nightly import", "days": 30}),
    "api.revoke_key": a_key_to_revoke,
}

NOT_SHOWN_AGAIN = {"key": None, "repeated": True}
ANSWERS_LESS = {"api.make_key_for": NOT_SHOWN_AGAIN, "api.make_my_key": NOT_SHOWN_AGAIN}
"""A key is nowhere to be found after its first answer, so the second is the first without it."""

MOVES_AGAIN = {"api.renew_external": "a renewal counts from when it is asked for; sent again, it moves the expiry of the same lease again"}
"""Whose repeat has an effect on purpose: one that is done in place of the first, not besides it."""


def test_R10_every_changing_route_of_the_api_has_an_example_here_or_a_reason_to_have_none(app: Flask) -> None:
    changing = {
        rule.endpoint for rule in app.url_map.iter_rules() if rule.endpoint.startswith("api.") and CHANGES & (rule.methods or set())
    }
    assert changing == set(EXAMPLES) | set(WITHOUT)


@pytest.mark.parametrize("endpoint", sorted(set(EXAMPLES) - set(MOVES_AGAIN)))
def test_R10_a_change_that_is_sent_twice_is_answered_alike_and_done_once(
    endpoint: str, program: Any, committed_db: Conn, clock: Clock
) -> None:
    sent = EXAMPLES[endpoint](committed_db)
    caller = program(sent.by)
    before = everything(committed_db)
    first = send(caller, sent, key="press-1")
    assert first.status_code in (200, 201), first.text
    done = everything(committed_db)
    assert done != before, "the example changes nothing, and so proves nothing"
    clock.advance(seconds=7)  # what is done again would have another time
    again = send(caller, sent, key="press-1")
    assert (again.status_code, again.get_json()) == (first.status_code, first.get_json() | ANSWERS_LESS.get(endpoint, {}))
    assert again.headers.get("Location") == first.headers.get("Location")
    assert everything(committed_db) == done


def test_R10_a_renewal_that_is_sent_twice_moves_the_expiry_of_its_lease_and_nothing_else(
    program: Any, committed_db: Conn, clock: Clock
) -> None:
    sent = EXAMPLES["api.renew_external"](committed_db)
    caller = program(sent.by)
    first = send(caller, sent, key="press-1")
    committed_db.execute("CREATE TEMP TABLE was AS SELECT * FROM external_task")
    done = everything(committed_db)
    clock.advance(seconds=7)
    again = send(caller, sent, key="press-1")
    assert again.status_code == first.status_code == 200
    assert again.json["lease_expires_at"] > first.json["lease_expires_at"]
    committed_db.execute("UPDATE external_task t SET lease_expires_at = was.lease_expires_at FROM was WHERE was.id = t.id")
    assert everything(committed_db) == done


def send(caller: Any, sent: Sent, *, key: str) -> Any:
    if not sent.file:
        return caller.post(sent.path, sent.body, key=key)
    files = {"file": [(BytesIO(model(sent.file)), f"{sent.file}.bpmn")]}
    headers = caller.headers | {"Idempotency-Key": key}
    return caller.client.post(f"/api/v1{sent.path}", headers=headers, data=files, content_type="multipart/form-data")


def everything(conn: Conn) -> dict[str, list[str]]:
    """Every row of every table, as text."""
    tables = conn.execute(
        "SELECT c.relname FROM pg_class c"
        " WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition"
    ).fetchall()
    return {
        name: [text for (text,) in conn.execute(f'SELECT t::text FROM "{name}" t ORDER BY 1').fetchall()]
        for (name,) in tables
        if name not in NOT_OURS
    }
