"""Upkeep and the register of workers: what goes, what stays, and who acts."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from engine.commands.upkeep import CHORES, LOCK_SPACE, MOST_ROWS, Kept, take_turn, upkeep
from engine.commands.workers import Beat, beat, stopped
from engine.db.session import connect
from engine.ids import new_id
from tests import rows

Connection = psycopg.Connection[Any]
KEPT = Kept(request_seconds=86_400, job_branches=[("timer", ""), ("service", "score")])


def chore(name: str) -> int:
    return next(number for number, each in enumerate(CHORES) if each.name == name)


def count(conn: Connection, table: str) -> int:
    return rows.one(conn, f"SELECT count(*) FROM {table}")


def some_of_everything(conn: Connection) -> None:
    """One row of each table that upkeep clears."""
    person = rows.insert(conn, "person", username="ada", display_name="Ada", sort_key="ada", role="user")
    conn.execute(
        "INSERT INTO web_session (token_hash, person_id, expires_at) VALUES ('x', %s, baton_clock() + interval '1 hour')", (person,)
    )
    conn.execute("INSERT INTO login_attempt (username_key, address, succeeded) VALUES ('ada', '::1', false)")
    conn.execute("INSERT INTO request (actor, id, hash, outcome) VALUES ('ada', 'r', 'h', '{}')")
    rows.insert(conn, "message", name="PAID", published_by="ada", expires_at="infinity")
    conn.execute("UPDATE message SET expires_at = baton_clock() + interval '1 hour'")
    rows.insert(conn, "worker", host="here", pid=1)


TABLES = ("web_session", "login_attempt", "request", "message", "worker")


def test_what_counts_no_more_is_cleared_and_nothing_else(committed_db, clock):
    some_of_everything(committed_db)
    upkeep(committed_db, KEPT)
    assert {table: count(committed_db, table) for table in TABLES} == dict.fromkeys(TABLES, 1)
    clock.advance(days=1, seconds=60)
    done = upkeep(committed_db, KEPT)
    assert {table: count(committed_db, table) for table in TABLES} == dict.fromkeys(TABLES, 0)
    done.pop("partitions", None)  # made where this day ends a month
    assert {name: number for name, number in done.items() if number} == {
        "sessions": 1,
        "messages": 1,
        "requests": 1,
        "login_attempts": 1,
        "workers": 1,
    }
    assert count(committed_db, "person") == 1


def test_a_busy_day_is_cleared_in_as_many_transactions_as_it_takes(committed_db, clock):
    made = 2 * MOST_ROWS + 1
    committed_db.execute(
        "INSERT INTO request (actor, id, hash, outcome) SELECT 'ada', n::text, 'h', '{}' FROM generate_series(1, %s) n", (made,)
    )
    clock.advance(days=1, seconds=60)
    assert take_turn(committed_db, chore("requests"), KEPT) == MOST_ROWS
    assert upkeep(committed_db, KEPT)["requests"] == made - MOST_ROWS
    assert count(committed_db, "request") == 0
    assert "requests" not in upkeep(committed_db, KEPT), "until its time comes again"


def test_F37_a_chore_is_done_once_however_many_replicas_tick(database_url, committed_db, clock):
    number = chore("messages")
    assert take_turn(committed_db, number, KEPT) == 0
    with connect(database_url) as other:
        assert take_turn(other, number, KEPT) is None
        clock.advance(seconds=CHORES[number].every_seconds)
        assert take_turn(other, number, KEPT) == 0
        assert take_turn(committed_db, number, KEPT) is None


def test_F37_a_replica_does_not_wait_for_the_one_that_is_at_it(database_url, committed_db):
    number = chore("messages")
    with connect(database_url) as other:
        other.execute("BEGIN")
        other.execute("SELECT pg_advisory_xact_lock(%s, %s)", (LOCK_SPACE, number))
        committed_db.execute("SET lock_timeout = '1ms'")  # whoever waited would fail
        assert take_turn(committed_db, number, KEPT) is None
        other.execute("ROLLBACK")
    assert take_turn(committed_db, number, KEPT) == 0


def test_a_chore_that_fails_stops_no_other_and_is_tried_again(committed_db, clock):
    some_of_everything(committed_db)
    clock.advance(days=2)
    committed_db.execute(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not today'; END $$;"
        "CREATE TRIGGER refuse BEFORE DELETE ON message FOR EACH ROW EXECUTE FUNCTION refuse()"
    )
    done = upkeep(committed_db, KEPT)
    assert "messages" not in done
    assert done["workers"] == 1
    committed_db.execute("DROP TRIGGER refuse ON message")
    assert upkeep(committed_db, KEPT) == {"messages": 1}


def test_the_partitions_of_the_coming_months_are_made_in_time(committed_db, clock):
    before = rows.one(committed_db, "SELECT count(*) FROM pg_inherits WHERE inhparent = 'history'::regclass")
    clock.advance(days=40)
    assert upkeep(committed_db, KEPT)["partitions"] in (1, 2)
    after = rows.one(committed_db, "SELECT count(*) FROM pg_inherits WHERE inhparent = 'history'::regclass")
    assert after > before


def test_watermarks_are_moved_for_what_this_build_runs_and_for_every_external_topic(committed_db):
    for topic in ("scan", "print", "scan"):
        rows.external_task(committed_db, topic=topic)
    upkeep(committed_db, KEPT)
    names = {name for (name,) in committed_db.execute("SELECT name FROM watermark WHERE name !~ '^upkeep | leases$'").fetchall()}
    assert names == {"job timer ", "job service score", "external_task  scan", "external_task  print", "delivery http ", "delivery mail "}


# ---- the register of workers


def said(**values: Any) -> Beat:
    return Beat(**{"id": new_id(), "host": "here", "pid": 1, "version": "1", "slots": 8, "busy": 0, "kinds": [("timer", "")], **values})


def test_a_worker_counts_as_alive_while_it_says_so(committed_db, clock):
    first, second = said(), said()
    assert beat(committed_db, first, alive_seconds=20) == 1
    assert beat(committed_db, second, alive_seconds=20) == 2
    clock.advance(seconds=30)
    assert beat(committed_db, second, alive_seconds=20) == 1
    stopped(committed_db, second.id)
    assert beat(committed_db, first, alive_seconds=20) == 1


def test_a_worker_whose_row_was_cleared_away_registers_again(committed_db):
    mine = said(acquired=True)
    beat(committed_db, mine, alive_seconds=20)
    committed_db.execute("DELETE FROM worker")
    assert beat(committed_db, mine, alive_seconds=20) == 1
    assert rows.columns(committed_db, "worker", mine.id, "slots", "kinds") == (8, [["timer", ""]])


@pytest.mark.parametrize("acquired", [True, False])
def test_the_last_acquisition_is_told_only_when_there_was_one(committed_db, acquired):
    mine = said(acquired=acquired)
    beat(committed_db, mine, alive_seconds=20)
    assert rows.one(committed_db, "SELECT last_acquired_at IS NOT NULL FROM worker") is acquired
