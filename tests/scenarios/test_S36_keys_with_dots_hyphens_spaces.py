"""S36: names with dots, hyphens and spaces in conditions and mappings, beside a path of the same letters."""

from __future__ import annotations

import pytest

from engine.core.effects import NewExternalTask
from tests.bpmn.models import around, definition, model, only_problem
from tests.core.models import model as drawn
from tests.core.models import user
from tests.core.world import World

GIVEN = {"a": {"b": 1}, "a.b": 2, "answer": {"response-x": "ok"}, "in1": 5, "not_x": False, "timer_duration": "PT5M"}


def asked(**more: object) -> World:
    return World(definition(model("s36_names_with_signs"))).start("start", **{**GIVEN, **more})


def test_S36_conditions_and_mappings_reach_every_name_by_the_documented_quoting() -> None:
    run = asked().complete("ask", **{"dinner.meal": "fish", "price net": 8})
    assert run.open == ["cook"]
    cook = run.leaf("cook")
    assert isinstance(cook, NewExternalTask)
    assert {name: given["value"] for name, given in cook.payload["inputs"].items()} == {"of.answer": "ok", "both": 3}
    run.complete("cook", **{"side-dish": "rice"})
    assert run.open == ["wash"] and run.last.tasks[0].name == "Wash up after fish/rice"
    assert (run.variables["served-meal"], run.variables["sum of"]) == ("fish/rice", 3)
    assert "of.answer" not in run.variables, "an input is the activity's own"


def test_S36_a_value_that_differs_takes_the_default_flow_and_a_name_that_is_missing_does_not() -> None:
    assert asked().complete("ask", **{"dinner.meal": "soup", "price net": 8}).open == ["other"]
    run = asked().complete("ask", **{"dinner": {"meal": "fish"}, "price net": 8})
    (incident,) = run.last.incidents
    assert incident.element_id == "which" and "'dinner.meal'" in incident.message
    assert run.open == ["which"]


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        ("${dinner.meal == 'fish'}", "there is one called 'dinner.meal', which is written `dinner.meal` in backticks"),
        ("${response-x == 1}", "there is one called 'response-x', which is written `response-x` in backticks"),
    ],
)
def test_S36_a_sign_that_is_read_as_an_operator_is_an_incident_that_says_how_to_write_it(condition: str, told: str) -> None:
    ways = ("start -> xor -> yes -> end", "xor -> no -> end")
    drawing = drawn(*ways, conditions={"xor>yes": condition}, defaults=("xor>no",), yes=user(), no=user())
    run = World(drawing).start(**{"dinner.meal": "fish", "response-x": 1, "x": 1})
    (incident,) = run.last.incidents
    assert told in incident.message
    assert run.open == ["xor"]


def test_S36_a_space_in_a_name_without_quotes_is_refused_at_deployment_with_its_place() -> None:
    problem = only_problem(around('<userTask id="x" camunda:assignee="${price net}"/>'))
    assert "expected an operator or the end, found net (character 9)" in problem.what
