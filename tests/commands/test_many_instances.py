"""S37: thousands of instances of one activity begin in bounded transactions, by jobs that nothing loses and nothing doubles."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import psycopg
import pytest

from engine.bpmn.definition import ProcessDefinition
from engine.commands.cancel import cancel_instance, cancel_some
from engine.commands.complete_task import complete_task
from engine.commands.jobs import complete_job, continue_loop, fire_timer
from engine.commands.outcome import (
    CaseShrunk,
    InstanceCancelled,
    ItemDone,
    ItemFailed,
    ItemRetried,
    Lease,
    Refusal,
    Rejected,
    TaskCompleted,
)
from engine.commands.retry import retry_item
from engine.core.loops import BATCH
from engine.db.acquire import acquire_jobs, recover_expired
from engine.failpoints import FailPointRaised, install
from tests.cast import ADA, OP, engage
from tests.commands.cases import deployed, kinds, lease_of, started, status, variables
from tests.conftest import Clock
from tests.core.models import boundary, model, script, service, several, user
from tests.rows import everything, one

Connection = psycopg.Connection[Any]


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    engage(committed_db)
    return committed_db


def tasks(number: int, **loop: Any) -> ProcessDefinition:
    return model(
        "start -> x -> after -> end", "late -> b -> end1", x=several(user(), times=str(number), **loop),
        late=boundary("x", after="PT1H"),
    )  # fmt: skip


def begin(conn: Connection, definition: ProcessDefinition, **given: Any) -> UUID:
    deployed(conn, definition)
    return started(conn, variables=given).instance_id


def due(conn: Connection, kind: str = "continue", topic: str = "", *, lease_seconds: float = 30) -> list[Lease]:
    found = acquire_jobs(conn, owner="w", capabilities=[(kind, topic)], limit=10, lease_seconds=lease_seconds, workers=1)
    return [lease_of(item) for item in found]


def open_tasks(conn: Connection, case: UUID) -> int:
    sql = "SELECT count(*) FROM user_task WHERE instance_id = %s AND element_id = 'x' AND status IN ('open', 'claimed')"
    return int(one(conn, sql, case))


def left(conn: Connection, case: UUID) -> dict[str, int]:
    tables = ("token", "scope", "job", "external_task", "subscription")
    counted = {table: int(one(conn, f"SELECT count(*) FROM {table} WHERE instance_id = %s", case)) for table in tables}
    return {table: rows for table, rows in counted.items() if rows}


def numbers(conn: Connection, case: UUID) -> list[int]:
    """The counters of the iterations that have begun, each as often as it has."""
    sql = "SELECT (data->>'loop')::int FROM history WHERE instance_id = %s AND kind = 'element_entered' AND data ? 'loop' ORDER BY 1"
    return [row[0] for row in conn.execute(sql, (case,)).fetchall()]


def test_S37_five_thousand_begin_in_steps_of_which_none_writes_more_than_a_batch(conn: Connection) -> None:
    case = begin(conn, tasks(5_000))
    steps = [open_tasks(conn, case)]
    while jobs := due(conn):
        assert len(jobs) == 1
        assert isinstance(continue_loop(conn, jobs[0]), ItemDone)
        steps.append(open_tasks(conn, case) - sum(steps))
    assert steps == [BATCH] * (5_000 // BATCH)
    assert numbers(conn, case) == list(range(5_000))
    assert isinstance(cancel_instance(conn, case, actor=OP, reason="", request_id=None), InstanceCancelled)
    (lease,) = due(conn, "cancel")
    while isinstance(cancel_some(conn, lease), CaseShrunk):
        pass
    assert (status(conn, case), open_tasks(conn, case), left(conn, case)) == ("cancelled", 0, {})


def test_S37_all_run_and_the_flow_goes_on_once(conn: Connection) -> None:
    case = begin(conn, model("start -> x -> after -> end", x=several(service(), of="${items}"), after=user()), items=[*range(450)])
    while jobs := [*due(conn), *due(conn, "service", "work")]:
        for lease in jobs:
            outcome = continue_loop(conn, lease) if _kind(conn, lease) == "continue" else complete_job(conn, lease, variables={})
            assert isinstance(outcome, ItemDone), outcome
    assert numbers(conn, case) == list(range(450))
    assert kinds(conn, case).count("task_created") == 1
    assert left(conn, case) == {"token": 1, "scope": 1}


def _kind(conn: Connection, lease: Lease) -> str:
    return str(one(conn, "SELECT kind FROM job WHERE id = %s", lease.item_id))


def test_S37_instant_work_is_done_in_bounded_steps_too(conn: Connection) -> None:
    case = begin(conn, model("start -> x -> after -> end", x=several(script("${total + loopCounter}", "total"), times="450")), total=0)
    steps = 0
    while jobs := due(conn):
        assert isinstance(continue_loop(conn, jobs[0]), ItemDone)
        steps += 1
    assert (steps, variables(conn, case)) == (-(-450 // BATCH) - 1, {"total": sum(range(450))})


def test_S37_a_worker_killed_before_its_commit_loses_nothing_and_doubles_nothing(conn: Connection, clock: Clock) -> None:
    case = begin(conn, tasks(BATCH + 50))
    (lease,) = due(conn)
    before = everything(conn)
    install("command.before_commit=raise:once")
    with pytest.raises(FailPointRaised):
        continue_loop(conn, lease)
    assert everything(conn) == before
    clock.advance(seconds=31)
    recover_expired(conn, limit=10)
    (again,) = due(conn)
    assert isinstance(continue_loop(conn, again), ItemDone)
    assert numbers(conn, case) == list(range(BATCH + 50))


def test_S37_a_step_that_landed_is_told_so_and_not_taken_again(conn: Connection) -> None:
    case = begin(conn, tasks(BATCH + 50))
    (lease,) = due(conn)
    assert continue_loop(conn, lease) == ItemDone(lease.item_id, lease.number, case)
    repeated = continue_loop(conn, lease)
    assert isinstance(repeated, ItemDone)
    assert repeated.repeated
    assert open_tasks(conn, case) == BATCH + 50


def test_R4_a_lost_lease_begins_nothing(conn: Connection, clock: Clock) -> None:
    case = begin(conn, tasks(BATCH + 50))
    (lease,) = due(conn)
    clock.advance(seconds=31)
    recover_expired(conn, limit=10)
    refused = continue_loop(conn, lease)
    assert isinstance(refused, Rejected)
    assert (refused.refusal, open_tasks(conn, case)) == (Refusal.LEASE_LOST, BATCH)


def test_S37_a_condition_fulfilled_in_the_middle_takes_the_job_along(conn: Connection) -> None:
    case = begin(conn, tasks(BATCH + 50, until="${nrOfCompletedInstances == 1}"))
    task = one(conn, "UPDATE user_task SET status = 'claimed', assignee = 'ada', assigned_at = baton_clock() WHERE id IN"
                     " (SELECT id FROM user_task WHERE instance_id = %s LIMIT 1) RETURNING id", case)  # fmt: skip
    assert isinstance(complete_task(conn, task, actor=ADA, variables={}, request_id=None), TaskCompleted)
    assert (due(conn), open_tasks(conn, case), left(conn, case)) == ([], 0, {"token": 1, "scope": 1})


def test_S37_a_boundary_event_in_the_middle_takes_the_job_along(conn: Connection, clock: Clock) -> None:
    case = begin(conn, tasks(BATCH + 50))
    (early,) = due(conn, lease_seconds=7_200)
    clock.advance(seconds=3_601)
    (timer,) = due(conn, "timer")
    assert isinstance(fire_timer(conn, timer), ItemDone)
    assert (open_tasks(conn, case), left(conn, case)) == (0, {"token": 1, "scope": 1})
    late = continue_loop(conn, early)
    assert isinstance(late, Rejected)
    assert late.refusal is Refusal.LEASE_LOST


def test_S37_a_case_marked_for_its_end_begins_no_more(conn: Connection) -> None:
    case = begin(conn, tasks(5 * BATCH))
    for _ in range(3):
        (lease,) = due(conn)
        continue_loop(conn, lease)
    (lease,) = due(conn)
    assert isinstance(cancel_instance(conn, case, actor=OP, reason="", request_id=None), InstanceCancelled)
    refused = continue_loop(conn, lease)
    assert isinstance(refused, Rejected)
    assert refused.refusal is Refusal.INSTANCE_CANCELLING


def test_S37_a_collection_changed_in_the_middle_is_an_incident_that_a_retry_mends(conn: Connection) -> None:
    case = begin(conn, model("start -> x -> after -> end", x=several(user(), of="${items}")), items=[*range(BATCH + 5)])
    change = "UPDATE variable SET value = %s::jsonb WHERE name = 'items'"
    conn.execute(change, ("[1]",))
    (lease,) = due(conn)
    failed = continue_loop(conn, lease)
    assert isinstance(failed, ItemFailed)
    assert failed.status == "failed"
    told = one(conn, "SELECT message FROM incident WHERE instance_id = %s", case)
    assert told == f"x: expected the collection to keep its {BATCH + 5} items, found 1"
    conn.execute(change, (str([*range(BATCH + 5)]),))
    assert isinstance(retry_item(conn, "job", lease.item_id, actor=OP, attempts=1, request_id=None), ItemRetried)
    (again,) = due(conn)
    assert isinstance(continue_loop(conn, again), ItemDone)
    assert open_tasks(conn, case) == BATCH + 5
