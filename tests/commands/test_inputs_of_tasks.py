"""What input parameters give a user task, in a database: its page sees it, live and when it is over; completing uses it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import psycopg
import pytest
from sqlalchemy import create_engine

from engine.commands.complete_task import complete_task
from engine.commands.deploy import deploy
from engine.commands.outcome import Deployed, InstanceStarted, TaskCompleted
from engine.commands.start import start_instance
from engine.commands.tasks import claim
from engine.queries.task import task_detail, task_variables
from tests.bpmn.models import file_of
from tests.cast import ADA, OP, engage
from tests.commands.cases import the_task

Connection = psycopg.Connection[Any]
MODEL = file_of(
    '<startEvent id="s"/><sequenceFlow id="f1" sourceRef="s" targetRef="ask"/>'
    '<userTask id="ask" camunda:candidateUsers="ada"><extensionElements><camunda:inputOutput>'
    '<camunda:inputParameter name="note">${"of " + order.customer}</camunda:inputParameter>'
    '<camunda:inputParameter name="lines"><camunda:list><camunda:value>${order.customer}</camunda:value></camunda:list>'
    "</camunda:inputParameter>"
    '<camunda:outputParameter name="letter">${note + ": " + text}</camunda:outputParameter>'
    "</camunda:inputOutput></extensionElements></userTask>"
    '<sequenceFlow id="f2" sourceRef="ask" targetRef="after"/><userTask id="after" camunda:candidateUsers="ada"/>'
    '<sequenceFlow id="f3" sourceRef="after" targetRef="e"/><endEvent id="e"/>'
)


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    engage(committed_db)
    return committed_db


def seen(conn: Connection, task: UUID) -> dict[str, Any]:
    """What the page of a task shows, by name."""
    url = f"postgresql+psycopg://{conn.info.user}:{conn.info.password}@{conn.info.host}:{conn.info.port}/{conn.info.dbname}"
    engine = create_engine(url)
    try:
        with engine.connect() as reading:
            detail = task_detail(reading, ADA, task)
            assert detail is not None
            return {name: each.value for name, each in task_variables(reading, detail).items()}
    finally:
        engine.dispose()


def test_a_task_sees_its_inputs_over_the_variables_of_its_case_and_its_outputs_use_them(conn: Connection) -> None:
    assert isinstance(deploy(conn, [("m.bpmn", MODEL)], actor=OP), Deployed)
    begun = start_instance(conn, "p", actor=ADA, variables={"order": {"customer": "Bo"}, "note": "of the case"})
    assert isinstance(begun, InstanceStarted)
    task = the_task(conn, "ask")
    own = {"note": "of Bo", "lines": ["Bo"]}
    assert seen(conn, task) == {"order": {"customer": "Bo"}, **own}

    claim(conn, task, actor=ADA, request_id="c")
    done = complete_task(conn, task, actor=ADA, variables={"text": "thank you"}, request_id="d")
    assert isinstance(done, TaskCompleted)
    rows = conn.execute("SELECT name, value FROM variable").fetchall()
    assert dict(rows) == {"order": {"customer": "Bo"}, "note": "of the case", "text": "thank you", "letter": "of Bo: thank you"}
    assert seen(conn, task) == {"order": {"customer": "Bo"}, "text": "thank you", "letter": "of Bo: thank you", **own}
    assert "lines" not in seen(conn, the_task(conn, "after"))
