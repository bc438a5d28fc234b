"""A step that holds or frees keeps its lease while it waits, and does nothing once it has lost it (R4)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from engine.commands.outcome import Lease, Refusal, Rejected
from engine.commands.pause import pause_work, unpause_work
from engine.commands.suspend import hold_step, suspend_instance
from engine.commands.suspend_definition import suspend_definition
from engine.db.acquire import acquire_jobs, recover_expired
from engine.db.session import connect
from tests import rows
from tests.cast import OP, engage
from tests.commands.cases import lease_of
from tests.conftest import Clock
from tests.races.contest import Connection, Contender


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    engage(committed_db)
    return committed_db


def a_large_suspension(conn: Connection, version: UUID, case: UUID) -> None:
    suspend_instance(conn, case, actor=OP)
    # As if its first transaction had not come to all of it.
    conn.execute("UPDATE process_instance SET mark = 'suspending' WHERE id = %s", (case,))
    conn.execute("UPDATE job SET held = '{}'")
    row = {"root_id": case, "instance_id": case, "definition_id": version, "element_id": "", "payload": '{"what": "hold", "spread": 0}'}
    rows.insert(conn, "job", kind="hold", due_at="2026-01-01", available_at="2026-01-01", max_attempts=10, **row)


def a_version_with_its_cases(conn: Connection, version: UUID, case: UUID) -> None:
    suspend_definition(conn, version, actor=OP, with_cases=True)


def a_pause(conn: Connection, version: UUID, case: UUID) -> None:
    pause_work(conn, "definition", "a", actor=OP)


def a_pause_taken_back(conn: Connection, version: UUID, case: UUID) -> None:
    conn.execute("UPDATE job SET held = '{paused}'")
    pause_work(conn, "timer", "", actor=OP)
    unpause_work(conn, "timer", "", actor=OP)


PREPARATIONS = {
    "a large suspension": a_large_suspension,
    "a version with its cases": a_version_with_its_cases,
    "a pause": a_pause,
    "a pause taken back": a_pause_taken_back,
}
ITEM = "SELECT FROM job WHERE kind = 'service' FOR UPDATE"
TABLE = "LOCK TABLE pause IN ACCESS EXCLUSIVE MODE"  # what it holds or frees it does not wait for


def prepared(conn: Connection, what: str) -> Lease:
    case = rows.instance(conn, version := rows.definition(conn, "a"))
    rows.job(conn, case)
    PREPARATIONS[what](conn, version, case)
    return leased(conn)


def leased(conn: Connection) -> Lease:
    [item] = acquire_jobs(conn, owner="w", capabilities=[("hold", "")], limit=2, lease_seconds=30, workers=1)
    return lease_of(item)


@pytest.mark.parametrize("what", PREPARATIONS)
def test_R4_a_step_that_waits_past_its_lease_is_passed_by(conn: Connection, database_url: str, clock: Clock, what: str) -> None:
    lease = prepared(conn, what)
    with connect(database_url) as other, other.transaction():
        other.execute(TABLE if "pause" in what else ITEM)
        step: Any = Contender(database_url, lambda c: hold_step(c, lease)).seen_waiting(conn)
        clock.advance(seconds=31)
        assert recover_expired(conn, limit=5) == [], "it is at it"
    assert not isinstance(step.outcome(), Rejected)


@pytest.mark.parametrize("again", [False, True], ids=["taken back", "leased again"])
@pytest.mark.parametrize("what", PREPARATIONS)
def test_R4_a_step_whose_lease_is_lost_changes_nothing(conn: Connection, clock: Clock, what: str, again: bool) -> None:
    lease = prepared(conn, what)
    clock.advance(seconds=31)
    recover_expired(conn, limit=5)
    clock.advance(seconds=1)
    if again:
        leased(conn)
    before = rows.everything(conn)
    late = hold_step(conn, lease)
    assert isinstance(late, Rejected) and late.refusal is Refusal.LEASE_LOST
    assert rows.everything(conn) == before
