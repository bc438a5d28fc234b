"""A model with parts for another engine (decision 0075): it runs to each of them, waits there, and goes on."""

from __future__ import annotations

import pytest

from engine.bpmn.reader import read_files
from engine.core.effects import NewIncident, NewJob, NewSubscription
from tests.bpmn.models import model
from tests.core.world import World

FILE = "left_to_others"


@pytest.fixture
def run() -> World:
    result = read_files([(f"{FILE}.bpmn", model(FILE))])
    assert not result.problems
    return World(result.definitions[0][1], business_key="o-1").start()


def test_work_and_values_that_are_not_here_are_waited_for_where_people_see_it(run: World) -> None:
    script = run.leaf("score", NewJob)
    assert isinstance(script, NewJob) and script.topic == "score"
    assert "score" not in run.variables, "nothing of the script was run"

    run.complete("score", score=12)
    call = run.leaf("look_up", NewJob)
    assert isinstance(call, NewJob) and call.topic == "http-connector"
    assert call.payload["inputs"]["url"]["value"] == "https://example.org/12"

    run.complete("look_up", response="Ada")
    assert run.variables == {"score": 12, "customer": "Ada"}, "what the connector makes is seen by the task's own outputs alone"
    incident = run.leaf("which", NewIncident)
    assert isinstance(incident, NewIncident) and "good" in incident.message
    assert run.ended is None


def test_a_message_flow_carries_the_message_and_a_receive_task_awaits_its_own_name(run: World) -> None:
    run.complete("score", score=12, good=True)
    run.complete("look_up", response="Ada")
    (thrown,) = run.throws
    assert (thrown.topic, thrown.payload["name"]) == ("message", "Goods wanted")
    answer = run.leaf("answer", NewSubscription)
    assert isinstance(answer, NewSubscription)
    assert (answer.message_name, answer.correlation_key) == ("answer", "o-1")
    run.receive("answer")
    assert run.ended == "completed"


def test_the_variable_in_place_of_a_condition_decides(run: World) -> None:
    run.complete("score", score=12, good=False)
    run.complete("look_up", response="Ada")
    assert run.ended == "completed"
    assert run.throws == []
