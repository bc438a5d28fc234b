"""Two at once on one task, one job, one deployment: exactly one wins, and the other is told so."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.commands.deploy import deploy
from engine.commands.failure import fail_item
from engine.commands.outcome import Assigned, Claimed, Deployed, ItemDone, ItemRetried, Lease, Refusal
from engine.commands.retry import retry_item
from engine.commands.tasks import assign, claim, take_next, unclaim
from engine.db.acquire import WORK, recover_expired
from engine.db.session import connect
from tests import rows
from tests.cast import ADA, BO, OP, ROOT, engage
from tests.commands.test_acquire import take
from tests.commands.test_deploy import process
from tests.commands.test_leases import leased
from tests.conftest import Clock
from tests.races.contest import Connection, Contender, contest, held_at

ALL = pytest.mark.parametrize("table", list(WORK))
TASK = "SELECT 1 FROM user_task WHERE id = %s FOR UPDATE"


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    engage(committed_db)
    return committed_db


def test_R8_two_claims_of_one_task(conn: Connection, database_url: str) -> None:
    task = rows.task(conn)
    won, lost = contest(
        database_url,
        TASK,
        (task,),
        lambda c: claim(c, task, actor=ADA, request_id="1"),
        lambda c: claim(c, task, actor=BO, request_id="1"),
    )
    assert isinstance(won, Claimed)
    assert (lost.refusal, lost.by, lost.by_name, lost.at) == (Refusal.ALREADY_CLAIMED, "ada", "Ada Lovelace", won.at)
    assert rows.history(conn, task) == [("task_claimed", "ada")]


def test_R10_two_presses_of_one_request_claim_once_and_get_one_answer(conn: Connection, database_url: str) -> None:
    task = rows.task(conn)
    press = lambda c: claim(c, task, actor=ADA, request_id="1")  # noqa: E731
    first, second = contest(database_url, TASK, (task,), press, press)
    assert first == second
    assert rows.history(conn, task) == [("task_claimed", "ada")]


def test_R8_a_claim_and_an_assignment_leave_one_assignee_and_a_true_history(conn: Connection, database_url: str) -> None:
    task = rows.task(conn)
    claimed, given = contest(
        database_url,
        TASK,
        (task,),
        lambda c: claim(c, task, actor=ADA, request_id="1"),
        lambda c: assign(c, task, actor=OP, assignee="bo", request_id="1"),
    )
    assert isinstance(claimed, Claimed)
    assert isinstance(given, Assigned)
    assert rows.columns(conn, "user_task", task, "assignee") == ("bo",)
    assert rows.one(conn, "SELECT data FROM history WHERE kind = 'task_assigned'") == {"from": "ada", "to": "bo"}


def test_R8_two_operators_take_a_task_back_at_once(conn: Connection, database_url: str) -> None:
    task = rows.task(conn)
    claim(conn, task, actor=ADA, request_id=None)
    done, late = contest(
        database_url,
        TASK,
        (task,),
        lambda c: unclaim(c, task, actor=OP, request_id="1"),
        lambda c: unclaim(c, task, actor=ROOT, request_id="1"),
    )
    assert late.refusal is Refusal.NOT_CLAIMED
    assert done.task_id == task
    assert rows.history(conn, task) == [("task_claimed", "ada"), ("task_unclaimed", "op")]


def test_R2_two_who_take_the_next_task_get_two_and_neither_waits(conn: Connection, database_url: str, tmp_path: Path) -> None:
    urgent, other = rows.task(conn, priority=90), rows.task(conn)
    with held_at(database_url, "command.before_commit", lambda c: take_next(c, actor=ADA, request_id="1"), tmp_path) as ada:
        assert take_next(conn, actor=BO, request_id="1").task_id == other
        assert take_next(conn, actor=BO, request_id="2").refusal is Refusal.NOTHING_FREE
    assert ada.outcome().task_id == urgent


# ---- leased work


@ALL
def test_R2_an_acquisition_that_has_not_committed_makes_nobody_wait(
    conn: Connection, database_url: str, tmp_path: Path, table: str
) -> None:
    made = {rows.MAKERS[table](conn, overdue=100 - n) for n in range(6)}
    with held_at(database_url, "acquire.before_commit", lambda c: take(c, table, limit=3, owner="held"), tmp_path) as held:
        free = {lease.item_id for lease in take(conn, table, limit=5)}
        assert len(free) == 3
    assert {lease.item_id for lease in held.outcome()} == made - free


# The one called `late` waits while it runs: between its snapshot and its first look at the work. (A wait in baton_now()
# would come too early: the planner evaluates it, and the snapshot is taken after planning.)
LATE_SNAPSHOT = """
ALTER TABLE watermark RENAME TO watermark_kept;
INSERT INTO watermark_kept (name, at) VALUES ('nothing', '-infinity');
CREATE FUNCTION waited_if_late() RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$ BEGIN
  IF current_setting('application_name') = 'late' THEN
    PERFORM pg_advisory_lock_shared(4711);
    PERFORM pg_advisory_unlock_shared(4711);
  END IF;
  RETURN true;
END $$;
CREATE VIEW watermark AS SELECT * FROM watermark_kept WHERE waited_if_late() OFFSET 0
"""


@ALL
def test_R2_a_replica_whose_snapshot_is_older_than_the_others_commit_leases_none_of_its_rows(
    conn: Connection, database_url: str, table: str
) -> None:
    made = {rows.MAKERS[table](conn, overdue=100 - n) for n in range(8)}
    conn.execute(LATE_SNAPSHOT)
    with connect(database_url) as gate:
        gate.execute("SELECT pg_advisory_lock(4711)")
        # The late one has taken its snapshot, in which all rows are free, and has locked none.
        late = Contender(database_url, lambda c: take(c, table, limit=4, owner="late"), "late").seen_waiting(conn)
        first = {lease.item_id for lease in take(conn, table, limit=4, owner="first")}
        gate.execute("SELECT pg_advisory_unlock(4711)")
        second = {lease.item_id for lease in late.outcome()}
    assert len(first) == 4
    assert first.isdisjoint(second)
    assert second <= made
    assert conn.execute(f"SELECT DISTINCT lease_number, attempts FROM {table} WHERE status = 'leased'").fetchall() == [(1, 1)]


@ALL
def test_R2_what_was_held_or_put_off_after_an_older_snapshot_is_not_leased(conn: Connection, database_url: str, table: str) -> None:
    paused, later, free = (rows.MAKERS[table](conn, overdue=100 - n) for n in range(3))
    conn.execute(LATE_SNAPSHOT)
    with connect(database_url) as gate:
        gate.execute("SELECT pg_advisory_lock(4711)")
        late = Contender(database_url, lambda c: take(c, table, limit=3, owner="late"), "late").seen_waiting(conn)
        conn.execute(f"UPDATE {table} SET held = '{{paused}}' WHERE id = %s", (paused,))
        conn.execute(f"UPDATE {table} SET available_at = baton_clock() + interval '1 hour' WHERE id = %s", (later,))
        gate.execute("SELECT pg_advisory_unlock(4711)")
        assert [lease.item_id for lease in late.outcome()] == [free]


@ALL
def test_R4_two_replicas_recover_disjoint_rows_and_neither_waits(
    conn: Connection, database_url: str, tmp_path: Path, clock: Clock, table: str
) -> None:
    for n in range(4):
        rows.MAKERS[table](conn, overdue=100 - n)
    take(conn, table)
    clock.advance(seconds=31)
    of_this_table = 1 + list(WORK).index(table)
    recover = lambda c: recover_expired(c, limit=2)  # noqa: E731
    with held_at(database_url, "recover.before_commit", recover, tmp_path, passage=of_this_table) as held:
        others = {item.item_id for item in recover_expired(conn, limit=10)}
    mine = {item.item_id for item in held.outcome()}
    assert (len(mine), len(others)) == (2, 2)
    assert mine.isdisjoint(others)
    assert rows.one(conn, f"SELECT count(*) FROM history WHERE kind = '{table}_recovered'") == 4


@ALL
def test_S55_two_operators_retry_at_once(conn: Connection, database_url: str, table: str) -> None:
    lease = leased(conn, table, max_attempts=1)
    fail_item(conn, lease, error="no ink")
    item = lease.item_id
    won, lost = contest(
        database_url,
        f"SELECT 1 FROM {table} WHERE id = %s FOR UPDATE",
        (item,),
        lambda c: retry_item(c, table, item, actor=OP, attempts=2, request_id="1"),
        lambda c: retry_item(c, table, item, actor=ROOT, attempts=3, request_id="1"),
    )
    assert won == ItemRetried(item, 2)
    assert (lost.refusal, lost.by) == (Refusal.NOT_FAILED, "op")
    assert rows.columns(conn, table, item, "attempts", "max_attempts") == (1, 3)


def test_F3_a_delivery_that_is_reported_and_recovered_at_once_ends_one_way(conn: Connection, database_url: str, clock: Clock) -> None:
    from engine.commands.deliveries import delivered

    lease = leased(conn, "delivery")
    clock.advance(seconds=31)
    with connect(database_url) as recoverer:
        recoverer.execute("BEGIN")
        assert len(recover_expired(recoverer, limit=1)) == 1
        late = Contender(database_url, lambda c: delivered(c, lease, response={})).seen_waiting(conn)
        recoverer.execute("COMMIT")
        assert late.outcome().refusal is Refusal.LEASE_LOST
    assert rows.columns(conn, "delivery", lease.item_id, "status", "attempts") == ("available", 1)

    [again] = take(conn, "delivery")
    clock.advance(seconds=31)
    fresh = Lease("delivery", again.item_id, again.number, again.owner)
    with connect(database_url) as reporter:
        reporter.execute("BEGIN")
        reporter.execute("SELECT 1 FROM delivery FOR UPDATE")
        assert recover_expired(conn, limit=1) == []
        reporter.execute("COMMIT")
    assert isinstance(delivered(conn, fresh, response={}), ItemDone)


# ---- deployments

KEY = "SELECT pg_advisory_xact_lock(baton_key_number('', chr(29) || 'deployment', 'p'))"


def test_S49_two_replicas_that_deploy_one_file_make_one_version(conn: Connection, database_url: str) -> None:
    press = lambda c: deploy(c, [("p.bpmn", process())], actor=OP)  # noqa: E731
    outcomes = contest(database_url, KEY, (), press, press)
    assert all(isinstance(outcome, Deployed) for outcome in outcomes)
    assert [outcome.definitions[0].unchanged for outcome in outcomes] == [False, True]
    assert len({outcome.definitions[0].id for outcome in outcomes}) == 1
    assert rows.one(conn, "SELECT count(*) FROM process_definition") == 1


def test_two_deployments_of_two_keys_in_opposite_orders_do_not_deadlock(conn: Connection, database_url: str) -> None:
    files = [("a.bpmn", process("p", name="1")), ("b.bpmn", process("q", name="1"))]
    outcomes = contest(
        database_url,
        KEY,
        (),
        lambda c: deploy(c, files, actor=OP),
        lambda c: deploy(c, [(f, d.replace(b'name="1"', b'name="2"')) for f, d in reversed(files)], actor=OP),
    )
    assert [sorted(d.version for d in outcome.definitions) for outcome in outcomes] == [[1, 1], [2, 2]]


def test_R10_one_deployment_request_pressed_twice_is_done_once(conn: Connection, database_url: str) -> None:
    press = lambda c: deploy(c, [("p.bpmn", process())], actor=OP, request_id="1")  # noqa: E731
    first, second = contest(database_url, KEY, (), press, press)
    assert first == second
    assert rows.one(conn, "SELECT count(*) FROM deployment") == 1
