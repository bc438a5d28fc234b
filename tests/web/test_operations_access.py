"""Who may into operations, how each change is guarded, and that nothing of a model or a variable becomes markup."""

from __future__ import annotations

import re
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.web.conftest import Browser
from tests.web.operations import Client, deployed, failed_external_task, one, started
from tests.web.rows import Rows

PAGES = (
    "/operations",
    "/operations/processes",
    "/operations/decisions",
    "/operations/instances",
    "/operations/jobs",
    "/operations/leases",
    "/operations/pauses",
    "/operations/failed",
    "/operations/workers",
    "/operations/outbox",
    "/operations/outbox/destinations/new",
    "/operations/messages",
    "/operations/sign-ins",
    "/operations/deploy",
)
FRAGMENTS = (
    "/operations/overview/numbers",
    "/operations/overview/charts",
    "/operations/overview/lists",
    "/operations/processes/list",
    "/operations/decisions/list",
    "/operations/instances/list",
    "/operations/jobs/list",
    "/operations/leases/list",
    "/operations/pauses/list",
    "/operations/failed/list",
    "/operations/workers/list",
    "/operations/outbox/list",
)
ITEM = uuid4()
CHANGES = (
    "/operations/deploy",
    "/operations/processes/nothing/1/delete",
    "/operations/processes/nothing/1/suspend",
    "/operations/processes/nothing/1/resume",
    "/operations/pauses/add",
    "/operations/pauses/remove",
    f"/operations/instances/{ITEM}/cancel",
    f"/operations/instances/{ITEM}/suspend",
    f"/operations/instances/{ITEM}/resume",
    f"/operations/leases/job/{ITEM}/release",
    f"/operations/failed/job/{ITEM}/retry",
    "/operations/failed/retry",
    f"/operations/outbox/{ITEM}/retry",
    f"/operations/outbox/{ITEM}/skip",
    f"/operations/outbox/{ITEM}/replay",
    "/operations/outbox/destinations/shop/change",
    "/operations/outbox/destinations/shop/rotate",
    "/operations/outbox/destinations/shop/test",
    "/operations/outbox/destinations/shop/remove",
)


def test_every_page_of_operations_is_there_and_empty_pages_say_what_would_fill_them(client_for: Client) -> None:
    olga = client_for("olga")
    for path in PAGES:
        answer = olga.get(path)
        assert answer.status_code == 200, path
        assert "<h1" in answer.text
    assert "No process is deployed" in olga.get("/operations/processes").text
    assert "No instance was started yet" in olga.get("/operations/instances").text
    assert "Nothing has failed" in olga.get("/operations/failed").text
    assert "No instance matches" in olga.get("/operations/instances?q=zebra").text
    assert "No failed item matches" in olga.get("/operations/failed?q=zebra").text
    assert "No lease matches" in olga.get("/operations/leases?q=zebra").text


def test_R13_business_users_and_guests_get_no_page_no_fragment_and_no_change(client_for: Client, browser: Browser) -> None:
    ada = client_for("ada")
    for path in PAGES + FRAGMENTS:
        assert ada.get(path).status_code == 403, path
        assert browser.get(path).status_code == 302, path
    for path in CHANGES:
        expected = 404 if "/instances/" in path else 403
        assert ada.post(path, {"request_id": "r"}).status_code == expected, path


def test_every_change_is_a_post_with_the_token_of_this_session(client_for: Client) -> None:
    olga = client_for("olga")
    for path in CHANGES:
        if path != "/operations/deploy":
            assert olga.get(path).status_code == 405, path
        assert olga.client.post(path, data={"request_id": "r"}).status_code == 400, path
        assert olga.client.post(path, data={"csrf_token": "forged", "request_id": "r"}).status_code == 400, path


def test_a_fragment_is_sent_once_and_then_only_its_tag_until_something_changes(
    client_for: Client, committed_db: psycopg.Connection
) -> None:
    deployed(committed_db, "an_external_task")
    olga = client_for("olga")
    for path in FRAGMENTS:
        first = olga.get(path)
        assert first.status_code == 200, path
        if path not in ("/operations/overview/charts",):
            assert olga.get(path, headers={"If-None-Match": first.headers["ETag"]}).status_code == 304, path
    before = olga.get("/operations/instances/list").headers["ETag"]
    started(committed_db, "shipping")
    assert olga.get("/operations/instances/list", headers={"If-None-Match": before}).status_code == 200


def test_a_fragment_equals_its_part_of_the_page(client_for: Client, committed_db: psycopg.Connection) -> None:
    deployed(committed_db, "an_external_task")
    failed_external_task(committed_db)
    olga = client_for("olga")

    def plain(html: str) -> str:
        return re.sub(r'value="[^"]{20,}"|<time.*?</time>|\s+|data-count\w+="[^"]*"', "", html)

    for name in ("instances", "failed", "jobs", "outbox", "processes"):
        page, part = olga.get(f"/operations/{name}").text, olga.get(f"/operations/{name}/list").text
        assert plain(part) in plain(page), name


def test_an_instance_is_shown_to_its_starter_and_to_nobody_else_but_operators(client_for: Client, committed_db: psycopg.Connection) -> None:
    deployed(committed_db, "an_external_task")
    here = started(committed_db, "shipping", business_key="ORD-77")
    ada, cy = client_for("ada"), client_for("cy")
    page = ada.get(f"/operations/instances/{here}")
    assert page.status_code == 200
    assert "Cancel…" not in page.text
    assert ada.get(f"/operations/instances/{here}/model").status_code == 200
    assert ada.get(f"/operations/instances/{here}/drawing").status_code == 200
    assert ada.post(f"/operations/instances/{here}/cancel", {"request_id": "r"}).status_code == 403
    for path in ("", "/part?part=why", "/model", "/drawing"):
        hidden, absent = cy.get(f"/operations/instances/{here}{path}"), cy.get(f"/operations/instances/{uuid4()}{path}")
        assert hidden.status_code == absent.status_code == 404
        assert "ORD-77" not in hidden.text
    assert cy.post(f"/operations/instances/{here}/cancel", {"request_id": "r"}).status_code == 404
    assert one(committed_db, "SELECT status FROM process_instance WHERE id = %s", here) == "running"


def test_S66_markup_in_names_keys_variables_and_errors_is_text_on_every_screen(
    client_for: Client, committed_db: psycopg.Connection
) -> None:
    deployed(committed_db, "markup_in_every_name")
    nasty = "<img src=x onerror=alert(9)>"
    here = started(committed_db, "hostile", business_key=f'"{nasty}"', **{nasty: "</script><script>alert(8)</script>"})
    made = Rows(committed_db)
    task = one(committed_db, "SELECT id FROM external_task")
    definition = one(committed_db, "SELECT id FROM process_definition")
    committed_db.execute("UPDATE external_task SET status = 'failed', attempts = 3, last_error = %s", (nasty,))
    made.incident(f"{nasty}: {nasty}", definition=definition, instance=here, element="ship", external_task_id=task, detail=nasty)
    made.delivery(definition, here, destination=nasty, status="failed", attempts=8, last_error=nasty)
    made.insert("subscription", kind="start", message_name=nasty, correlation_key=nasty, definition_id=definition, element_id="begin")
    made.insert("message", name=nasty, correlation_key=nasty, published_by=nasty, expires_at=made.at(hours=1))
    made.worker(host=nasty, version=nasty, kinds=Jsonb([["service", nasty]]))
    made.job(
        definition, instance=here, token=one(committed_db, "SELECT id FROM token"), topic=nasty, element_id="ship", **made.lease(nasty)
    )
    committed_db.execute("INSERT INTO login_attempt (username_key, address, succeeded) VALUES (%s, %s, false)", (nasty, nasty))
    committed_db.execute(
        "INSERT INTO refusal (actor, command, reason, detail) VALUES (%s, %s, 'lease_lost', %s)", (nasty, nasty, Jsonb({"detail": nasty}))
    )
    made.event("job_failed", instance=here, actor=nasty, data={"error": nasty}, item_id=task)
    olga = client_for("olga")
    paths = (
        *PAGES, "/operations/processes/hostile/1", f"/operations/instances/{here}", f"/operations/instances/{here}?all=1",
        f"/operations/instances/{here}?cancel=1", f"/operations/failed/external_task/{task}", f"/operations/leases?item={task}",
        f"/operations/instances?q={nasty}", f"/operations/failed?q={nasty}",
    )  # fmt: skip
    for path in paths:
        answer = olga.get(path)
        assert answer.status_code == 200, path
        for raw in ("<img src=x", "<script>alert", "</script><script>", "<i>topic", "<b>flow"):
            assert raw not in answer.text, (path, raw)
        assert "script-src 'self'" in answer.headers["Content-Security-Policy"]
    model = olga.get("/operations/processes/hostile/1/model")
    assert model.mimetype == "application/octet-stream"
    assert "attachment" in model.headers["Content-Disposition"]


def test_a_cursor_or_an_id_that_nobody_made_is_refused_calmly(client_for: Client) -> None:
    olga = client_for("olga")
    for name in ("instances", "jobs", "leases", "failed", "outbox", "messages"):
        assert olga.get(f"/operations/{name}?after=nonsense").status_code == 400, name
    for path in ("instances/nonsense", "instances/" + str(UUID(int=7)), "processes/none", "processes/none/1", "processes/none/99999999999"):
        assert olga.get(f"/operations/{path}").status_code == 404, path
    assert olga.get("/operations/leases?release=nonsense").status_code == 404
    assert olga.get(f"/operations/instances?version={'9' * 40}&status=%00&q=%00x").status_code == 200


@pytest.mark.parametrize("attempts", ["0", "101", "-1", "x", "", "１"])
def test_a_retry_grants_one_to_a_hundred_attempts_or_nothing(client_for: Client, committed_db: psycopg.Connection, attempts: str) -> None:
    deployed(committed_db, "an_external_task")
    task = failed_external_task(committed_db)
    answer = client_for("olga").post(f"/operations/failed/external_task/{task}/retry", {"attempts": attempts, "request_id": "r"})
    assert answer.status_code == 422
    assert one(committed_db, "SELECT status FROM external_task WHERE id = %s", task) == "failed"


def test_S71_wrong_passwords_are_seen_by_operators_with_name_and_address(client_for: Client, browser: Browser) -> None:
    for name in ("ada", "nobody"):
        browser.sign_in(name, password="wrong")
    olga = client_for("olga")
    page = olga.get("/operations/sign-ins").text
    for name in ("ada", "nobody", "127.0.0.1"):
        assert name in page, name
    assert re.search(r"Failed sign-ins</span><span class=\"value\">2</span>", olga.get("/operations").text)
