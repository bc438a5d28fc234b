"""The join of `make clients` notices what it is for: a task that is lost, done twice, done by another, or told wrongly."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest

from engine.commands.deploy import deploy
from engine.commands.external_tasks import acquire_external_tasks, complete_external_task
from engine.commands.outcome import Actor, Deployed, InstanceStarted
from engine.commands.start import start_instance
from tests.clients.check import check, requests
from tests.clients.packages import PACKAGES, model
from tests.clients.run import DOCUMENT, Played

OLGA = Actor("olga", role="operator")
PYCAMUNDA = PACKAGES[3]


class House:
    """What the join reads of one: its rows."""

    def __init__(self, conn: psycopg.Connection[Any]) -> None:
        self.conn = conn

    def rows(self, sql: str, *values: Any) -> list[Any]:
        return self.conn.execute(sql.encode(), values).fetchall()


@pytest.fixture
def played(committed_db: psycopg.Connection[Any]) -> Played:
    """One case that its client completed as it should."""
    assert isinstance(deploy(committed_db, [("p.bpmn", model(PYCAMUNDA, "complete"))], actor=OLGA), Deployed)
    case = start_instance(committed_db, PYCAMUNDA.definition_key("complete"), actor=OLGA, variables={})
    assert isinstance(case, InstanceStarted)
    topic = PYCAMUNDA.topic("complete")
    (task,) = acquire_external_tasks(committed_db, actor=OLGA, worker_id="pycamunda-1", topics=[topic], limit=1)  # type: ignore[misc]
    values = {"square": 0, "said": "Nº 0 – 人!", "half": 0.0, "not_flag": False, "back": DOCUMENT}
    complete_external_task(committed_db, task.id, actor=OLGA, lease_number=task.lease_number, variables=values)
    told = [{"did": "took", "task": str(task.id), "retries": None}, {"did": "completed", "task": str(task.id)}]
    return Played(PYCAMUNDA, 1, {"complete": [str(case.instance_id)]}, told, "pycamunda-1", "pycamunda-2")


def found(conn: psycopg.Connection[Any], played: Played) -> str:
    return "\n".join(check(House(conn), played).problems)  # type: ignore[arg-type]


def test_what_is_right_has_no_problems(committed_db: psycopg.Connection[Any], played: Played) -> None:
    assert found(committed_db, played) == ""


def wrong(change: Callable[[Played], Any]) -> Callable[[psycopg.Connection[Any], Played], Any]:
    return lambda _, played: change(played)


def row(sql: str) -> Callable[[psycopg.Connection[Any], Played], Any]:
    return lambda conn, played: conn.execute(sql.encode(), (UUID(played.started["complete"][0]),))


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (wrong(lambda p: p.told.append(p.told[1])), "tell"),
        (wrong(lambda p: p.told.pop()), "tell"),
        (wrong(lambda p: p.told.append({"did": "took", "task": p.told[0]["task"], "retries": 2})), "retries"),
        (wrong(lambda p: p.told.append({"did": "completed", "task": "another"})), "no row knows"),
        (wrong(lambda p: p.told.append({"did": "refused", "task": None, "says": "429"})), "refused"),
        (wrong(lambda p: setattr(p, "tasks", 2)), "expected 2 cases"),
        (wrong(lambda p: setattr(p, "dead_worker", "pycamunda-9")), "first client"),
        (row("UPDATE process_instance SET status = 'running', ended_at = NULL, ended_by = NULL WHERE id = %s"), "expected completed"),
        (row("UPDATE process_instance SET final_variables = final_variables - 'said' WHERE id = %s"), "said"),
        (
            row(
                "INSERT INTO history (tenant_id, kind, actor, instance_id, item_id, data)"
                " SELECT tenant_id, kind, actor, instance_id, item_id, data FROM history"
                " WHERE instance_id = %s AND kind = 'external_task_completed'"
            ),
            "one end",
        ),
        (
            row("UPDATE history SET data = data || '{\"lease_number\": 2}' WHERE instance_id = %s AND kind = 'external_task_completed'"),
            "expected lease 1",
        ),
    ],
)
def test_what_is_wrong_is_a_problem(committed_db: psycopg.Connection[Any], played: Played, change: Any, word: str) -> None:
    change(committed_db, played)
    problems = found(committed_db, played)
    assert word in problems


def test_requests_are_counted_by_path_and_status(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    task = "01a22dd1-a364-73eb-bf22-0698a3bbcf18"
    log.write_text(f"POST /engine-rest/external-task/{task}/complete 204 9\nPOST /engine-rest/external-task/{task}/complete 500 12\n")
    assert requests(log) == {
        ("POST", "/engine-rest/external-task/{}/complete", 204): 1,
        ("POST", "/engine-rest/external-task/{}/complete", 500): 1,
    }
    log.write_text(json.dumps({"no": "line"}))
    with pytest.raises(AssertionError, match="access log"):
        requests(log)
