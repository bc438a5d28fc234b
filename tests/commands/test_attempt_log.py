"""What attempts report: kept under their lease, bounded, written once under a request id, and in nobody's way."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from engine.commands.attempt_log import Line, Report, keep_reports, report_attempt
from engine.commands.outcome import Actor, Refusal, Rejected, Reported
from engine.commands.upkeep import Kept, upkeep
from engine.db.acquire import recover_expired
from engine.db.session import connect
from engine.ids import new_id
from engine.reports import MOST_LINES
from tests import rows
from tests.conftest import Clock
from tests.races.contest import contest

OP = Actor("op", role="operator")
Connection = psycopg.Connection[Any]


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    return committed_db


def leased(conn: Connection) -> Any:
    task = rows.external_task(conn)
    conn.execute("UPDATE external_task SET status = 'leased', lease_owner = 'w', lease_number = 3, attempts = 1, leased_at = baton_clock(),"
                 " lease_expires_at = baton_clock() + interval '1 minute' WHERE id = %s", (task,))  # fmt: skip
    return task


def said(conn: Connection, item: Any) -> list[tuple[Any, ...]]:
    return conn.execute("SELECT lease_number, level, text FROM attempt_line WHERE item_id = %s ORDER BY id", (item,)).fetchall()


def report(conn: Connection, item: Any) -> Any:
    return conn.execute(
        "SELECT lease_number, progress, doing, lines FROM attempt_report WHERE item_id = %s ORDER BY lease_number", (item,)
    ).fetchall()


def test_the_latest_progress_counts_and_lines_are_added(conn: Connection) -> None:
    task = leased(conn)
    assert report_attempt(conn, task, actor=OP, lease_number=3, progress=0.25, doing="page 1", lines=[Line("one")]) == Reported(task, 1)
    assert report_attempt(conn, task, actor=OP, lease_number=3, lines=[Line("two", "warning"), Line("three")]) == Reported(task, 2)
    assert report(conn, task) == [(3, 0.25, "page 1", 3)]
    assert report_attempt(conn, task, actor=OP, lease_number=3, progress=0.5) == Reported(task, 0)
    assert report(conn, task) == [(3, 0.5, "", 3)]
    assert said(conn, task) == [(3, "info", "one"), (3, "warning", "two"), (3, "info", "three")]


def test_the_first_lines_are_kept_and_the_others_counted(conn: Connection) -> None:
    task = leased(conn)
    for start in (0, 150, 300):
        report_attempt(conn, task, actor=OP, lease_number=3, lines=[Line(str(start + n)) for n in range(150)])
    assert report(conn, task) == [(3, None, "", 450)]
    assert [text for _, _, text in said(conn, task)] == [str(n) for n in range(MOST_LINES)]


def test_the_bound_holds_while_two_report_at_once(conn: Connection, database_url: str) -> None:
    task = leased(conn)
    report_attempt(conn, task, actor=OP, lease_number=3, lines=[Line(f"before {n}") for n in range(150)])
    lines = [Line(f"then {n}") for n in range(40)]
    both = contest(
        database_url,
        "SELECT 1 FROM attempt_report WHERE item_id = %s FOR UPDATE",
        (task,),
        lambda c: report_attempt(c, task, actor=OP, lease_number=3, lines=lines),
        lambda c: report_attempt(c, task, actor=OP, lease_number=3, lines=lines),
    )
    assert both == [Reported(task, 40), Reported(task, 40)]
    assert report(conn, task) == [(3, None, "", 230)]
    assert len(said(conn, task)) == MOST_LINES


def test_R10_the_same_report_twice_is_written_once_and_another_is_another(conn: Connection) -> None:
    task = leased(conn)
    for _ in range(2):
        assert report_attempt(conn, task, actor=OP, lease_number=3, lines=[Line("once")], request_id="r1") == Reported(task, 1)
    assert len(said(conn, task)) == 1
    report_attempt(conn, task, actor=OP, lease_number=3, lines=[Line("once")], request_id="r2")
    assert len(said(conn, task)) == 2


def test_who_may_not_who_lost_the_lease_and_what_is_not_there(conn: Connection) -> None:
    task = leased(conn)
    for actor, item, number, expected in (
        (Actor("ada"), task, 3, Refusal.NOT_ALLOWED),
        (Actor("op", role="operator", tenant_id="other"), task, 3, Refusal.NOT_FOUND),
        (OP, new_id(), 3, Refusal.NOT_FOUND),
        (OP, task, 2, Refusal.LEASE_LOST),
        (OP, task, 4, Refusal.LEASE_LOST),
    ):
        outcome = report_attempt(conn, item, actor=actor, lease_number=number, lines=[Line("late")], request_id="r")
        assert isinstance(outcome, Rejected) and outcome.refusal is expected, (actor, outcome)
    assert (said(conn, task), report(conn, task)) == ([], [])
    assert rows.one(conn, "SELECT count(*) FROM refusal WHERE command = 'report_attempt' AND reason = 'lease_lost'") == 2


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, "lines"),
        ({"progress": 1.5}, "progress"),
        ({"doing": "something", "lines": [Line("x")]}, "progress"),
        ({"progress": 1, "doing": "x" * 201}, "doing"),
        ({"lines": [Line("")]}, "lines[0].text"),
        ({"lines": [Line("ok"), Line("x" * 2_001)]}, "lines[1].text"),
        ({"lines": [Line("x", "loud")]}, "lines[0].level"),
        ({"lines": [Line("x")] * 201}, "lines"),
    ],
)
def test_what_cannot_be_kept_is_named(conn: Connection, given: dict[str, Any], field: str) -> None:
    outcome = report_attempt(conn, leased(conn), actor=OP, lease_number=3, **given)
    assert isinstance(outcome, Rejected) and outcome.refusal is Refusal.INVALID
    assert [problem.field for problem in outcome.problems] == [field]


def test_a_worker_writes_what_several_attempts_said_in_one_statement(conn: Connection) -> None:
    first, second = rows.job(conn), rows.job(conn)
    keep_reports(
        conn, [Report(first, 1, progress=1.0, doing="done", lines=[Line("a", age_seconds=5)], more=7), Report(second, 2, lines=[Line("b")])]
    )
    assert conn.execute("SELECT item_id, progress, lines FROM attempt_report ORDER BY lease_number").fetchall() == [
        (first, 1.0, 8),
        (second, None, 1),
    ]
    ages = "SELECT extract(epoch FROM baton_clock() - at)::int FROM attempt_line ORDER BY id"
    assert [age for (age,) in conn.execute(ages).fetchall()] == [5, 0]


def test_what_two_attempts_of_one_item_said_is_kept_apart(conn: Connection) -> None:
    job = rows.job(conn)
    keep_reports(conn, [Report(job, 1, lines=[Line("a")]), Report(job, 2, lines=[Line("b")])])
    assert said(conn, job) == [(1, "info", "a"), (2, "info", "b")]


def test_R4_a_client_whose_lease_was_taken_back_reports_nothing_more(conn: Connection, clock: Clock) -> None:
    task = leased(conn)
    clock.advance(seconds=61)
    recover_expired(conn, limit=5)
    late = report_attempt(conn, task, actor=OP, lease_number=3, lines=[Line("late")])
    assert isinstance(late, Rejected) and late.refusal is Refusal.LEASE_LOST
    assert said(conn, task) == []


def test_what_was_reported_stays_when_the_item_is_gone_and_goes_after_a_month(committed_db: Connection, clock: Clock) -> None:
    item = rows.job(committed_db)
    keep_reports(committed_db, [Report(item, 1, lines=[Line("kept")])])
    committed_db.execute("DELETE FROM job WHERE id = %s", (item,))
    kept = Kept(86_400, [])
    upkeep(committed_db, kept)
    assert len(said(committed_db, item)) == 1
    clock.advance(seconds=31 * 86_400)
    assert upkeep(committed_db, kept)["attempt_reports"] == 2
    assert (said(committed_db, item), report(committed_db, item)) == ([], [])


def test_a_report_moves_nothing_and_waits_for_nobody_who_has_the_task_or_its_case(conn: Connection, database_url: str) -> None:
    task = leased(conn)
    before = rows.one(conn, "SELECT e::text FROM external_task e WHERE id = %s", task)
    with connect(database_url) as holder:
        holder.execute("BEGIN")
        holder.execute("SELECT 1 FROM process_instance r, external_task e WHERE e.id = %s AND r.id = e.root_id FOR UPDATE OF r, e", (task,))
        conn.execute("SET statement_timeout = '20s'")
        assert report_attempt(conn, task, actor=OP, lease_number=3, progress=0.5) == Reported(task, 0)
    assert rows.one(conn, "SELECT e::text FROM external_task e WHERE id = %s", task) == before
    assert rows.one(conn, "SELECT count(*) FROM history WHERE item_id = %s", task) == 0
