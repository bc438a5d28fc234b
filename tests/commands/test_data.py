"""Data in a running case: outputs into data objects, inputs out of them, a local that stays local, a lane as group."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from engine.commands.complete_task import complete_task
from engine.commands.deploy import deploy
from engine.commands.jobs import complete_job
from engine.commands.outcome import Deployed, InstanceStarted, ItemDone, TaskCompleted
from engine.commands.start import start_instance
from engine.commands.tasks import claim
from tests.bpmn.models import model
from tests.cast import ADA, OP, engage
from tests.commands.cases import acquired, the_task
from tests.rows import one

Connection = psycopg.Connection[Any]


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    engage(committed_db)
    return committed_db


def variables(conn: Connection) -> dict[str, Any]:
    return dict(
        conn.execute("SELECT v.name, v.value FROM variable v JOIN scope s ON s.id = v.scope_id WHERE s.parent_id IS NULL").fetchall()
    )


def test_data_goes_from_a_lanes_task_through_a_handler_and_a_local_stays_local(conn: Connection) -> None:
    assert isinstance(deploy(conn, [("m.bpmn", model("data_in_lanes"))], actor=OP), Deployed)
    started = start_instance(conn, "data_in_lanes", actor=ADA, variables={"limit": 9})
    assert isinstance(started, InstanceStarted)
    enter = the_task(conn, "enter")
    assert one(conn, "SELECT candidate_groups FROM user_task WHERE id = %s", enter) == ["billing"]
    claim(conn, enter, actor=ADA, request_id="c")
    assert isinstance(complete_task(conn, enter, actor=ADA, variables={"amount": 5, "kept": True}, request_id="e"), TaskCompleted)
    assert variables(conn) == {"limit": 9, "order sum": 5, "kept": True}, "the output went to its data object and nowhere else"

    (job,) = acquired(conn)
    assert one(conn, "SELECT payload->'inputs' FROM job WHERE id = %s", job.item_id) == {
        "cents": {"type": "integer", "value": 500},
        "most": {"type": "integer", "value": 10},
    }
    assert isinstance(complete_job(conn, job, variables={"answer": "good", "also": 1}), ItemDone)
    assert variables(conn) == {"limit": 9, "order sum": 5, "kept": True, "verdict": "good", "also": 1}
    inner = "SELECT v.value FROM variable v JOIN scope s ON s.id = v.scope_id WHERE s.parent_id IS NOT NULL AND v.name = 'note'"
    assert one(conn, inner) == "checked: good"

    assert isinstance(complete_task(conn, the_task(conn, "sign"), actor=ADA, variables={"note": "signed"}, request_id="s"), TaskCompleted)
    history = conn.execute("SELECT data->'variables' FROM history WHERE kind = 'variables_set' AND element_id = 'sign'").fetchall()
    assert history == [({"note": {"type": "string", "value": "signed"}},)]
    assert one(conn, "SELECT status FROM process_instance WHERE id = %s", started.instance_id) == "completed"


def test_an_output_that_the_result_does_not_have_leaves_its_target_alone(conn: Connection) -> None:
    assert isinstance(deploy(conn, [("m.bpmn", model("data_in_lanes"))], actor=OP), Deployed)
    start_instance(conn, "data_in_lanes", actor=ADA, variables={"limit": 9, "order sum": 7})
    enter = the_task(conn, "enter")
    claim(conn, enter, actor=ADA, request_id="c")
    assert isinstance(complete_task(conn, enter, actor=ADA, variables={}, request_id="e"), TaskCompleted)
    assert variables(conn) == {"limit": 9, "order sum": 7}


def test_data_goes_into_a_call_and_comes_back_by_name_and_nothing_else_does(conn: Connection) -> None:
    """10.4.1: what a call activity does not map is not passed."""
    assert isinstance(deploy(conn, [("m.bpmn", model("data_through_a_call"))], actor=OP), Deployed)
    started = start_instance(conn, "caller", actor=ADA, variables={"price": 7, "secret": 1})
    assert isinstance(started, InstanceStarted)
    assert variables(conn) == {"price": 7, "secret": 1, "approved": True}
    first = "SELECT data->'variables' FROM history WHERE kind = 'variables_set' AND instance_id <> %s ORDER BY id LIMIT 1"
    assert set(one(conn, first, started.instance_id)) == {"sum"}
