"""What a multi-instance activity is over, collects and throws, in the words of the standard and of others (10.3.8.2)."""

from __future__ import annotations

import pytest

from engine.bpmn.definition import LoopEvent, MultiInstance
from tests.bpmn.models import around, definition

ROOT = (
    '<signal id="sig" name="DONE"/><signalEventDefinition id="shared" signalRef="sig"/>'
    '<escalation id="esc" escalationCode="UP"/><escalationEventDefinition id="up" escalationRef="esc"/>\n'
)
THREE = "<loopCardinality>3</loopCardinality>"
DATA = (
    '<dataObject id="obj" name="orders" isCollection="true"/><dataObjectReference id="ref" dataObjectRef="obj" name="Orders"/>'
    '<property id="prop" name="answers"/>'
)


def loop_of(inside: str, attributes: str = "", *, before: str = "", more: str = "") -> MultiInstance:
    multi = f"<multiInstanceLoopCharacteristics {attributes}>{inside}</multiInstanceLoopCharacteristics>"
    found = definition(around(f'<userTask id="x">{before}{multi}</userTask>', root=ROOT, more=more)).nodes["x"].loop
    assert isinstance(found, MultiInstance)
    return found


INPUT = '<ioSpecification><dataInput id="in"/><inputSet/><outputSet/></ioSpecification>'
ASSOCIATED = f"{INPUT}<dataInputAssociation><sourceRef>ref</sourceRef><targetRef>in</targetRef></dataInputAssociation>"


@pytest.mark.parametrize(
    ("reference", "before", "text"),
    [
        ("obj", "", "${orders}"),
        ("ref", "", "${orders}"),
        ("in", ASSOCIATED, "${orders}"),
        ("items", "", "${items}"),
        ("${order.lines}", "", "${order.lines}"),
    ],
)
def test_a_loop_data_input_is_the_variable_that_it_comes_from(reference: str, before: str, text: str) -> None:
    inside = f'<loopDataInputRef>{reference}</loopDataInputRef><inputDataItem id="i" name="order"/>'
    found = loop_of(inside, before=before, more=DATA)
    assert (found.collection and found.collection.text, found.element) == (text, "order")


@pytest.mark.parametrize(
    ("inside", "attributes", "result"),
    [
        (f'<loopDataOutputRef>prop</loopDataOutputRef><outputDataItem name="answer"/>{THREE}', "", "answer"),
        (THREE, 'flowable:outputCollection="answers" flowable:outputElement="${answer}"', "answer"),
        (
            '<extensionElements><zeebe:loopCharacteristics inputCollection="= items" outputCollection="answers" outputElement="= answer"/>'
            "</extensionElements>",
            "", "answer",
        ),
    ],
)  # fmt: skip
def test_results_are_collected_however_it_is_said(inside: str, attributes: str, result: str) -> None:
    found = loop_of(inside, attributes, more=DATA)
    assert found.output == "answers"
    assert found.result is not None and found.result.evaluate({"answer": 7}) == 7
    assert result in found.result.names


def test_each_behavior_names_its_events() -> None:
    assert loop_of(THREE).throws == loop_of(THREE, 'behavior="All"').throws == ()
    (none,) = loop_of(THREE, 'behavior="None" noneBehaviorEventRef="shared"').throws
    assert (none.signal and none.signal.name.text, none.first, none.condition) == ("DONE", False, None)
    assert loop_of(THREE, 'behavior="One" oneBehaviorEventRef="up"').throws == (LoopEvent(escalation="UP", first=True),)
    thrown = "<complexBehaviorDefinition><condition>${{{}}}</condition><event>{}</event></complexBehaviorDefinition>"
    both = (
        thrown.format("a", "<escalationEventDefinition escalationRef='esc'/>")
        + thrown.format("b", "<signalEventDefinition signalRef='sig'/>")
        + "<complexBehaviorDefinition><condition>${c}</condition></complexBehaviorDefinition>"
    )
    first, second = loop_of(f"{THREE}{both}", 'behavior="Complex"').throws
    assert (first.escalation, first.condition and first.condition.text) == ("UP", "${a}")
    assert (second.signal is not None, second.condition and second.condition.text) == (True, "${b}")
