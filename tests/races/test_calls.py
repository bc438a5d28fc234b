"""Races on a case of several processes: whoever moves any of its instances holds the root."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from engine.bpmn.definition import ProcessDefinition
from engine.commands.cancel import cancel_instance
from engine.commands.complete_task import complete_task
from engine.commands.jobs import fire_timer
from engine.commands.outcome import InstanceCancelled, ItemDone, Refusal, Rejected, TaskCompleted
from engine.db.session import connect
from engine.expressions import parse
from tests import rows
from tests.cast import ADA, BO, OP, engage
from tests.commands import cases
from tests.conftest import Clock
from tests.core.models import boundary, call, model, par, user
from tests.races.contest import Connection, Contender, contest, held_at

ROOT_ROW = "SELECT 1 FROM process_instance WHERE id = %s FOR UPDATE"
ADAS, BOS = user(assignee=parse("ada")), user(assignee=parse("bo"))


def named(key: str, definition: ProcessDefinition) -> ProcessDefinition:
    return replace(definition, key=key, name=key.title())


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    engage(committed_db)
    return committed_db


@pytest.fixture
def root(conn: Connection) -> UUID:
    """An order that waits for a check; after an hour it waits no longer."""
    cases.deployed(conn, named("check", model("start -> look -> end", look=ADAS)))
    late = boundary("ask", after="PT1H")
    cases.deployed(
        conn,
        named(
            "order", model("start -> ask -> ship -> end", "late -> other -> end", ask=call("check"), ship=user(), other=user(), late=late)
        ),
    )
    return cases.started(conn, "order").instance_id


def complete(task: UUID, actor: Any = ADA) -> Any:
    return lambda c: complete_task(c, task, actor=actor, variables={}, request_id=None)


def cancel(root: UUID) -> Any:
    return lambda c: cancel_instance(c, root, actor=OP, reason="", request_id=None)


def statuses(conn: Connection, root: UUID) -> list[str]:
    """Of the root, then of what it called."""
    found = conn.execute("SELECT status FROM process_instance WHERE root_id = %s ORDER BY id", (root,)).fetchall()
    return [row[0] for row in found]


@pytest.mark.parametrize("first", ["completion", "cancel"])
def test_a_completion_in_the_called_process_and_a_cancel_of_the_case(conn: Connection, database_url: str, root: UUID, first: str) -> None:
    acts = [complete(cases.the_task(conn, "look")), cancel(root)]
    if first == "completion":
        completed, cancelled = contest(database_url, ROOT_ROW, (root,), *acts)
        assert isinstance(completed, TaskCompleted)
        assert statuses(conn, root) == ["cancelled", "completed"]
    else:
        cancelled, completed = contest(database_url, ROOT_ROW, (root,), *reversed(acts))
        assert isinstance(completed, Rejected) and completed.refusal is Refusal.ALREADY_CANCELLED
        assert statuses(conn, root) == ["cancelled", "cancelled"]
    assert cancelled == InstanceCancelled(root)
    assert rows.one(conn, "SELECT count(*) FROM token") == 0 and rows.one(conn, "SELECT count(*) FROM scope") == 0


@pytest.mark.parametrize("first", ["completion", "timer"])
def test_the_end_of_the_called_process_and_the_timer_of_the_call(
    conn: Connection, database_url: str, clock: Clock, root: UUID, first: str
) -> None:
    task = cases.the_task(conn, "look")
    clock.advance(hours=2)
    (lease,) = cases.acquired(conn)
    acts = [complete(task), lambda c: fire_timer(c, lease)]
    if first == "completion":
        completed, fired = contest(database_url, ROOT_ROW, (root,), *acts)
        assert isinstance(completed, TaskCompleted)
        assert isinstance(fired, Rejected) and fired.refusal is Refusal.LEASE_LOST
        assert cases.places(conn, root) == [("ship", "waiting")] and statuses(conn, root) == ["running", "completed"]
    else:
        fired, completed = contest(database_url, ROOT_ROW, (root,), *reversed(acts))
        assert isinstance(fired, ItemDone)
        assert isinstance(completed, Rejected) and completed.refusal is Refusal.ALREADY_CANCELLED
        assert cases.places(conn, root) == [("other", "waiting")] and statuses(conn, root) == ["running", "cancelled"]


def test_two_called_processes_that_end_at_once_join_in_their_caller(conn: Connection, database_url: str) -> None:
    cases.deployed(conn, named("one", model("start -> a -> end", a=ADAS)))
    cases.deployed(conn, named("two", model("start -> b -> end", b=BOS)))
    both = model(
        "start -> par -> x -> par2 -> ship -> end", "par -> y -> par2", par=par(), par2=par(), x=call("one"), y=call("two"), ship=user()
    )
    cases.deployed(conn, named("both", both))
    root = cases.started(conn, "both").instance_id
    acts = [complete(cases.the_task(conn, "a")), complete(cases.the_task(conn, "b"), BO)]
    outcomes = contest(database_url, ROOT_ROW, (root,), *acts)
    assert all(isinstance(outcome, TaskCompleted) for outcome in outcomes)
    assert cases.places(conn, root) == [("ship", "waiting")]
    assert cases.kinds(conn, root).count("join_passed") == 1


@pytest.fixture
def about_to_call(conn: Connection) -> tuple[UUID, UUID, UUID]:
    """A definition that is called, a case whose next step calls it, and its task; this process has called it before."""
    check = cases.deployed(conn, named("check", model("start -> look -> end", look=user())))
    cases.deployed(conn, named("order", model("start -> first -> ask -> end", first=ADAS, ask=call("check"))))
    earlier, root = (cases.started(conn, "order").instance_id for _ in range(2))
    complete(cases.the_task(conn, "first", instance_id=earlier))(conn)
    return check, root, cases.the_task(conn, "first", instance_id=root)


def test_a_suspension_waits_for_a_call_that_is_under_way(
    conn: Connection, database_url: str, tmp_path: Path, about_to_call: tuple[UUID, UUID, UUID]
) -> None:
    check, root, task = about_to_call
    suspend = "UPDATE process_definition SET status = 'suspended' WHERE id = (SELECT id FROM process_definition WHERE id = %s FOR UPDATE)"
    with held_at(database_url, "command.before_commit", complete(task), tmp_path) as held:
        suspension = Contender(database_url, lambda c: c.execute(suspend, (check,)).rowcount).seen_waiting(conn)
    assert isinstance(held.outcome(), TaskCompleted) and suspension.outcome() == 1
    assert rows.one(conn, "SELECT count(*) FROM process_instance WHERE definition_id = %s AND parent_id = %s", check, root) == 1


def test_a_call_that_waited_for_a_suspension_calls_nothing(
    conn: Connection, database_url: str, about_to_call: tuple[UUID, UUID, UUID]
) -> None:
    check, root, task = about_to_call
    with connect(database_url) as suspender:
        suspender.execute("BEGIN")
        suspender.execute("SELECT 1 FROM process_definition WHERE id = %s FOR UPDATE", (check,))
        waiting = Contender(database_url, complete(task)).seen_waiting(conn)
        suspender.execute("UPDATE process_definition SET status = 'suspended' WHERE id = %s", (check,))
        suspender.execute("COMMIT")
    assert isinstance(waiting.outcome(), TaskCompleted)
    assert cases.places(conn, root) == [("ask", "failed")]
    assert rows.one(conn, "SELECT kind FROM incident") == "not_callable"


def test_a_step_of_a_call_tree_that_is_cut_off_before_its_commit_has_moved_nothing(
    conn: Connection, database_url: str, tmp_path: Path, root: UUID
) -> None:
    """R6: the end of the called process and what its caller does then are one transaction, or none."""
    task = cases.the_task(conn, "look")
    before = rows.everything(conn)
    with held_at(database_url, "command.before_commit", complete(task), tmp_path) as held:
        conn.execute("SELECT pg_terminate_backend(%s)", (held.pid,))
    with pytest.raises(Exception, match=r"terminat|closed"):
        held.outcome()
    assert rows.everything(conn) == before
    assert isinstance(complete(task)(conn), TaskCompleted)
    assert cases.places(conn, root) == [("ship", "waiting")]
