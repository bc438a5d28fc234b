"""External tasks held by the name of a worker: the number behind the name is the fence; retries and priority from outside."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import psycopg
import pytest

from engine.bpmn.definition import ProcessDefinition
from engine.commands.external_tasks import acquire_external_tasks, complete_external_task, fail_external_task
from engine.commands.outcome import ItemDone, ItemFailed, Lease, Refusal, Rejected
from engine.commands.pause import pause_work
from engine.commands.worker_tasks import (
    TaskChanged,
    held_lease,
    lock_external_task,
    set_priority,
    set_retries,
    unlock_external_task,
)
from engine.db.acquire import recover_expired
from engine.ids import new_id
from tests import rows
from tests.cast import ADA, OP
from tests.commands import cases
from tests.conftest import Clock
from tests.core.models import model, par, service, user

Connection = psycopg.Connection[Any]
STRANGER = type(OP)("op", role="administrator", tenant_id="other")


def outside(**more: Any) -> ProcessDefinition:
    return model("start -> work -> next -> end", work=service("score", work="external", **more), next=user())


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    cases.deployed(committed_db, outside())
    cases.started(committed_db)
    return committed_db


@pytest.fixture
def task(conn: Connection) -> UUID:
    return UUID(str(rows.one(conn, "SELECT id FROM external_task")))


def lock(conn: Connection, task: UUID, worker: str = "w", seconds: float = 5, **more: Any) -> Any:
    return lock_external_task(conn, task, actor=OP, worker_id=worker, lease_seconds=seconds, **more)


def held(conn: Connection, task: UUID, worker: str = "w") -> Any:
    return held_lease(conn, task, actor=OP, worker_id=worker)


def state(conn: Connection) -> tuple[Any, ...]:
    row = conn.execute("SELECT status, lease_owner, lease_number, attempts, max_attempts FROM external_task").fetchone()
    assert row is not None
    return row


def test_R4_what_another_of_the_same_name_holds_by_now_is_not_ended_by_the_first(conn: Connection, task: UUID, clock: Clock) -> None:
    assert lock(conn, task) == TaskChanged(task)
    first = held(conn, task)
    assert isinstance(first, Lease) and first.number == 1
    clock.advance(seconds=6)
    recover_expired(conn, limit=10)
    assert lock(conn, task) == TaskChanged(task)  # its twin, between the look and the command
    before = rows.everything(conn)
    late = complete_external_task(conn, task, actor=OP, lease_number=first.number, variables={})
    assert isinstance(late, Rejected) and late.refusal is Refusal.LEASE_LOST
    assert rows.everything(conn) == before
    assert held(conn, task).number == 2


def test_R4_a_lock_that_has_expired_is_no_fence_although_nobody_has_taken_the_task(conn: Connection, task: UUID, clock: Clock) -> None:
    lock(conn, task)
    clock.advance(seconds=6)
    before = rows.everything(conn)
    late = held(conn, task)
    assert isinstance(late, Rejected) and late.refusal is Refusal.LEASE_LOST and "expired" in late.detail
    assert rows.everything(conn) == before


def test_R6_a_repeat_finds_the_number_under_which_this_name_ended_the_task(conn: Connection, task: UUID) -> None:
    lock(conn, task)
    number = held(conn, task).number
    assert isinstance(fail_external_task(conn, task, actor=OP, lease_number=number, error="x", attempts_left=2, retry_in=0), ItemFailed)
    again = held(conn, task)
    assert again.number == number
    assert isinstance(fail_external_task(conn, task, actor=OP, lease_number=again.number, error="x", attempts_left=2), ItemFailed)
    assert state(conn)[3:] == (1, 3)
    lock(conn, task, "w2")
    done = complete_external_task(conn, task, actor=OP, lease_number=held(conn, task, "w2").number, variables={})
    assert isinstance(done, ItemDone)
    repeated = complete_external_task(conn, task, actor=OP, lease_number=held(conn, task, "w2").number, variables={})
    assert isinstance(repeated, ItemDone) and repeated.repeated
    assert isinstance(held(conn, task, "w3"), Rejected)


def test_R10_refusals_change_nothing(conn: Connection, task: UUID) -> None:
    lock(conn, task)
    before = rows.everything(conn)
    asked = {"worker_id": "w", "lease_seconds": 5.0}
    for actor, refusal in ((ADA, Refusal.NOT_ALLOWED), (STRANGER, Refusal.NOT_FOUND)):
        refusals = [
            held_lease(conn, task, actor=actor, worker_id="w"),
            lock_external_task(conn, task, actor=actor, **asked),
            unlock_external_task(conn, task, actor=actor),
            set_retries(conn, task, actor=actor, retries=3),
            set_priority(conn, task, actor=actor, priority=3),
        ]
        assert [each.refusal for each in refusals if isinstance(each, Rejected)] == [refusal] * 5
    unknown = new_id()
    assert {each.refusal for each in (held(conn, unknown), lock(conn, unknown), unlock_external_task(conn, unknown, actor=OP))} == {
        Refusal.NOT_FOUND
    }
    wrong = [
        lock(conn, task, " "),
        lock(conn, task, seconds=0),
        lock(conn, task, seconds=1e9),
        set_retries(conn, task, actor=OP, retries=-1),
    ]
    assert [each.refusal for each in wrong] == [Refusal.INVALID] * 4
    assert [each.refusal for each in (lock(conn, task, "other"), held(conn, task, "other"))] == [Refusal.LEASE_LOST] * 2
    assert rows.everything(conn) == before


def test_a_lock_of_ones_own_moves_on_and_spends_nothing(conn: Connection, task: UUID, clock: Clock) -> None:
    lock(conn, task)
    assert lock(conn, task, seconds=60) == TaskChanged(task)
    clock.advance(seconds=10)
    recover_expired(conn, limit=10)
    assert state(conn) == ("leased", "w", 1, 1, 3)
    unlock_external_task(conn, task, actor=OP)
    assert state(conn) == ("available", None, 1, 0, 3)
    unlock_external_task(conn, task, actor=OP)
    assert state(conn) == ("available", None, 1, 0, 3)


def test_R5_whoever_locks_what_has_expired_takes_it_back_first(conn: Connection, task: UUID, clock: Clock) -> None:
    for number, forgiven in ((1, ()), (2, ("score",)), (3, ()), (4, ())):
        assert lock(conn, task, f"w{number}", forgiven=forgiven) == TaskChanged(task)
        clock.advance(seconds=6)
    # The first three were taken back by the next; the second was forgiven by nobody, the one before it was.
    assert state(conn)[2:] == (4, 4, 4)
    last = lock(conn, task, "w5")
    assert isinstance(last, Rejected) and "no retries" in last.detail
    assert rows.one(conn, "SELECT kind FROM incident") == "lease_lost"


def test_what_rests_cannot_be_locked(conn: Connection, task: UUID) -> None:
    pause_work(conn, "external_task", "score", actor=OP, reason="the printer is away")
    refused = lock(conn, task)
    assert isinstance(refused, Rejected) and refused.refusal is Refusal.LEASE_LOST
    assert state(conn)[3] == 0


def test_retries_from_outside_count_the_running_attempt(conn: Connection, task: UUID) -> None:
    set_retries(conn, task, actor=OP, retries=2)
    assert state(conn)[3:] == (0, 2)
    [leased] = acquire_external_tasks(conn, actor=OP, worker_id="w", topics=["score"])
    assert leased.retries == 2
    set_retries(conn, task, actor=OP, retries=5)
    assert state(conn)[3:] == (1, 5)
    failed = fail_external_task(conn, task, actor=OP, lease_number=1, error="x", retry_in=0)
    assert isinstance(failed, ItemFailed)
    [leased] = acquire_external_tasks(conn, actor=OP, worker_id="w", topics=["score"])
    assert leased.retries == 4


def test_exclusive_work_that_is_given_up_passes_its_turn(committed_db: Connection) -> None:
    both = {"a": service("score", work="external", exclusive=True), "b": service("score", work="external", exclusive=True)}
    cases.deployed(
        committed_db, model("start -> split", "split -> a -> join", "split -> b -> join", "join -> end", split=par(), join=par(), **both)
    )
    cases.started(committed_db)
    turn = "SELECT id FROM external_task WHERE held = '{}' AND status = 'available'"
    first = rows.one(committed_db, turn)
    assert set_retries(committed_db, first, actor=OP, retries=0) == TaskChanged(first)
    second = rows.one(committed_db, turn)
    assert second != first
    assert isinstance(lock(committed_db, second), TaskChanged)
    assert set_retries(committed_db, first, actor=OP, retries=2) == TaskChanged(first)
    waits = lock(committed_db, first, "w2")
    assert isinstance(waits, Rejected) and "exclusive" in waits.detail
