"""S37: further instances begin while others complete, are timed out, or are cancelled: whoever comes first, nothing is lost or doubled."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from engine.commands.cancel import cancel_instance
from engine.commands.complete_task import complete_task
from engine.commands.jobs import continue_loop, fire_timer
from engine.commands.outcome import InstanceCancelled, ItemDone, Lease, Refusal, Rejected, TaskCompleted
from engine.core.loops import BATCH
from engine.db.acquire import acquire_jobs
from engine.expressions import parse
from tests.cast import ADA, OP, engage
from tests.commands import cases
from tests.conftest import Clock
from tests.core.models import boundary, model, several, user
from tests.races.contest import Connection, contest
from tests.rows import one

ROOT_ROW = "SELECT 1 FROM process_instance WHERE id = %s FOR UPDATE"
NUMBER = BATCH + 5


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    engage(committed_db)
    return committed_db


@pytest.fixture
def case(conn: Connection) -> UUID:
    task = several(user(assignee=parse("${'ada'}")), times=str(NUMBER))
    cases.deployed(conn, model("start -> x -> after -> end", "late -> b -> end1", x=task, late=boundary("x", after="PT1H")))
    return cases.started(conn).instance_id


def leased(conn: Connection, kind: str) -> Lease:
    (item,) = acquire_jobs(conn, owner="w", capabilities=[(kind, "")], limit=1, lease_seconds=7_200, workers=1)
    return cases.lease_of(item)


def open_tasks(conn: Connection) -> list[UUID]:
    rows = conn.execute("SELECT id FROM user_task WHERE element_id = 'x' AND status = 'claimed' ORDER BY id").fetchall()
    return [row[0] for row in rows]


def complete(task: UUID) -> Any:
    return lambda c: complete_task(c, task, actor=ADA, variables={}, request_id=None)


@pytest.mark.parametrize("first", [True, False])
def test_S37_completions_and_the_next_step_all_succeed_in_any_order(conn: Connection, database_url: str, case: UUID, first: bool) -> None:
    lease, (one_task, other, *_) = leased(conn, "continue"), open_tasks(conn)
    acts = [complete(one_task), lambda c: continue_loop(c, lease), complete(other)]
    outcomes = contest(database_url, ROOT_ROW, (case,), *(acts if first else reversed(acts)))
    assert {type(outcome) for outcome in outcomes} == {TaskCompleted, ItemDone}
    assert len(open_tasks(conn)) == NUMBER - 2
    counters = one(conn, "SELECT counters FROM scope WHERE instance_id = %s AND counters ? 'begun'", case)
    assert (counters["begun"], counters["completed"]) == (NUMBER, 2)


def test_S37_a_timer_that_comes_before_the_next_step_leaves_nothing_to_begin(
    conn: Connection, database_url: str, case: UUID, clock: Clock
) -> None:
    lease = leased(conn, "continue")
    clock.advance(seconds=3_601)
    timer = leased(conn, "timer")
    fired, late = contest(database_url, ROOT_ROW, (case,), lambda c: fire_timer(c, timer), lambda c: continue_loop(c, lease))
    assert isinstance(fired, ItemDone)
    assert isinstance(late, Rejected)
    assert (late.refusal, open_tasks(conn)) == (Refusal.LEASE_LOST, [])


def test_S37_a_timer_that_comes_after_the_next_step_takes_its_instances_along(
    conn: Connection, database_url: str, case: UUID, clock: Clock
) -> None:
    lease = leased(conn, "continue")
    clock.advance(seconds=3_601)
    timer = leased(conn, "timer")
    begun, fired = contest(database_url, ROOT_ROW, (case,), lambda c: continue_loop(c, lease), lambda c: fire_timer(c, timer))
    assert isinstance(begun, ItemDone)
    assert isinstance(fired, ItemDone)
    assert open_tasks(conn) == []
    assert one(conn, "SELECT count(*) FROM scope WHERE instance_id = %s", case) == 1


def test_S37_a_cancel_that_comes_after_the_next_step_leaves_none_of_its_instances(conn: Connection, database_url: str, case: UUID) -> None:
    lease = leased(conn, "continue")

    def cancel(c: Connection) -> Any:
        return cancel_instance(c, case, actor=OP, reason="", request_id=None)

    begun, cancelled = contest(database_url, ROOT_ROW, (case,), lambda c: continue_loop(c, lease), cancel)
    assert isinstance(begun, ItemDone)
    assert isinstance(cancelled, InstanceCancelled)
    assert (open_tasks(conn), cases.status(conn, case), cancelled.finishing) == ([], "cancelled", False)
