"""Advice: each rule finds what it is for, and is silent about its neighbour."""

from __future__ import annotations

import pytest

from engine.bpmn.lint import RULES, advise
from tests.bpmn.models import MODELS, around, definition, file_of, read


def advice(data: bytes, **options) -> list[str]:
    return [f"{each.rule} {each.element_id} {each.line}" for each in advise(definition(data), data, **options)]


TASK = '<userTask id="x" name="Sign" camunda:assignee="ada"/>'


def branches(gateway: str, first: str, second: str) -> bytes:
    """start -> gateway -> two tasks -> end; `first` and `second` are attributes and content of the two flows."""
    return file_of(
        f'<startEvent id="s"/><sequenceFlow id="f0" sourceRef="s" targetRef="g"/>\n{gateway}\n'
        f'<sequenceFlow id="f1" sourceRef="g" targetRef="a" {first}</sequenceFlow>\n'
        f'<sequenceFlow id="f2" sourceRef="g" targetRef="b" {second}</sequenceFlow>\n'
        '<task id="a"/><task id="b"/><endEvent id="e"/>'
        '<sequenceFlow id="f3" sourceRef="a" targetRef="e"/><sequenceFlow id="f4" sourceRef="b" targetRef="e"/>'
    )


YES = "><conditionExpression>${ok}</conditionExpression>"
CHOICE = '<exclusiveGateway id="g" name="OK?" default="f2"/>'


def test_a_plain_model_gets_no_advice():
    assert advice(around(TASK)) == []


def test_a_gateway_with_one_way_in_and_one_way_out_is_superfluous():
    assert advice(around('<parallelGateway id="x"/>')) == ["one-way-gateway x 4"]


def test_a_choice_whose_flows_have_no_names_is_named_flow_by_flow_and_the_default_is_spared():
    assert advice(branches(CHOICE, YES, ">")) == ["unnamed-choice f1 5"]
    assert advice(branches(CHOICE, 'name="yes"' + YES, ">")) == []


def test_a_choice_without_a_default_may_find_no_way():
    gateway = CHOICE.replace(' default="f2"', "")
    assert advice(branches(gateway, 'name="yes"' + YES, 'name="no"' + YES)) == ["no-default-flow g 4"]


def test_two_flows_of_one_name_cannot_be_told_apart():
    assert advice(branches(CHOICE, 'name="yes"' + YES, 'name="yes">')) == ["same-name-twice g 4"]


def test_two_plain_flows_out_of_a_task_are_a_parallel_split_that_nobody_sees():
    assert advice(branches(TASK.replace('"x"', '"g"'), ">", ">")) == ["implicit-split g 4"]
    assert advice(branches('<parallelGateway id="g"/>', ">", ">")) == []


def test_a_gateway_that_joins_and_splits_at_once_is_named():
    assert "join-and-split g 4" in advice(
        branches('<parallelGateway id="g"/><sequenceFlow id="f9" sourceRef="s" targetRef="g"/>', ">", ">")
    )


@pytest.mark.parametrize(
    ("task", "found"),
    [
        ('<userTask id="x" name="Sign"/>', ["task-without-people x 4"]),
        ('<userTask id="x" name="Sign" camunda:candidateGroups="clerks"/>', []),
        ('<userTask id="x" camunda:assignee="ada"/>', ["unnamed-task x 4"]),
        ('<serviceTask id="x" baton:handler="todo"/>', ["forgotten-handler x 4"]),
        ('<serviceTask id="x" baton:handler="stock.reserve"/>', []),
    ],
)
def test_a_task_that_nobody_gets_finds_or_does(task, found):
    assert advice(around(task)) == found


def timed(kind: str, text: str, zone: str = "") -> bytes:
    timer = f"<timerEventDefinition{zone}><{kind}>{text}</{kind}></timerEventDefinition>"
    return around(f'<intermediateCatchEvent id="x">{timer}</intermediateCatchEvent>')


@pytest.mark.parametrize(
    ("kind", "text", "found"),
    [
        ("timeDate", "2026-12-24T18:00:00", True),
        ("timeDate", "2026-12-24T18:00:00Z", False),
        ("timeDate", "2026-12-24T18:00:00+01:00", False),
        ("timeDate", "${deadline}", False),
        ("timeDuration", "PT1H", False),
        ("timeCycle", "0 0 9 * * MON-FRI", True),
        ("timeCycle", "R3/PT1H", False),
        ("timeCycle", "R3/2026-12-24T18:00:00/PT1H", True),
    ],
)
def test_a_time_of_the_wall_clock_without_a_zone_is_read_in_utc(kind, text, found):
    assert advice(timed(kind, text)) == (["timer-without-zone x 4"] if found else [])
    assert advice(timed(kind, text, ' baton:timeZone="Europe/Berlin"')) == []


def test_a_variable_that_is_nearly_one_that_is_set_is_a_misspelling():
    form = (
        '<userTask id="x" name="Sign" camunda:assignee="{}"><extensionElements><camunda:formData>'
        '<camunda:formField id="approver" type="string"/></camunda:formData></extensionElements></userTask>'
    )
    assert advice(around(form.format("${aprover}"))) == ["misspelled-variable x 4"]
    assert advice(around(form.format("${approver}"))) == []
    assert advice(around(form.format("${somebody}"))) == [], "whoever starts it may give any variable"


def test_a_rule_can_be_left_out():
    assert advice(around('<parallelGateway id="x"/>'), without=["one-way-gateway"]) == []


def test_every_model_of_the_tests_can_be_advised_on():
    found: set[str] = set()
    for path in MODELS.glob("*.bpmn"):
        result = read(path.read_bytes())
        for _, each in () if result.problems else result.definitions:
            found |= {advice.rule for advice in advise(each, path.read_bytes())}
    assert found <= set(RULES)
    assert found >= {"task-without-people", "timer-without-zone", "unnamed-choice", "unnamed-task"}
