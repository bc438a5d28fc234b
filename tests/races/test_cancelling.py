"""A large cancel, its mark and its steps, meets what people and workers do at the same time."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from engine.commands import cancel
from engine.commands.cancel import cancel_instance, cancel_some
from engine.commands.complete_task import complete_task
from engine.commands.outcome import CaseShrunk, Claimed, InstanceCancelled, ItemDone, Lease, Refusal, Rejected, TaskCompleted
from engine.commands.tasks import claim
from engine.db.acquire import acquire_jobs, recover_expired
from engine.db.session import connect
from engine.expressions import parse
from tests import rows
from tests.cast import ADA, OP, ROOT, engage
from tests.commands import cases
from tests.conftest import Clock
from tests.core.models import model, user
from tests.races.contest import Connection, Contender, contest, held_at

ROOT_ROW = "SELECT 1 FROM process_instance WHERE id = %s FOR NO KEY UPDATE"
GROUP = user(candidate_groups=(parse("${'billing'}"),))


@pytest.fixture
def conn(committed_db: Connection, monkeypatch: pytest.MonkeyPatch) -> Connection:
    engage(committed_db)
    monkeypatch.setattr(cancel, "AT_ONCE", 0)  # any case is a large one
    return committed_db


def case_of(conn: Connection) -> tuple[UUID, UUID]:
    cases.deployed(conn, model("start -> a -> end", a=GROUP))
    case = cases.started(conn).instance_id
    return case, cases.the_task(conn, "a")


def marking(case: UUID, request_id: str | None = None, actor: Any = OP) -> Any:
    return lambda c: cancel_instance(c, case, actor=actor, reason="", request_id=request_id)


def marked(conn: Connection, case: UUID) -> Lease:
    assert marking(case)(conn) == InstanceCancelled(case, finishing=True)
    [item] = acquire_jobs(conn, owner="w", capabilities=[("cancel", "")], limit=1, lease_seconds=30, workers=1)
    return cases.lease_of(item)


def finish(conn: Connection, lease: Lease) -> None:
    while isinstance(outcome := cancel_some(conn, lease), CaseShrunk):
        pass
    assert isinstance(outcome, ItemDone)


def claiming(task: UUID) -> Any:
    return lambda c: claim(c, task, actor=ADA, request_id=None)


def test_a_claim_beside_a_mark_that_has_not_committed_wins_and_the_steps_end_its_task(
    conn: Connection, database_url: str, tmp_path: Path
) -> None:
    case, task = case_of(conn)
    with held_at(database_url, "command.before_commit", marking(case), tmp_path) as mark:
        assert isinstance(claiming(task)(conn), Claimed)  # it waits for nobody
    assert mark.outcome() == InstanceCancelled(case, finishing=True)
    again = claim(conn, task, actor=ADA, request_id="2")
    assert isinstance(again, Claimed) and again.repeated  # what is mine stays mine until the step that ends it
    [item] = acquire_jobs(conn, owner="w", capabilities=[("cancel", "")], limit=1, lease_seconds=30, workers=1)
    finish(conn, cases.lease_of(item))
    assert rows.columns(conn, "user_task", task, "status", "ended_by") == ("cancelled", "op")


def test_a_claim_after_the_mark_is_refused_before_any_step_was_taken(conn: Connection) -> None:
    case, task = case_of(conn)
    marked(conn, case)
    refused = claiming(task)(conn)
    assert isinstance(refused, Rejected) and refused.refusal is Refusal.INSTANCE_CANCELLING
    assert rows.columns(conn, "user_task", task, "status") == ("open",)


def test_a_step_waits_for_a_claim_under_way_and_ends_its_task(conn: Connection, database_url: str, tmp_path: Path) -> None:
    case, task = case_of(conn)
    with held_at(database_url, "command.before_commit", claiming(task), tmp_path) as held:
        lease = marked(conn, case)
        step = Contender(database_url, lambda c: cancel_some(c, lease)).seen_waiting(conn)
    assert isinstance(held.outcome(), Claimed)
    assert step.outcome() == CaseShrunk(lease.item_id, 2)  # the task and its token
    assert rows.columns(conn, "user_task", task, "status", "assignee", "ended_by") == ("cancelled", "ada", "op")
    finish(conn, lease)


def test_a_claim_that_waits_for_a_step_is_told_that_the_task_was_cancelled(conn: Connection, database_url: str, tmp_path: Path) -> None:
    case, task = case_of(conn)
    lease = marked(conn, case)
    conn.execute("UPDATE process_instance SET mark = NULL WHERE id = %s", (case,))  # as the claim's older snapshot has it
    with held_at(database_url, "command.before_commit", lambda c: cancel_some(c, lease), tmp_path) as held:
        late = Contender(database_url, claiming(task)).seen_waiting(conn)
    assert isinstance(held.outcome(), CaseShrunk)
    refused = late.outcome()
    assert (refused.refusal, refused.by) == (Refusal.ALREADY_CANCELLED, "op")


@pytest.mark.parametrize("first", ["completion", "mark"])
def test_a_completion_and_a_mark_let_the_first_go_on(conn: Connection, database_url: str, first: str) -> None:
    cases.deployed(conn, model("start -> a -> b -> end", a=user(assignee=parse("${'ada'}")), b=user()))
    case = cases.started(conn).instance_id
    task = cases.the_task(conn, "a")
    acts = [lambda c: complete_task(c, task, actor=ADA, variables={}, request_id=None), marking(case)]
    if first == "mark":
        cancelled, completed = contest(database_url, ROOT_ROW, (case,), *reversed(acts))
        assert completed.refusal is Refusal.INSTANCE_CANCELLING
    else:
        completed, cancelled = contest(database_url, ROOT_ROW, (case,), *acts)
        assert isinstance(completed, TaskCompleted)
    assert cancelled == InstanceCancelled(case, finishing=True)
    assert rows.columns(conn, "process_instance", case, "mark") == ("cancelling",)


def test_two_marks_of_one_case_write_one_job(conn: Connection, database_url: str) -> None:
    case, _ = case_of(conn)
    won, lost = contest(database_url, ROOT_ROW, (case,), marking(case, "1"), marking(case, "1", ROOT))
    assert won == InstanceCancelled(case, finishing=True)
    assert lost.refusal is Refusal.INSTANCE_CANCELLING
    assert rows.one(conn, "SELECT count(*) FROM job WHERE kind = 'cancel'") == 1
    assert rows.one(conn, "SELECT count(*) FROM audit") == 1


def test_R10_two_presses_of_one_mark_write_one_job_and_get_one_answer(conn: Connection, database_url: str) -> None:
    case, _ = case_of(conn)
    first, second = contest(database_url, ROOT_ROW, (case,), marking(case, "1"), marking(case, "1"))
    assert first == second == InstanceCancelled(case, finishing=True)
    assert rows.one(conn, "SELECT count(*) FROM job WHERE kind = 'cancel'") == 1


def test_a_step_waits_for_whoever_holds_the_case(conn: Connection, database_url: str) -> None:
    case, _ = case_of(conn)
    lease = marked(conn, case)
    [outcome] = contest(database_url, ROOT_ROW, (case,), lambda c: cancel_some(c, lease))
    assert isinstance(outcome, CaseShrunk)


def test_R4_a_step_that_waited_for_the_recovery_of_its_job_does_nothing(conn: Connection, database_url: str, clock: Clock) -> None:
    case, task = case_of(conn)
    lease = marked(conn, case)
    clock.advance(seconds=31)
    with connect(database_url) as recoverer:
        recoverer.execute("BEGIN")
        assert len(recover_expired(recoverer, limit=1)) == 1
        step = Contender(database_url, lambda c: cancel_some(c, lease)).seen_waiting(conn)
        recoverer.execute("COMMIT")
        assert step.outcome().refusal is Refusal.LEASE_LOST
    assert rows.columns(conn, "user_task", task, "status") == ("open",)
