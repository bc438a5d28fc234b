"""At most four `execute` calls also where a case has moved between the look and the write, and then needs more than it did."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import psycopg
import pytest

from engine.commands import step
from engine.commands.complete_task import complete_task
from engine.commands.outcome import TaskCompleted
from engine.core.values import typed
from engine.db import definitions
from engine.db.apply import write
from engine.db.session import connect
from tests.cast import ADA, engage
from tests.commands.cases import deployed, places, started, the_task
from tests.commands.test_decisions import dish
from tests.commands.test_decisions import put as put_files
from tests.commands.test_deploy import process, put
from tests.commands.test_execute_counts import ASSIGNED, counting
from tests.core.models import call, decides, model, script, signals, user, xor
from tests.rows import one

Connection = psycopg.Connection[Any]
GOES = "UPDATE variable SET value = 'true' WHERE name = 'go'; UPDATE process_instance SET revision = revision + 1"

LIMIT = "SET lock_timeout = '5s'"  # no step holds a lock where it is used


@pytest.fixture
def conn(database_url: str) -> Iterator[Connection]:
    with connect(database_url) as conn:
        engage(conn)
        yield conn


def while_it_plans(conn: Connection, monkeypatch: pytest.MonkeyPatch, change: Callable[[Connection], Any]) -> None:
    """Somebody else commits `change` just before the first guarded write of the next step."""
    once: list[bool] = []

    def moved(connection: Connection, planned: Any) -> Any:
        if not once:
            once.append(True)
            with psycopg.connect(conn.info.dsn, password=conn.info.password, autocommit=True) as other:
                other.execute(LIMIT)
                change(other)
        return write(connection, planned)

    monkeypatch.setattr(step, "write", moved)


def the_calls(conn: Connection, monkeypatch: pytest.MonkeyPatch, task: UUID) -> list[str]:
    """What the completion of the task executes, without what others execute meanwhile."""
    with counting(monkeypatch) as said:
        done = complete_task(conn, task, actor=ADA, variables={}, request_id=None)
    assert isinstance(done, TaskCompleted), done
    return said


def ours(said: list[str]) -> list[str]:
    """Without what the other one executed."""
    return [text for text in said if text not in (GOES, LIMIT)]


GO = {"go": typed(False)}
FORK = {"a": user(**ASSIGNED), "which": xor(), "c": user()}


def forked(conn: Connection, *lines: str, to: str, **elements: Any) -> UUID:
    """A case at the task `a`, which goes on to another unless `go` becomes true meanwhile."""
    deployed(
        conn,
        model("start -> a -> which -> c -> end", *lines, conditions={f"which>{to}": "${go}"}, defaults=("which>c",), **FORK, **elements),
    )
    return started(conn, variables=GO).instance_id


def test_a_write_that_missed_and_then_throws_a_signal_reads_the_whole_case_with_its_lock(
    conn: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = forked(conn, "which -> tell -> b -> end2", to="tell", tell=signals("GO"), b=user())
    while_it_plans(conn, monkeypatch, lambda other: other.execute(GOES))
    said = ours(the_calls(conn, monkeypatch, the_task(conn, "a")))
    assert len(said) == 4, said
    assert places(conn, case) == [("b", "waiting")]


def test_a_write_that_missed_and_then_calls_what_was_never_called_finds_it_with_its_lock(
    conn: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(conn, process("called_late"))
    case = forked(conn, "which -> ask -> b -> end2", to="ask", ask=call("called_late"), b=user())
    while_it_plans(conn, monkeypatch, lambda other: other.execute(GOES))
    said = ours(the_calls(conn, monkeypatch, the_task(conn, "a")))
    assert len(said) == 4, said
    assert places(conn, case) == [("b", "waiting")]


def test_a_write_that_missed_and_then_calls_what_is_kept_no_longer_finds_it_with_its_lock(
    conn: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped = put(conn, process("called_before")).definitions[0].id
    case = forked(conn, "which -> ask -> b -> end2", to="ask", ask=call("called_before"), b=user())
    called = started(conn, variables={"go": typed(True)}).instance_id
    complete_task(conn, the_task(conn, "a", instance_id=called), actor=ADA, variables={}, request_id=None)
    definitions._kept.pop(dropped)
    while_it_plans(conn, monkeypatch, lambda other: other.execute(GOES))
    said = ours(the_calls(conn, monkeypatch, the_task(conn, "a")))
    assert len(said) == 4, said
    assert places(conn, case) == [("b", "waiting")]


def test_a_write_that_missed_and_then_decides_finds_the_decision_with_its_lock(conn: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    put_files(conn, dish_dmn=dish())
    case = forked(conn, "which -> decide -> b -> end2", to="decide", decide=decides("dish", result_variable="dish"), b=user())
    conn.execute("INSERT INTO variable (scope_id, name, type, value) SELECT id, 'degrees', 'integer', '5' FROM scope")
    while_it_plans(conn, monkeypatch, lambda other: other.execute(GOES))
    said = ours(the_calls(conn, monkeypatch, the_task(conn, "a")))
    assert len(said) == 4, said
    assert places(conn, case) == [("b", "waiting")]


def test_a_write_that_missed_and_then_needs_a_large_variable_reads_it_with_its_lock(
    conn: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = forked(conn, "which -> look -> b -> end2", to="look", look=script("${large + ''}", "copy"), b=user())
    large = "INSERT INTO variable (scope_id, name, type, value) SELECT id, 'large', 'string', to_jsonb(%s::text) FROM scope"
    conn.execute(large, ("".join(map(str, range(20_000))),))
    while_it_plans(conn, monkeypatch, lambda other: other.execute(GOES))
    said = ours(the_calls(conn, monkeypatch, the_task(conn, "a")))
    assert len(said) == 4, said
    assert places(conn, case) == [("b", "waiting")]


def test_a_called_process_that_was_deployed_anew_is_found_with_the_lock(conn: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    put(conn, process("called_anew"))
    deployed(conn, model("start -> a -> ask -> b -> end", a=user(**ASSIGNED), ask=call("called_anew"), b=user()))
    started(conn)
    assert len(the_calls(conn, monkeypatch, the_task(conn, "a"))) == 3, "the first time it is found with the lock, too"
    newest = put(conn, process("called_anew", name="changed")).definitions[0].id
    case = started(conn).instance_id
    said = the_calls(conn, monkeypatch, the_task(conn, "a"))
    assert len(said) == 4, said
    assert one(conn, "SELECT definition_id FROM process_instance WHERE parent_id = %s", case) == newest
    assert places(conn, case) == [("b", "waiting")]


def test_a_step_that_decides_reads_the_decision_with_its_lock_and_costs_three(conn: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    put_files(conn, dish_dmn=dish())
    deployed(conn, model("start -> a -> decide -> b -> end", a=user(**ASSIGNED), decide=decides("dish", result_variable="dish"), b=user()))
    case = started(conn, variables={"degrees": typed(5)}).instance_id
    assert len(the_calls(conn, monkeypatch, the_task(conn, "a"))) == 3
    assert places(conn, case) == [("b", "waiting")]
