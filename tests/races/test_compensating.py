"""Compensation meets what happens at the same time: other throws, completions, a cancel, a lost connection. Nothing twice, nothing lost."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest

from engine.bpmn.definition import ProcessDefinition
from engine.commands.cancel import cancel_instance
from engine.commands.complete_task import complete_task
from engine.commands.outcome import InstanceCancelled, Refusal, Rejected, TaskCompleted
from engine.expressions import parse
from tests import rows
from tests.cast import ADA, OP, engage
from tests.commands import cases
from tests.core.models import boundary, cancel_end, end, model, par, start, transaction, undo, user
from tests.races.contest import Connection, contest, held_at

ROOT_ROW = "SELECT 1 FROM process_instance WHERE id = %s FOR UPDATE"
ADAS = user(assignee=parse("${'ada'}"))


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    engage(committed_db)
    return committed_db


def case_of(conn: Connection, definition: ProcessDefinition, *first: str) -> UUID:
    """A case in which these tasks are done."""
    cases.deployed(conn, definition)
    case = cases.started(conn).instance_id
    for element in first:
        assert isinstance(completing(conn, element)(conn), TaskCompleted)
    return case


def completing(conn: Connection, element: str) -> Any:
    task = cases.the_task(conn, element)
    return lambda c: complete_task(c, task, actor=ADA, variables={}, request_id=None)


def finish(conn: Connection, case: UUID) -> None:
    """Whatever task is open is done, until there is none."""
    while open_now := conn.execute("SELECT id FROM user_task WHERE status IN ('open', 'claimed') AND instance_id = %s", (case,)).fetchall():
        for (task,) in open_now:
            complete_task(conn, task, actor=ADA, variables={}, request_id=None)
    assert cases.status(conn, case) == "completed"
    assert rows.one(conn, "SELECT count(*) FROM completed_execution") == 0


def undone(conn: Connection, case: UUID) -> Counter[str]:
    found = conn.execute("SELECT element_id FROM history WHERE instance_id = %s AND kind = 'compensation_begun'", (case,))
    return Counter(row[0] for row in found)


def tasks(**elements: Any) -> dict[str, Any]:
    return dict.fromkeys(("a", "b", "c", "one", "two", "no_a", "no_b", "no_c"), ADAS) | elements


TWO_THROWS = model(
    "start -> a -> b -> c -> par1 -> one -> first -> par2 -> end", "par1 -> two -> second -> par2", first=undo(), second=undo(),
    handlers={each: f"no_{each}" for each in "abc"}, **tasks(),
)  # fmt: skip


def test_two_throws_at_once_undo_each_execution_once(conn: Connection, database_url: str) -> None:
    case = case_of(conn, TWO_THROWS, "a", "b", "c")
    outcomes = contest(database_url, ROOT_ROW, (case,), completing(conn, "one"), completing(conn, "two"))
    assert all(isinstance(outcome, TaskCompleted) for outcome in outcomes)
    finish(conn, case)
    assert undone(conn, case) == Counter("abc")


def test_two_handlers_that_complete_at_once_both_go_on(conn: Connection, database_url: str) -> None:
    definition = model(
        "start -> a -> b -> c -> first -> second -> end", first=undo("a", waits=False), second=undo(),
        handlers={each: f"no_{each}" for each in "abc"}, **tasks(),
    )  # fmt: skip
    case = case_of(conn, definition, "a", "b", "c")
    outcomes = contest(database_url, ROOT_ROW, (case,), completing(conn, "no_a"), completing(conn, "no_c"))
    assert all(isinstance(outcome, TaskCompleted) for outcome in outcomes)
    assert cases.the_task(conn, "no_b")
    finish(conn, case)
    assert undone(conn, case) == Counter("abc")


CANCELLED = model(
    "start -> tx -> end", "gone -> end", "s -> par1 -> a -> b -> e", "par1 -> one -> stop", inside={"tx": "s par1 a b e one stop"},
    tx=transaction(), s=start(), e=end(), par1=par(), stop=cancel_end(), gone=boundary("tx", cancel=True),
    handlers={"a": "no_a", "b": "no_b"}, **tasks(),
)  # fmt: skip


@pytest.mark.parametrize("first", ["b", "one"])
def test_a_task_that_completes_while_its_transaction_is_cancelled_is_undone_or_refused(
    conn: Connection, database_url: str, first: str
) -> None:
    case = case_of(conn, CANCELLED, "a")
    acts = {element: completing(conn, element) for element in ("b", "one")}
    second = "one" if first == "b" else "b"
    won, other = contest(database_url, ROOT_ROW, (case,), acts[first], acts[second])
    assert isinstance(won, TaskCompleted)
    if first == "b":
        assert isinstance(other, TaskCompleted)
    else:
        assert isinstance(other, Rejected) and other.refusal is Refusal.ALREADY_CANCELLED
    finish(conn, case)
    assert undone(conn, case) == Counter("ab" if first == "b" else "a")


@pytest.mark.parametrize("first", ["cancel", "handler"])
def test_an_instance_cancelled_while_a_handler_completes_leaves_nothing(conn: Connection, database_url: str, first: str) -> None:
    case = case_of(conn, TWO_THROWS, "a", "b", "c", "one")
    acts = {
        "handler": completing(conn, "no_c"),
        "cancel": lambda c: cancel_instance(c, case, actor=OP, reason="", request_id=None),
    }
    outcomes = dict(zip((first, *(acts.keys() - {first})), contest(
        database_url, ROOT_ROW, (case,), acts[first], acts["cancel" if first == "handler" else "handler"]), strict=True,
    ))  # fmt: skip
    assert isinstance(outcomes["cancel"], InstanceCancelled)
    assert isinstance(outcomes["handler"], TaskCompleted if first == "handler" else Rejected)
    for table in ("completed_execution", "token", "scope", "variable"):
        assert rows.one(conn, f"SELECT count(*) FROM {table}") == 0
    assert rows.one(conn, "SELECT count(*) FROM user_task WHERE status IN ('open', 'claimed')") == 0


def test_a_handler_whose_completion_is_lost_before_it_commits_is_still_open_and_the_next_one_is_kept(
    conn: Connection, database_url: str, tmp_path: Path
) -> None:
    case = case_of(conn, TWO_THROWS, "a", "b", "c", "one")
    before = conn.execute("SELECT id, scope_id, element_id FROM completed_execution ORDER BY id").fetchall()
    with held_at(database_url, "command.before_commit", completing(conn, "no_c"), tmp_path) as held:
        assert rows.one(conn, "SELECT pg_terminate_backend(%s)", held.pid)
    with pytest.raises(psycopg.OperationalError):
        held.outcome()
    assert conn.execute("SELECT id, scope_id, element_id FROM completed_execution ORDER BY id").fetchall() == before
    assert undone(conn, case) == Counter("c")
    assert isinstance(completing(conn, "no_c")(conn), TaskCompleted)
    finish(conn, case)
    assert undone(conn, case) == Counter("abc")
