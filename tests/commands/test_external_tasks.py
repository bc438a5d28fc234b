"""External tasks: acquired by programs outside, ended under the lease number that they were given."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import errors

from engine.bpmn.definition import ProcessDefinition
from engine.commands import external_tasks
from engine.commands.external_tasks import (
    LeasedTask,
    acquire_external_tasks,
    complete_external_task,
    fail_external_task,
    release_external_task,
    renew_external_task,
    throw_external_error,
)
from engine.commands.outcome import ItemDone, ItemFailed, ItemReleased, Refusal, Rejected, Renewed
from engine.db.acquire import recover_expired
from engine.ids import new_id
from tests import rows
from tests.cast import ADA, OP
from tests.commands import cases
from tests.conftest import Clock
from tests.core.models import boundary, model, service, user

Connection = psycopg.Connection[Any]
STRANGER = type(OP)("op", role="administrator", tenant_id="other")


def outside(**more: Any) -> ProcessDefinition:
    return model("start -> work -> next -> end", work=service("score", work="external", **more), next=user())


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    cases.deployed(committed_db, outside(inputs={"amount": "${net * 2}"}))
    cases.started(committed_db, variables={"net": 21, "who": "Ada"}, business_key="order-7")
    return committed_db


def take(conn: Connection, worker: str = "client-1", **more: Any) -> LeasedTask:
    [task] = acquire_external_tasks(conn, actor=OP, worker_id=worker, topics=["score"], lease_seconds=5, **more)
    return task


def complete(conn: Connection, task: LeasedTask, **more: Any) -> Any:
    values = {"variables": {"score": 7}, **more}
    return complete_external_task(conn, task.id, actor=OP, lease_number=task.lease_number, **values)


def test_a_client_is_given_the_variables_and_inputs_of_its_task(conn: Connection) -> None:
    task = take(conn)
    assert task.variables == {"net": 21, "who": "Ada", "amount": 42}
    assert (task.topic, task.element_id, task.business_key, task.attempts, task.lease_number) == ("score", "work", "order-7", 1, 1)
    assert acquire_external_tasks(conn, actor=OP, worker_id="client-2", topics=["score"]) == []


def test_R5_tasks_that_were_leased_and_could_not_be_read_are_free_again_with_their_attempt(
    conn: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(external_tasks, "_BATCH", "SELECT pg_sleep(30), %(ids)s::uuid[]")
        conn.execute("SET statement_timeout = '20ms'")
        with pytest.raises(errors.QueryCanceled):
            take(conn)
        conn.execute("SET statement_timeout = 0")
    assert take(conn).attempts == 1
    assert rows.one(conn, "SELECT count(*) FROM history WHERE kind = 'external_task_released' AND actor = 'engine'") == 1


def test_completing_moves_the_case_and_the_history_keeps_the_lease(conn: Connection) -> None:
    task = take(conn)
    done = complete(conn, task)
    assert done == ItemDone(task.id, 1, task.instance_id)
    assert cases.places(conn, task.instance_id) == [("next", "waiting")]
    assert cases.variables(conn, task.instance_id)["score"] == 7
    data = rows.one(conn, "SELECT data FROM history WHERE kind = 'external_task_completed'")
    assert (data["lease_number"], data["attempt"], data["owner"]) == (1, 1, "client-1")
    assert rows.one(conn, "SELECT count(*) FROM external_task") == 0


def test_R6_the_same_completion_again_is_told_that_it_landed_and_moves_nothing(conn: Connection) -> None:
    task = take(conn)
    complete(conn, task)
    before = rows.everything(conn)
    assert complete(conn, task) == ItemDone(task.id, 1, task.instance_id, repeated=True)
    assert rows.everything(conn) == before


def test_S28_R4_a_client_that_lost_its_lease_changes_nothing_whatever_it_answers(conn: Connection, clock: Clock) -> None:
    late = take(conn)
    clock.advance(seconds=6)
    recover_expired(conn, limit=10)
    fresh = take(conn, "client-2")
    assert (fresh.id, fresh.lease_number, fresh.attempts) == (late.id, 2, 2)

    before = rows.everything(conn)
    answers = [
        complete(conn, late),
        complete(conn, late, request_id="press-1"),
        fail_external_task(conn, late.id, actor=OP, lease_number=1, error="x"),
        throw_external_error(conn, late.id, actor=OP, lease_number=1, code="E"),
        renew_external_task(conn, late.id, actor=OP, lease_number=1, lease_seconds=60),
        release_external_task(conn, late.id, actor=OP, lease_number=1),
    ]
    assert [answer.refusal for answer in answers] == [Refusal.LEASE_LOST] * 6
    assert rows.everything(conn) == before
    assert isinstance(complete(conn, fresh), ItemDone)


def test_S28_a_client_that_renews_keeps_its_task(conn: Connection, clock: Clock) -> None:
    task = take(conn)
    for _ in range(3):
        clock.advance(seconds=4)
        renewed = renew_external_task(conn, task.id, actor=OP, lease_number=1, lease_seconds=5)
        assert isinstance(renewed, Renewed)
        assert recover_expired(conn, limit=10) == []
    assert isinstance(complete(conn, task), ItemDone)


def test_a_bpmn_error_goes_to_the_boundary_event_that_catches_it(committed_db: Connection) -> None:
    caught = model(
        "start -> work -> end",
        "oops -> repair -> end2",
        work=service("score", work="external"),
        oops=boundary("work", error="E"),
        repair=user(),
    )
    cases.deployed(committed_db, caught)
    started = cases.started(committed_db)
    task = take(committed_db)
    done = throw_external_error(committed_db, task.id, actor=OP, lease_number=1, code="E", variables={"why": "no ink"})
    assert isinstance(done, ItemDone)
    assert cases.places(committed_db, started.instance_id) == [("repair", "waiting")]
    again = throw_external_error(committed_db, task.id, actor=OP, lease_number=1, code="E", variables={"why": "no ink"})
    assert isinstance(again, ItemDone)
    assert again.repeated


def test_a_bpmn_error_that_nothing_catches_is_an_incident(conn: Connection) -> None:
    task = take(conn)
    failed = throw_external_error(conn, task.id, actor=OP, lease_number=1, code="E", message="no ink")
    assert isinstance(failed, ItemFailed)
    assert (failed.status, rows.one(conn, "SELECT kind FROM incident")) == ("failed", "uncaught_error")
    assert throw_external_error(conn, task.id, actor=OP, lease_number=1, code="E", message="no ink") == failed


def test_a_failure_waits_as_asked_and_the_last_one_is_an_incident(conn: Connection, clock: Clock) -> None:
    for attempt in (1, 2, 3):
        task = take(conn)
        failed = fail_external_task(conn, task.id, actor=OP, lease_number=task.lease_number, error="no ink", retry_in=60)
        assert isinstance(failed, ItemFailed)
        assert failed.attempts == attempt
        assert fail_external_task(conn, task.id, actor=OP, lease_number=task.lease_number, error="no ink", retry_in=60) == failed
        clock.advance(seconds=67)
    assert failed.status == "failed"
    assert rows.one(conn, "SELECT count(*) FROM incident WHERE external_task_id = %s", task.id) == 1


def test_R5_releasing_gives_the_attempt_back(conn: Connection) -> None:
    task = take(conn)
    for _ in range(2):
        assert release_external_task(conn, task.id, actor=OP, lease_number=1) == ItemReleased(task.id)
    again = take(conn)
    assert (again.lease_number, again.attempts) == (2, 1)


def test_a_topic_may_have_a_lease_of_its_own(conn: Connection) -> None:
    [task] = acquire_external_tasks(conn, actor=OP, worker_id="c", topics={"score": 600.0, "other": 5.0})
    assert task.lease_expires_at - rows.one(conn, "SELECT baton_now()") > timedelta(seconds=590)


def test_R13_only_operators_of_the_tenant_work_on_external_tasks(conn: Connection) -> None:
    task = take(conn)
    before = rows.everything(conn)

    def all_of(task_id: UUID, actor: Any) -> set[Refusal]:
        common: dict[str, Any] = {"actor": actor, "lease_number": 1}
        answers = [
            complete_external_task(conn, task_id, variables={}, **common),
            fail_external_task(conn, task_id, error="x", **common),
            throw_external_error(conn, task_id, code="E", **common),
            renew_external_task(conn, task_id, lease_seconds=5, **common),
            release_external_task(conn, task_id, **common),
        ]
        assert all(isinstance(answer, Rejected) for answer in answers)
        return {answer.refusal for answer in answers if isinstance(answer, Rejected)}

    assert all_of(task.id, ADA) == {Refusal.NOT_ALLOWED}
    assert all_of(task.id, STRANGER) == all_of(new_id(), OP) == {Refusal.NOT_FOUND}
    assert acquire_external_tasks(conn, actor=ADA, worker_id="c", topics=["score"]) == Rejected(Refusal.NOT_ALLOWED)
    assert rows.everything(conn) == before


def test_what_cannot_be_stored_or_asked_for_is_invalid(conn: Connection) -> None:
    task = take(conn)
    wrong = complete(conn, task, variables={"": 1})
    assert (wrong.refusal, len(wrong.problems)) == (Refusal.INVALID, 1)
    assert renew_external_task(conn, task.id, actor=OP, lease_number=1, lease_seconds=0).refusal is Refusal.INVALID
    for asked in ({"topics": []}, {"worker_id": " "}, {"limit": 0}, {"lease_seconds": -1}):
        values: dict[str, Any] = {"worker_id": "c", "topics": ["score"], **asked}
        refused = acquire_external_tasks(conn, actor=OP, **values)
        assert isinstance(refused, Rejected)
        assert [p.field for p in refused.problems] == list(asked)


def test_R10_a_refused_completion_stays_refused_under_its_request_id(conn: Connection) -> None:
    task = take(conn)
    conn.execute("UPDATE process_instance SET mark = 'suspended'")
    first = complete(conn, task, request_id="1")
    assert first.refusal is Refusal.INSTANCE_SUSPENDED
    conn.execute("UPDATE process_instance SET mark = NULL")
    assert complete(conn, task, request_id="1") == first
    assert isinstance(complete(conn, task, request_id="2"), ItemDone)
