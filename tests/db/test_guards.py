"""A writing statement whose guards are stale writes zero rows in every table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import psycopg
import pytest

from engine.commands.outcome import InstanceStarted
from engine.commands.requests import request_for
from engine.commands.start import NewCase, prepare
from engine.commands.step import Step, plan
from engine.commands.tasks import assign, claim, unclaim
from engine.core.snapshot import Completed, Trigger
from engine.core.values import typed
from engine.db.apply import Change, write
from engine.db.load import Loaded, read_case
from engine.expressions import parse
from engine.ids import new_id
from tests.cast import ADA, BO, OP, engage
from tests.commands.cases import acquired, deployed, started, the_task
from tests.core.models import boundary, model, service, user
from tests.rows import everything, one


@pytest.fixture
def conn(committed_db: psycopg.Connection) -> psycopg.Connection:
    engage(committed_db)
    group = (parse("${'billing'}"),)
    deployed(
        committed_db,
        model(
            "start -> score -> check -> pay -> end",
            "late -> end2",
            score=service("work"),
            check=user(candidate_groups=group),
            pay=service("outside", work="external"),
            late=boundary("check", after="PT1H"),
        ),
    )
    return committed_db


def all_rows(conn: psycopg.Connection) -> dict[str, list[Any]]:
    return {**everything(conn), "request": conn.execute("SELECT * FROM request ORDER BY id").fetchall()}


def planned(conn: psycopg.Connection, kind: str, leaf_id: UUID, trigger: Callable[[Loaded], Trigger]) -> Change:
    """The write of a step, decided on what is there now."""
    request = request_for(ADA, "r1", "test", leaf_id)
    step = Step(kind, leaf_id, "ada", lambda _: None, trigger, lambda *_: InstanceStarted(leaf_id, leaf_id, "k", 1), request)
    loaded = read_case(conn, kind, leaf_id)
    assert loaded is not None
    return plan(conn, step, loaded)


def completing(kind: str) -> Callable[[Loaded], Trigger]:
    def trigger(loaded: Loaded) -> Trigger:
        assert loaded.leaf.token_id is not None
        return Completed(loaded.leaf.token_id, {"x": typed(1)}, f"{kind}_completed", {"item_id": str(loaded.leaf.id)})

    return trigger


STALE_ROOT = {
    "another step was taken": "UPDATE process_instance SET revision = revision + 1",
    "the case has ended": "UPDATE process_instance SET status = 'completed', ended_at = baton_clock()",
    "the case is being cancelled": "UPDATE process_instance SET mark = 'cancelling'",
    "the case was suspended": "UPDATE process_instance SET mark = 'suspended'",
}
STALE_JOB = {
    **STALE_ROOT,
    "the lease was given to another": "UPDATE job SET lease_number = lease_number + 1",
    "the lease was taken back": "UPDATE job SET status = 'available', lease_owner = NULL, lease_expires_at = NULL, leased_at = NULL",
    "the job is gone": "DELETE FROM job",
}


@pytest.mark.parametrize("meanwhile", STALE_JOB)
def test_R4_a_job_whose_guard_is_stale_changes_nothing(conn: psycopg.Connection, meanwhile: str) -> None:
    started(conn)
    (lease,) = acquired(conn)
    change = planned(conn, "job", lease.item_id, completing("job"))
    conn.execute(STALE_JOB[meanwhile])
    before = all_rows(conn)

    assert write(conn, change) is None
    assert all_rows(conn) == before


STALE_TASK: dict[str, Any] = {
    **STALE_ROOT,
    "it was given to another": lambda conn, task: assign(conn, task, actor=OP, assignee="bo", request_id="x"),
    "it was given back": lambda conn, task: unclaim(conn, task, actor=ADA, request_id="x"),
    "it was given back and claimed by another": lambda conn, task: (
        unclaim(conn, task, actor=ADA, request_id="x"),
        claim(conn, task, actor=BO, request_id="y"),
    ),
}


def claimed(conn: psycopg.Connection) -> UUID:
    started(conn)
    (lease,) = acquired(conn)
    assert write(conn, planned(conn, "job", lease.item_id, completing("job"))) is not None
    conn.execute("DELETE FROM request")
    task = the_task(conn, "check")
    claim(conn, task, actor=ADA, request_id="c")
    return task


@pytest.mark.parametrize("meanwhile", STALE_TASK)
def test_R8_a_task_whose_guard_is_stale_changes_nothing(conn: psycopg.Connection, meanwhile: str) -> None:
    task = claimed(conn)
    change = planned(conn, "user_task", task, completing("task"))
    what = STALE_TASK[meanwhile]
    if callable(what):
        what(conn, task)
    else:
        conn.execute(what)
    before = all_rows(conn)

    assert write(conn, change) is None
    assert all_rows(conn) == before


def test_the_same_write_goes_through_when_its_guards_hold(conn: psycopg.Connection) -> None:
    task = claimed(conn)
    revision = one(conn, "SELECT revision FROM process_instance")
    assert write(conn, planned(conn, "user_task", task, completing("task"))) is not None
    assert one(conn, "SELECT revision FROM process_instance") == revision + 1
    assert one(conn, "SELECT count(*) FROM external_task") == 1 and one(conn, "SELECT count(*) FROM job") == 0
    assert one(conn, "SELECT count(*) FROM request WHERE id = 'r1'") == 1


@pytest.mark.parametrize("state", ["suspended", "deleting"])
def test_a_start_whose_definition_is_no_longer_active_writes_nothing(conn: psycopg.Connection, state: str) -> None:
    row = conn.execute("SELECT id, baton_now() FROM process_definition").fetchone()
    assert row is not None
    definition = model("start -> score -> end", score=service())
    case = NewCase(row[0], definition, "", "start", "none", {"x": typed(1)}, None, "ada", row[1])
    outcome = InstanceStarted(new_id(), new_id(), "model", 1)
    change, _ = prepare(conn, case, request=request_for(ADA, "r1", "test", 1), outcome=lambda _: outcome)
    conn.execute("UPDATE process_definition SET status = %s", (state,))
    before = all_rows(conn)

    assert write(conn, change) is None
    assert all_rows(conn) == before


@pytest.mark.parametrize(
    "meanwhile",
    [
        "UPDATE process_definition SET status = 'suspended'",
        "UPDATE job SET lease_number = lease_number + 1",
        "UPDATE job SET status = 'available', lease_owner = NULL, lease_expires_at = NULL, leased_at = NULL",
    ],
)
def test_R4_a_start_by_a_job_whose_guard_is_stale_writes_nothing(conn: psycopg.Connection, meanwhile: str) -> None:
    started(conn)
    (lease,) = acquired(conn)  # any leased job: the member looks at its fence alone
    row = conn.execute("SELECT id, baton_now() FROM process_definition").fetchone()
    assert row is not None
    case = NewCase(row[0], model("start -> score -> end", score=service()), "", "start", "timer", {}, None, "engine", row[1])
    change, _ = prepare(conn, case, leaf="start_by_job", leaf_id=lease.item_id, fence=lease.number)
    conn.execute(meanwhile)
    before = all_rows(conn)

    assert write(conn, change) is None
    assert all_rows(conn) == before
