"""The buttons of operations: retry, release, cancel, skip. Done, refused, pressed twice, pressed by two."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from uuid import UUID, uuid4

import psycopg
import pytest

from engine.commands import cancel
from engine.commands.external_tasks import acquire_external_tasks
from engine.commands.outcome import CaseShrunk, Lease
from engine.db.acquire import acquire_jobs
from engine.db.session import connect
from tests.web.operations import OLGA, Client, deployed, failed_external_task, one, started
from tests.web.rows import Rows


def in_words(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", html))


def second_operator(conn: psycopg.Connection) -> None:
    conn.execute("UPDATE person SET role = 'operator' WHERE username = 'bo'")


# ---- retry


def test_a_retry_gives_new_attempts_and_closes_the_incident(client_for: Client, committed_db: psycopg.Connection) -> None:
    deployed(committed_db, "an_external_task")
    task = failed_external_task(committed_db)
    olga = client_for("olga")
    assert "CarrierDown" in olga.get("/operations/failed").text
    answer = olga.post(f"/operations/failed/external_task/{task}/retry", {"attempts": "2", "request_id": "r"})
    assert answer.status_code == 303
    assert answer.headers["Location"] == "/operations/failed"
    assert "runs again, with 2 more attempts" in olga.get("/operations/failed").text
    row = committed_db.execute("SELECT status, max_attempts - attempts FROM external_task WHERE id = %s", (task,)).fetchone()
    assert row == ("available", 2)
    assert one(committed_db, "SELECT count(*) FROM incident") == 0
    htmx = olga.htmx(f"/operations/failed/external_task/{failed_external_task(committed_db, business_key='ORD-2')}/retry")
    assert htmx.status_code == 200
    assert "Running again" in htmx.text
    assert "<html" not in htmx.text


def test_S55_two_operators_retry_at_once_and_one_of_them_is_told_who_was_first(
    client_for: Client, committed_db: psycopg.Connection, database_url: str
) -> None:
    """Both presses are held on the locked row, seen waiting by pg_blocking_pids, then let go together."""
    deployed(committed_db, "an_external_task")
    task = failed_external_task(committed_db)
    second_operator(committed_db)
    olga, bo = client_for("olga"), client_for("bo")
    with connect(database_url) as holder, ThreadPoolExecutor(2) as pool:
        holder.execute("BEGIN")
        holder.execute("SELECT FROM external_task WHERE id = %s FOR UPDATE", (task,))
        presses = [
            pool.submit(who.htmx, f"/operations/failed/external_task/{task}/retry", {"request_id": name})
            for name, who in (("o", olga), ("b", bo))
        ]
        while True:
            waiting = one(
                committed_db,
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0",
            )
            if waiting == 2 or any(press.done() for press in presses):
                break
        assert not any(press.done() for press in presses)
        holder.execute("ROLLBACK")
        answers = [press.result(30) for press in presses]
    assert sorted(answer.status_code for answer in answers) == [200, 409]
    lost = next(answer for answer in answers if answer.status_code == 409)
    winner = one(committed_db, "SELECT actor FROM history WHERE kind = 'external_task_retried'")
    name = {"olga": "Olga Petrova", "bo": "Bo Lindqvist"}[winner]
    assert f"{name} retried this" in in_words(lost.text)
    assert "<time" in lost.text
    assert one(committed_db, "SELECT count(*) FROM history WHERE kind = 'external_task_retried'") == 1
    assert one(committed_db, "SELECT max_attempts - attempts FROM external_task WHERE id = %s", task) == 3


def test_the_second_retry_without_htmx_is_a_page_that_names_who_and_when(client_for: Client, committed_db: psycopg.Connection) -> None:
    deployed(committed_db, "an_external_task")
    task = failed_external_task(committed_db)
    second_operator(committed_db)
    olga, bo = client_for("olga"), client_for("bo")
    assert olga.post(f"/operations/failed/external_task/{task}/retry", {"request_id": "o"}).status_code == 303
    late = bo.post(f"/operations/failed/external_task/{task}/retry", {"request_id": "b"})
    assert late.status_code == 409
    assert "Olga Petrova retried this" in in_words(late.text)
    assert "not_failed" in late.text
    again = olga.post(f"/operations/failed/external_task/{task}/retry", {"request_id": "o"})
    assert again.status_code == 303, "a repeated press gets its first answer"
    assert one(committed_db, "SELECT count(*) FROM history WHERE kind = 'external_task_retried'") == 1


def test_what_is_not_there_is_404_and_names_nobody(client_for: Client) -> None:
    olga = client_for("olga")
    for path in (f"failed/job/{uuid4()}/retry", f"leases/job/{uuid4()}/release", f"outbox/{uuid4()}/skip", f"outbox/{uuid4()}/retry"):
        assert olga.post(f"/operations/{path}", {"request_id": "r"}).status_code == 404, path
    assert olga.post(f"/operations/failed/banana/{uuid4()}/retry").status_code == 404


def test_what_is_ticked_is_retried_one_by_one_and_each_line_says_what_came_of_it(
    client_for: Client, committed_db: psycopg.Connection
) -> None:
    deployed(committed_db, "an_external_task")
    one_, two = (failed_external_task(committed_db, business_key=key) for key in ("ORD-1", "ORD-2"))
    olga = client_for("olga")
    olga.post(f"/operations/failed/external_task/{two}/retry", {"request_id": "before"})
    answer = olga.post(
        "/operations/failed/retry",
        {"item": [f"external_task:{one_}", f"external_task:{two}", f"job:{uuid4()}"], "attempts": "1", "request_id": "r"},
    )
    assert answer.status_code == 200
    said = in_words(answer.text)
    assert "1 of 3 run again" in said
    assert "Olga Petrova retried this" in said
    assert "There is no such item any more." in said
    assert olga.post("/operations/failed/retry", {"item": ["job:x"], "request_id": "r2"}).status_code == 422
    assert olga.post("/operations/failed/retry", {"request_id": "r3"}).status_code == 422


# ---- release


def leased(conn: psycopg.Connection) -> UUID:
    started(conn, "shipping", business_key="ORD-9")
    [task] = acquire_external_tasks(conn, actor=OLGA, worker_id="mint-02", topics=["ship"], limit=1, lease_seconds=30)
    return task.id


def test_R4_releasing_a_lease_asks_once_and_then_ends_it(client_for: Client, committed_db: psycopg.Connection) -> None:
    deployed(committed_db, "an_external_task")
    task = leased(committed_db)
    olga = client_for("olga")
    asked = in_words(olga.get(f"/operations/leases?release={task}").text)
    assert "Release Ship the parcel, ORD-9 now?" in asked
    assert "mint-02 may still be working. Lease 1 ends; another worker takes it under lease 2 as attempt 2 of 3." in asked
    answer = olga.post(f"/operations/leases/external_task/{task}/release", {"reason": "it hangs", "request_id": "r"})
    assert answer.status_code == 303
    assert "Ship the parcel of ORD-9 was released" in olga.get("/operations/leases").text
    row = committed_db.execute("SELECT status, lease_owner, attempts, lease_number FROM external_task").fetchone()
    assert row == ("available", None, 1, 1)
    assert "Olga Petrova released Ship the parcel" in in_words(olga.get(f"/operations/leases?item={task}").text)
    assert one(committed_db, "SELECT reason FROM audit WHERE action = 'release'") == "it hangs"


def test_a_lease_that_somebody_else_released_is_409_with_who_and_when(client_for: Client, committed_db: psycopg.Connection) -> None:
    deployed(committed_db, "an_external_task")
    task = leased(committed_db)
    second_operator(committed_db)
    olga, bo = client_for("olga"), client_for("bo")
    olga.post(f"/operations/leases/external_task/{task}/release", {"request_id": "o"})
    page = bo.post(f"/operations/leases/external_task/{task}/release", {"request_id": "b"})
    part = bo.htmx(f"/operations/leases/external_task/{task}/release", {"request_id": "b2"})
    for answer in (page, part):
        assert answer.status_code == 409
        assert "Olga Petrova released this" in in_words(answer.text)
    assert 'id="leases-list"' in part.text
    assert "<html" not in part.text


def test_the_seconds_of_a_lease_stand_in_the_page_for_the_script_to_count(client_for: Client, committed_db: psycopg.Connection) -> None:
    deployed(committed_db, "an_external_task")
    leased(committed_db)
    html = client_for("olga").get("/operations/leases").text
    found = re.search(r'data-countdown="([0-9.]+)" data-total="30"', html)
    assert found is not None
    assert 20 < float(found[1]) <= 30
    assert re.search(r"\d+ s of 30 s", html)
    assert "aria-live" not in html[html.index("<table") : html.index("</table>")]


# ---- cancel


def test_an_instance_is_cancelled_once_with_a_reason_and_the_second_is_told_by_whom(
    client_for: Client, committed_db: psycopg.Connection
) -> None:
    deployed(committed_db, "a_task_a_delivery_a_task")
    here = started(committed_db, "relay", business_key="INV-1")
    second_operator(committed_db)
    olga, bo = client_for("olga"), client_for("bo")
    asked = olga.get(f"/operations/instances/{here}?cancel=1").text
    assert "Cancel INV-1 for good?" in asked
    assert one(committed_db, "SELECT status FROM process_instance") == "running", "asking changes nothing"
    assert olga.post(f"/operations/instances/{here}/cancel", {"reason": "sent twice", "request_id": "o"}).status_code == 303
    page = in_words(olga.get(f"/operations/instances/{here}").text)
    assert "The instance is cancelled." in page
    assert "Olga Petrova cancelled the instance" in page
    assert "sent twice" in page
    late = bo.post(f"/operations/instances/{here}/cancel", {"request_id": "b"})
    assert late.status_code == 409
    assert "Olga Petrova cancelled this" in in_words(late.text)
    assert one(committed_db, "SELECT status FROM user_task") == "cancelled"


def test_a_large_instance_shows_that_it_is_being_cancelled_until_the_job_is_done(
    client_for: Client, committed_db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cancel, "AT_ONCE", 0)
    deployed(committed_db, "a_task_a_delivery_a_task")
    here = started(committed_db, "relay", business_key="INV-1")
    olga = client_for("olga")
    assert olga.post(f"/operations/instances/{here}/cancel", {"reason": "sent twice", "request_id": "o"}).status_code == 303
    html = olga.get(f"/operations/instances/{here}?cancel=1").text
    page = in_words(html)
    assert "The instance is being cancelled. It is large" in page
    assert "Cancelling" in page
    assert "nothing in it moves any more, and a job withdraws what is left" in page
    assert "No worker is alive to do it." in page
    assert "Cancel…" not in page and "for good?" not in page, "it is being done already"
    assert "Cancellation" in in_words(olga.get("/operations/jobs?kind=cancel").text)
    late = olga.post(f"/operations/instances/{here}/cancel", {"request_id": "again"})
    assert late.status_code == 409
    assert "The instance is being cancelled" in in_words(late.text)

    committed_db.execute("UPDATE job SET status = 'failed', attempts = max_attempts WHERE kind = 'cancel'")
    assert "give it new attempts" in olga.get(f"/operations/instances/{here}").text
    committed_db.execute("UPDATE job SET status = 'available', attempts = 0 WHERE kind = 'cancel'")
    [item] = acquire_jobs(committed_db, owner="w", capabilities=[("cancel", "")], limit=1, lease_seconds=30, workers=1)
    lease = Lease(item.kind, item.item_id, item.number, item.owner)
    while isinstance(cancel.cancel_some(committed_db, lease), CaseShrunk):
        pass
    page = in_words(olga.get(f"/operations/instances/{here}").text)
    assert "Cancelled" in page and "sent twice" in page and "nothing in it moves" not in page


# ---- the outbox


def test_a_failed_delivery_is_sent_again_or_skipped_for_good(client_for: Client, committed_db: psycopg.Connection) -> None:
    deployed(committed_db, "an_external_task")
    here = started(committed_db, "shipping")
    made = Rows(committed_db)
    definition = one(committed_db, "SELECT id FROM process_definition")
    again = made.delivery(definition, here, status="failed", attempts=8)
    never = made.delivery(definition, here, status="failed", attempts=8)
    for delivery in (again, never):
        made.incident("503", definition=definition, instance=here, delivery_id=delivery)
    olga = client_for("olga")
    assert olga.post(f"/operations/outbox/{again}/retry", {"request_id": "r"}).status_code == 303
    assert one(committed_db, "SELECT status FROM delivery WHERE id = %s", again) == "available"
    assert "for good?" in in_words(olga.get(f"/operations/outbox?skip={never}").text)
    skipped = olga.htmx(f"/operations/outbox/{never}/skip", {"request_id": "s"})
    assert skipped.status_code == 200
    assert one(committed_db, "SELECT status FROM delivery WHERE id = %s", never) == "skipped"
    late = olga.htmx(f"/operations/outbox/{never}/skip", {"request_id": "s2"})
    assert late.status_code == 409
    assert "Olga Petrova skipped this" in in_words(late.text)


def test_a_burst_of_retries_from_many_browsers_has_one_winner(client_for: Client, committed_db: psycopg.Connection) -> None:
    deployed(committed_db, "an_external_task")
    task = failed_external_task(committed_db)
    browsers = [client_for("olga") for _ in range(5)]
    barrier = Barrier(5)

    def press(place: int) -> int:
        barrier.wait()
        return browsers[place].post(f"/operations/failed/external_task/{task}/retry", {"request_id": f"r{place}"}).status_code

    with ThreadPoolExecutor(5) as pool:
        statuses = sorted(pool.map(press, range(5)))
    assert statuses == [303, 409, 409, 409, 409]
