"""A connection that is lost around COMMIT: the command runs again under its request id, and is done once (R6)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine import failpoints
from engine.commands.complete_task import complete_task
from engine.commands.outcome import Claimed, TaskCompleted
from engine.commands.start import start_instance
from engine.commands.tasks import claim
from engine.db.session import connect
from engine.expressions import parse
from tests import rows
from tests.cast import ADA, engage
from tests.commands import cases
from tests.core.models import model, user
from tests.races.contest import Connection, held_at

TASK = model("start -> a -> b -> end", a=user(assignee=parse("${'ada'}")), b=user())


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    engage(committed_db)
    cases.deployed(committed_db, TASK)
    return committed_db


def killed_while_held(conn: Connection, url: str, folder: Path, act: Any) -> Any:
    with held_at(url, "command.before_commit", act, folder) as held:
        assert conn.execute("SELECT pg_terminate_backend(%s, 10000)", (held.pid,)).fetchone() == (True,)
    return held.outcome()


def test_R6_a_connection_lost_before_the_commit(conn: Connection, database_url: str, tmp_path: Path) -> None:
    task = rows.task(conn)
    again = claim.reconnecting(lambda: connect(database_url))
    outcome = killed_while_held(conn, database_url, tmp_path, lambda c: again(c, task, actor=ADA, request_id="1"))
    assert isinstance(outcome, Claimed)
    assert rows.history(conn, task) == [("task_claimed", "ada")]


@pytest.mark.parametrize("what", ["claim", "complete", "start"])
def test_R6_a_connection_lost_after_the_commit_finds_what_was_done(conn: Connection, database_url: str, what: str) -> None:
    commands: dict[str, tuple[Any, Any]] = {
        "claim": (claim, lambda run: lambda c: run(c, task, actor=ADA, request_id="1")),
        "complete": (complete_task, lambda run: lambda c: run(c, mine, actor=ADA, variables={}, request_id="1")),
        "start": (start_instance, lambda run: lambda c: run(c, "model", actor=ADA, variables={}, request_id="1")),
    }
    task = rows.task(conn)
    case = cases.started(conn).instance_id
    mine = cases.the_task(conn, "a", instance_id=case)
    command, act = commands[what]

    with connect(database_url) as first:
        # The answer of the commit never arrives: the process fails right after it, and its connection is gone.
        failpoints.install("command.after_commit=raise:once")
        with pytest.raises(failpoints.FailPointRaised):
            act(command)(first)
    with connect(database_url) as second:
        outcome = act(command)(second)
    events = conn.execute("SELECT kind, count(*) FROM history WHERE actor = 'ada' GROUP BY 1").fetchall()
    done = dict(events)
    match what:
        case "claim":
            assert isinstance(outcome, Claimed)
            assert done["task_claimed"] == 1
        case "complete":
            assert isinstance(outcome, TaskCompleted)
            assert done["task_completed"] == 1
        case "start":
            assert rows.one(conn, "SELECT count(*) FROM process_instance WHERE definition_id = %s", outcome.definition_id) == 2
