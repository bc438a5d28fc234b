"""What the reader makes of parts that are left out (decision 0075), run: flows, subprocesses, events, expressions."""

from __future__ import annotations

from engine.core.effects import NewExternalTask, NewIncident
from tests.bpmn.models import around, definition, file_of
from tests.core.world import World

WAYS = (
    '<startEvent id="s"/><sequenceFlow id="f1" sourceRef="s" targetRef="g"/><{} id="g"/>'
    '<sequenceFlow id="a" sourceRef="g" targetRef="left"/><sequenceFlow id="b" sourceRef="g" targetRef="right"/>'
    '<userTask id="left"/><userTask id="right"/>'
)


def running(data: bytes) -> World:
    return World(definition(data))


def test_a_gateway_without_conditions_asks_for_the_variable_of_each_way() -> None:
    run = running(file_of(WAYS.format("exclusiveGateway"))).start("s", a=False, b=True)
    assert run.tasks == ["right"]
    lost = running(file_of(WAYS.format("exclusiveGateway"))).start("s")
    incident = lost.leaf("g", NewIncident)
    assert isinstance(incident, NewIncident) and "'a'" in incident.message


def test_an_inclusive_gateway_without_conditions_takes_every_way() -> None:
    assert running(file_of(WAYS.format("inclusiveGateway"))).start("s").tasks == ["left", "right"]


def test_a_subprocess_without_a_start_event_ends_when_all_that_began_in_it_has_ended() -> None:
    inside = (
        '<task id="quick"/><userTask id="a"/><userTask id="b"/><sequenceFlow id="k" sourceRef="b" targetRef="c"/><userTask id="c"/>'
        '<intermediateCatchEvent id="later"><timerEventDefinition><timeDuration>PT1H</timeDuration></timerEventDefinition>'
        "</intermediateCatchEvent>"
    )
    run = running(around(f'<subProcess id="x">{inside}</subProcess>')).start("s")
    assert run.open == ["a", "b", "later"]
    run.complete("a").complete("b").fire("later")
    assert (run.open, run.ended) == (["c"], None)
    run.complete("c")
    assert run.ended == "completed"


def test_all_of_it_may_be_done_at_once_and_nothing_may_lie_in_it() -> None:
    assert running(around('<subProcess id="x"><task id="a"/><task id="b"/></subProcess>')).start("s").ended == "completed"
    run = running(around('<subProcess id="x"/>')).start("s")
    assert run.ended == "completed"
    assert run.happened.count("element_left x") == 1


def test_a_message_end_event_that_is_bound_to_work_ends_when_the_work_is_done() -> None:
    event = '<endEvent id="e"><messageEventDefinition camunda:type="external" camunda:topic="mail"/></endEvent>'
    run = running(around('<task id="x"/>').replace(b'<endEvent id="e"/>', event.encode())).start("s")
    task = run.leaf("e", NewExternalTask)
    assert isinstance(task, NewExternalTask) and task.topic == "mail"
    assert run.ended is None
    assert run.complete("e", sent=True).ended == "completed"
    assert run.final["sent"] is True


def test_outputs_of_an_expression_see_its_value_and_its_inputs() -> None:
    mapped = (
        "<extensionElements><camunda:inputOutput><camunda:inputParameter name='rate'>${2}</camunda:inputParameter>"
        "<camunda:outputParameter name='all'><camunda:list><camunda:value>${rate}</camunda:value><camunda:value>${price}</camunda:value>"
        "</camunda:list></camunda:outputParameter></camunda:inputOutput></extensionElements>"
    )
    script = (
        f'<scriptTask id="x" scriptFormat="juel" camunda:resultVariable="price">{mapped}<script>${{amount * rate}}</script></scriptTask>'
    )
    run = running(around(script)).start("s", amount=4)
    assert run.final == {"amount": 4, "price": 8, "all": [2, 8]}
