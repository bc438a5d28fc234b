"""Stand-ins for signals, times, collections and calls, and constraints that are not checked (decision 0075)."""

from __future__ import annotations

import pytest

from tests.bpmn.models import around, definition, file_of, only_problem, read
from tests.bpmn.test_stand_ins import JBPM, VARIABLE, config, warnings


def test_a_signal_that_is_not_declared_has_its_reference_as_its_name_in_a_file_of_jbpm() -> None:
    event = '<intermediateCatchEvent id="x"{}><signalEventDefinition signalRef="News"/></intermediateCatchEvent>'
    data = around(event.replace("{}", f" {JBPM}"))
    assert config(data).signal.name.evaluate({}) == "News"
    assert warnings(data)[0][0] == "intermediateCatchEvent 'x' refers to the signal 'News', which does not exist"
    assert only_problem(around(event.replace("{}", ""))).what == warnings(data)[0][0]


def test_an_event_that_throws_a_signal_and_names_none_throws_that_of_its_id() -> None:
    data = around('<intermediateThrowEvent id="x"><signalEventDefinition/></intermediateThrowEvent>')
    assert config(data).signal.name.evaluate({}) == "x"
    assert warnings(data) == [("intermediateThrowEvent 'x' names no signal", "a signal of the name 'x', which is thrown instead")]
    caught = around('<intermediateCatchEvent id="x"><signalEventDefinition/></intermediateCatchEvent>')
    assert only_problem(caught).what == "intermediateCatchEvent 'x' names no signal"


@pytest.mark.parametrize(("platform", "accepted"), [("Camunda Platform", True), ("Camunda Cloud", True), ("Some Engine", False)])
def test_a_file_that_says_it_is_made_for_camunda_is_one_of_a_vendor(platform: str, accepted: bool) -> None:
    event = '<intermediateThrowEvent id="x"><signalEventDefinition/></intermediateThrowEvent>'
    said = f' xmlns:modeler="http://camunda.org/schema/modeler/1.0" modeler:executionPlatform="{platform}">'
    data = b'<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL"' + said.encode() + around(event).partition(b">")[2]
    assert ("intermediateThrowEvent 'x' names no signal" not in [each.what for each in read(data).problems]) is accepted


def test_a_timer_in_words_is_a_variable_in_a_file_of_a_vendor() -> None:
    timer = "<timerEventDefinition><timeDuration>{}</timeDuration></timerEventDefinition>"
    catch = f'<intermediateCatchEvent id="x">{timer}</intermediateCatchEvent>'
    data = around(catch.replace("{}", "after the holidays"))
    assert config(data).timer.expression.names == {"x"}
    where = "the duration of the timer of intermediateCatchEvent 'x'"
    assert warnings(data) == [(f"{where} is the text 'after the holidays'", VARIABLE.format("x"))]
    for slip in ("PT5Minutes", "5 minutes", "tomorrow"):
        assert f"found {slip!r}" in only_problem(around(catch.replace("{}", slip))).what


def test_a_collection_that_java_makes_is_a_variable() -> None:
    java = '<extensionElements><flowable:collection flowable:class="org.x.Readers"/></extensionElements>'
    loop = f'<multiInstanceLoopCharacteristics flowable:elementVariable="reader">{java}</multiInstanceLoopCharacteristics>'
    data = around(f'<userTask id="x">{loop}</userTask>')
    found = definition(data).nodes["x"].loop
    assert (found.collection.names, found.element) == ({"x.collection"}, "reader")
    assert ("the collection of userTask 'x' is made by Java, which is not run", VARIABLE.format("x.collection")) in warnings(data)


@pytest.mark.parametrize(("call", "is_a_slip"), [("a.services.compare(b, 'Yes')", False), ("a.compare(b)", True), ("a.lenght()", True)])
def test_a_call_is_a_slip_of_the_pen_only_where_what_it_nearly_is_takes_as_many_arguments(call: str, is_a_slip: bool) -> None:
    data = _either_way(call)
    if is_a_slip:
        assert " meant?" in only_problem(data).what
    else:
        assert warnings(data)[0][1] == VARIABLE.format("yes")


def _either_way(condition: str) -> bytes:
    return file_of(
        '<startEvent id="s"/><sequenceFlow id="f" sourceRef="s" targetRef="g"/><exclusiveGateway id="g" default="no"/>'
        f'<sequenceFlow id="yes" sourceRef="g" targetRef="a"><conditionExpression>${{{condition}}}</conditionExpression></sequenceFlow>'
        '<sequenceFlow id="no" sourceRef="g" targetRef="b"/><endEvent id="a"/><endEvent id="b"/>'
    )


def test_a_smallest_and_a_largest_value_of_a_text_are_not_checked_and_said_so() -> None:
    rule = '<camunda:validation><camunda:constraint name="max" config="10"/></camunda:validation>'
    field = '<camunda:formData><camunda:formField id="n" label="N" type="{}">' + rule + "</camunda:formField></camunda:formData>"
    task = f'<userTask id="x"><extensionElements>{field}</extensionElements></userTask>'
    text, number = (config(around(task.replace("{}", kind))).fields[0] for kind in ("string", "long"))
    assert (text.maximum, number.maximum) == (None, "10")
    what = "the field 'n' of userTask 'x' has the constraint max '10' on the type string, which is not checked"
    assert warnings(around(task.replace("{}", "string")))[0][0] == what
