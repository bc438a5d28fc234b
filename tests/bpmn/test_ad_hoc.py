"""Ad hoc subprocesses and complex gateways read from XML: what they say, and what they may not hold (10.3.5, 10.6.5)."""

from __future__ import annotations

import pytest

from engine.bpmn.definition import AdHocConfig, ComplexGatewayConfig
from tests.bpmn.models import around, definition, only_problem, read

WORK = '<userTask id="a"/>'


def box(inside: str, attributes: str = "") -> bytes:
    return around(f'<adHocSubProcess id="x" {attributes}>{inside}</adHocSubProcess>')


def test_what_it_says_by_default_and_in_full() -> None:
    assert definition(box(WORK)).nodes["x"].config == AdHocConfig()
    full = box(f"{WORK}<completionCondition>${{n &gt; 1}}</completionCondition>", 'ordering="Sequential" cancelRemainingInstances="false"')
    config = definition(full).nodes["x"].config
    assert (config.sequential, config.cancel_remaining, config.until.text) == (True, False, "${n > 1}")


@pytest.mark.parametrize(
    ("attributes", "extension"),
    [
        ('baton:activities="${ids}"', ""),
        (
            "",
            '<extensionElements><zeebe:adHoc activeElementsCollection="= ids"/></extensionElements>',
        ),
    ],
)
def test_which_activities_run_may_be_an_expression(attributes: str, extension: str) -> None:
    config = definition(box(f"{extension}{WORK}", attributes)).nodes["x"].config
    assert config.activities.evaluate({"ids": ["a"]}) == ["a"]


@pytest.mark.parametrize(
    ("inside", "attributes", "element", "what"),
    [
        ("", "", "x", "has no activity"),
        (f'{WORK}<startEvent id="y"/>', "", "y", "lies in the ad hoc subprocess 'x'"),
        (f'{WORK}<endEvent id="y"/>', "", "y", "lies in the ad hoc subprocess 'x'"),
        (f'{WORK}<parallelGateway id="g"/><sequenceFlow id="k" sourceRef="g" targetRef="a"/>', "", "g", "no flow leads to it"),
        (
            f'{WORK}<userTask id="b"/><userTask id="c"/><sequenceFlow id="k" sourceRef="a" targetRef="b"/>'
            '<sequenceFlow id="l" sourceRef="a" targetRef="c"/>',
            'ordering="Sequential"', "a", "has 2 outgoing flows",
        ),
        (WORK, 'ordering="Random"', "x", "has the ordering 'Random'"),
        (WORK, 'triggeredByEvent="true"', "x", "is triggered by an event"),
        (f"{WORK}<completionCondition>a ${{enough}}</completionCondition>", "", "x", "is the text 'a ${enough}'"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(inside: str, attributes: str, element: str, what: str) -> None:
    problem = only_problem(box(inside, attributes))
    assert problem.element_id == element
    assert what in problem.what


def test_activities_that_begin_by_themselves_are_reached() -> None:
    assert not [warning for warning in read(box(f'{WORK}<userTask id="b"/>')).warnings if "never reached" in warning.what]


def test_the_activation_condition_of_a_complex_gateway() -> None:
    gateway = '<complexGateway id="x"><activationCondition>${activationCount &gt;= 2}</activationCondition></complexGateway>'
    config = definition(around(gateway)).nodes["x"].config
    assert isinstance(config, ComplexGatewayConfig)
    assert config.activation is not None and config.activation.text == "${activationCount >= 2}"
    assert definition(around('<complexGateway id="x"/>')).nodes["x"].config == ComplexGatewayConfig()
    text = only_problem(around('<complexGateway id="x"><activationCondition>${2}</activationCondition></complexGateway>'))
    assert (text.element_id, "is the text '${2}'" in text.what) == ("x", True)
