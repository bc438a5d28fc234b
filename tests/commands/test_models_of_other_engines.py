"""A model as another engine has it, deployed and run: expressions, a class as a handler, flows without ids, resource roles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from engine.commands.complete_task import complete_task
from engine.commands.deploy import deploy
from engine.commands.jobs import complete_job
from engine.commands.outcome import Deployed, ItemDone, TaskCompleted
from engine.commands.tasks import claim
from engine.db.acquire import acquire_jobs
from engine.db.session import connect
from tests.bpmn.models import model
from tests.cast import ADA, OP, engage
from tests.commands.cases import acquired, lease_of, places, started, status, the_task, variables
from tests.rows import one

Connection = psycopg.Connection[Any]
FILE = "as_another_engine_wrote_it"


@pytest.fixture
def conn(database_url: str) -> Iterator[Connection]:
    with connect(database_url) as conn:
        engage(conn)
        yield conn


def test_a_model_of_another_engine_runs(conn: Connection) -> None:
    outcome = deploy(conn, [(f"{FILE}.bpmn", model(FILE))], actor=OP)
    assert isinstance(outcome, Deployed)
    assert [each.what for each in outcome.definitions[0].warnings] == [
        "serviceTask 'Ship it' is bound to the class org.example.Ship, which is not run",
        "Ship it is bound to the handler 'org.example.Ship', which no worker knows",
    ]

    case = started(conn, "elsewhere", variables={"amount": 4}).instance_id
    assert variables(conn, case) == {"amount": 4, "twice": 8, "said": "It is 8"}
    assert places(conn, case) == [("ship", "waiting")]
    assert conn.execute("SELECT kind, topic FROM job").fetchone() == ("service", "org.example.Ship")

    assert acquired(conn) == [], "a worker without the handler leaves the job alone"
    able = [("service", "org.example.Ship")]
    (job,) = acquire_jobs(conn, owner="worker-2", capabilities=able, limit=1, lease_seconds=30, workers=1)
    assert isinstance(complete_job(conn, lease_of(job), variables={}), ItemDone)
    task = the_task(conn, "look")
    assert round(one(conn, "SELECT due_at - created_at FROM user_task WHERE id = %s", task).total_seconds() / 3600) == 48
    claim(conn, task, actor=ADA, request_id=None)
    assert isinstance(complete_task(conn, task, actor=ADA, variables={}, request_id=None), TaskCompleted)
    assert status(conn, case) == "completed"


def test_the_same_file_again_is_the_same_version(conn: Connection) -> None:
    first, second = (deploy(conn, [(f"{FILE}.bpmn", model(FILE))], actor=OP) for _ in range(2))
    assert isinstance(first, Deployed) and isinstance(second, Deployed)
    assert (first.definitions[0].unchanged, second.definitions[0].unchanged) == (False, True)
