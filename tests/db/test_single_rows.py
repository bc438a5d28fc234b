"""A row alone of its kind, which travels as parameters, is the row that a document would have made."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import psycopg
import pytest

from engine.core.effects import Effects, NewJob, NewScope, NewTask, NewToken
from engine.core.values import Variable
from engine.db import apply
from engine.db.mix import Mix
from engine.ids import new_id
from tests.db.test_guards_of_every_member import Case, case, user_task

Connection = psycopg.Connection[Any]
WHEN = datetime(2026, 11, 30, 12, 30, 15, 250_000, tzinfo=UTC)
NAMES = ("ada", 'a "quoted" name', "back\\slash", "comma, and {braces}", "NULL", "", " ", "Žofie 💡", "it's")


def _set(type: str, value: Any) -> tuple[str, Callable[[Case], Effects]]:
    return "variable", lambda at: Effects(variables={(at.scope, "x"): Variable(type, value)})


def _task(*values: Any) -> tuple[str, Callable[[Case], Effects]]:
    return "user_task", lambda at: Effects(tasks=[NewTask(new_id(), at.tokens["moved"], "b", *values)])


def _job(kind: str, topic: str, *values: Any) -> tuple[str, Callable[[Case], Effects]]:
    return "job", lambda at: Effects(jobs=[NewJob(new_id(), kind, topic, at.tokens["moved"], "b", *values)])


EFFECTS: dict[str, tuple[str, Callable[[Case], Effects]]] = {
    "a scope": ("scope", lambda at: Effects(new_scopes=[NewScope(new_id(), at.scope, at.tokens["moved"], "sub", (at.scope, at.inner))])),
    "an iteration": (
        "scope",
        lambda at: Effects(new_scopes=[NewScope(new_id(), at.scope, None, None, (at.scope,), {"loop": 3, "over": ["items"], "x": None})]),
    ),
    "a token": ("token", lambda at: Effects(new_tokens=[NewToken(new_id(), at.scope, "b", None, "waiting")])),
    "a token that came": ("token", lambda at: Effects(new_tokens=[NewToken(new_id(), at.scope, 'Prüfen "b"', "f'1", "joining")])),
    "nothing": _set("null", None),
    "a text": _set("string", 'a "text" with \\ and \n'),
    "an empty text": _set("string", ""),
    "a number": _set("integer", 2**63 - 1),
    "a double": _set("double", 1e300),
    "a truth": _set("boolean", False),
    "an object": _set("json", {"a": [1, None, {"b": Decimal("1.5")}]}),
    "an empty list": _set("json", []),
    "a task": _task("B", None, (), (), 50, None, None, ""),
    "a task for many": _task("Prüfung B", None, NAMES, NAMES[1:], 0, WHEN, WHEN, "what\nfor"),
    "a task with an assignee": _task("B", "ada", ("ada",), ("billing",), 100, WHEN, None, "?"),
    "a job": _job("service", "score"),
    "a timer": _job("timer", "", WHEN, None, 9, 1, "R3/PT10S", 100_000, True, {"cycle": "R/PT1H"}),
    "a job that is due in a while": _job("service", "s", None, 3600.25, 0, 100, None, 1, False, {"x": 1}),
}
TABLES = ("scope", "token", "variable", "user_task", "inbox_entry", "job")
MADE_BY_THE_CLOCK = {"created_at", "arrived_at", "available_at", "assigned_at", "ended_at"}


def written(at: Case, effects: Effects) -> dict[str, list[dict[str, Any]]]:
    """The rows that these effects add to the case, but for what the clock says; taken back again."""
    with at.conn.transaction(force_rollback=True):
        before = {table: _rows(at.conn, table) for table in TABLES}
        assert apply.write(at.conn, at.change("user_task", effects)) is not None
        return {table: [row for row in _rows(at.conn, table) if row not in before[table]] for table in TABLES}


def _rows(conn: Connection, table: str) -> list[dict[str, Any]]:
    found = [row for (row,) in conn.execute(f"SELECT to_jsonb(t) FROM {table} t ORDER BY 1".encode())]
    for row in found:
        due = row.get("due_at") and datetime.fromisoformat(row["due_at"])
        if due and due != WHEN:
            row["due_at"] = str(due - datetime.fromisoformat(row["created_at"]))
    return [{name: value for name, value in row.items() if name not in MADE_BY_THE_CLOCK} for row in found]


def documents(mix: Mix) -> Mix:
    """The same with no row as parameters."""
    scopes, tokens, variables, tasks, jobs = (number and 2 for number in (mix.scopes, mix.tokens, mix.variables, mix.tasks, mix.jobs))
    return mix._replace(scopes=scopes, tokens=tokens, variables=variables, tasks=tasks, jobs=jobs)


@pytest.mark.parametrize("name", EFFECTS)
def test_one_row_is_the_same_as_parameters_and_as_a_document(committed_db: Connection, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table, effects = EFFECTS[name]
    at = case(committed_db)
    user_task(at)
    alone = effects(at)
    mix = at.change("user_task", alone).written
    assert 1 in (mix.scopes, mix.tokens, mix.variables, mix.tasks, mix.jobs)
    as_parameters = written(at, alone)
    monkeypatch.setattr(apply, "fitting", documents)
    assert len([row for row in as_parameters[table] if row.get("id") != str(at.leaf)]) == 1
    assert written(at, alone) == as_parameters


def test_a_task_is_listed_once_for_each_of_its_candidates(committed_db: Connection) -> None:
    at = case(committed_db)
    user_task(at)
    _, effects = EFFECTS["a task for many"]
    entries = written(at, effects(at))["inbox_entry"]
    assert sorted((row["kind"], row["name"]) for row in entries) == sorted(
        [("user", name) for name in NAMES] + [("group", name) for name in NAMES[1:]]
    )


def test_variables_of_a_scope_that_begins_are_inserted_and_others_replace_what_is_there(committed_db: Connection) -> None:
    at = case(committed_db)
    user_task(at)
    begins = NewScope(new_id(), at.scope, at.tokens["moved"], "sub", (at.scope, at.inner))
    value = Variable("integer", 1)
    fresh = Effects(new_scopes=[begins], variables={(begins.id, name): value for name in "xy"})
    mixed = Effects(new_scopes=[begins], variables={(begins.id, "x"): value, (at.scope, "x"): value})
    at.do("INSERT INTO variable (scope_id, name, type, value) VALUES (%s, 'x', 'integer', '0')", at.scope)
    assert at.change("user_task", fresh).written.fresh and not at.change("user_task", mixed).written.fresh
    assert [row["value"] for row in written(at, fresh)["variable"]] == [1, 1]
    assert sorted((row["value"], row["revision"]) for row in written(at, mixed)["variable"]) == [(1, 1), (1, 2)]
