"""Listeners and asynchronous elements: what is put between an element and its flows, and what has no place and is reported."""

from __future__ import annotations

import pytest

from engine.bpmn.calls import bound_in_vain
from engine.bpmn.definition import ContinuationConfig, Node, ProcessDefinition, ScriptConfig, ServiceTaskConfig
from engine.expressions import parse
from tests.bpmn.models import around, definition, file_of, model, only_problem, read

LISTENER = '<camunda:{}Listener event="{}" {}/>'


def task(listeners: str, *, tag: str = "userTask", attributes: str = "", more: str = "") -> bytes:
    return around(f'<{tag} id="x" name="X" {attributes}><extensionElements>{listeners}</extensionElements></{tag}>', more=more)


def listener(event: str, binding: str = 'class="a.B"', *, kind: str = "execution") -> str:
    return LISTENER.format(kind, event, binding)


def way(found: ProcessDefinition, start: str = "s") -> list[str]:
    """The nodes from the start on, where each has one flow out."""
    path, node = [start], found.nodes[start]
    while node.outgoing:
        (flow,) = node.outgoing
        assert found.flows[flow].source == node.id
        node = found.nodes[found.flows[flow].target]
        assert flow in node.incoming
        path.append(node.id)
    return path


def warnings(data: bytes) -> list[str]:
    result = read(data)
    assert result.problems == ()
    return [each.what for each in result.warnings]


def test_listeners_of_an_activity_are_jobs_before_and_after_it() -> None:
    told = listener("end") + listener("start") + listener("start", 'delegateExpression="${second}"')
    found = definition(task(told))
    assert way(found) == ["s", "x#before-1", "x#before-2", "x", "x#after-1", "e"]
    assert found.nodes["x#before-1"] == Node(
        "x#before-1",
        "service_task",
        name="start listener of X",
        incoming=("f1",),
        outgoing=("x#before-1-to-x#before-2",),
        line=4,
        config=ServiceTaskConfig("handler", "a.B"),
    )
    assert found.nodes["x#before-2"].config == ServiceTaskConfig("handler", "second")
    assert (found.flows["f1"].source, found.flows["f1"].target) == ("s", "x#before-1")


def test_task_listeners_stand_closer_to_the_task_than_those_of_its_execution() -> None:
    told = "".join(
        listener(event, f'delegateExpression="${{{event}}}"', kind=kind)
        for kind, event in [("execution", "start"), ("task", "create"), ("execution", "end"), ("task", "complete")]
    )
    found = definition(task(told))
    assert [found.nodes[key].config.topic for key in way(found) if "#" in key] == ["start", "create", "complete", "end"]


def test_asynchronous_elements_begin_and_end_by_a_job() -> None:
    cycle = "<camunda:failedJobRetryTimeCycle>R5/PT1M</camunda:failedJobRetryTimeCycle>"
    data = task(
        listener("start") + listener("end") + cycle,
        attributes='camunda:asyncBefore="true" camunda:asyncAfter="true" camunda:exclusive="false" camunda:jobPriority="7"',
    )
    found = definition(data)
    assert way(found) == ["s", "x#before-1", "x#before-2", "x", "x#after-1", "x#after-2", "e"]
    config = ContinuationConfig("R5/PT1M", 5, parse("7"))
    assert [(found.nodes[key].kind, found.nodes[key].config) for key in ("x#before-1", "x#after-2")] == [("continuation", config)] * 2
    assert warnings(data) == [
        "the end listener of userTask 'X' is bound to the class a.B, which is not run",
        "the start listener of userTask 'X' is bound to the class a.B, which is not run",
    ]


def test_the_priority_of_a_process_is_that_of_its_asynchronous_elements() -> None:
    data = task("", attributes='camunda:asyncBefore="true"').replace(b'<process id="p"', b'<process id="p" camunda:jobPriority="7"')
    assert definition(data).nodes["x#before-1"].config == ContinuationConfig(priority=parse("7"))
    assert warnings(data) == []


@pytest.mark.parametrize("attribute", ["camunda:async", "flowable:async", "camunda:asyncBefore"])
def test_a_service_task_is_a_job_anyhow(attribute: str) -> None:
    data = around(f'<serviceTask id="x" baton:handler="h" {attribute}="true" {attribute.partition(":")[0]}:exclusive="false"/>')
    assert way(definition(data)) == ["s", "x", "e"]
    assert warnings(data) == []


@pytest.mark.parametrize(
    ("process", "task", "exclusive"),
    [
        ("", 'baton:handler="h"', False),
        ("", 'baton:handler="h" camunda:asyncBefore="true"', False),  # nothing said is not yes, as it is in Camunda 7
        ("", 'baton:handler="h" camunda:asyncBefore="true" camunda:exclusive="true"', True),
        ("", 'baton:handler="h" camunda:exclusive="false"', False),
        ("", 'baton:handler="h" baton:exclusive="true"', True),
        ("", 'camunda:type="external" camunda:topic="t" baton:exclusive="1"', True),
        ("", 'camunda:type="external" camunda:topic="t" camunda:asyncBefore="true" camunda:exclusive="true"', False),
        ('baton:exclusive="true"', 'baton:handler="h"', True),
        ('baton:exclusive="true"', 'camunda:type="external" camunda:topic="t"', True),
        ('baton:exclusive="true"', 'baton:handler="h" baton:exclusive="false"', False),
        ('baton:exclusive="true"', 'baton:handler="h" camunda:exclusive="false"', False),
        ('baton:exclusive="true"', 'baton:handler="http.deliver"', False),
    ],
)
def test_what_is_exclusive_says_so_itself_or_by_its_process(process: str, task: str, exclusive: bool) -> None:
    url = '<camunda:inputParameter name="url">http://a</camunda:inputParameter>'
    inner = f"<extensionElements><camunda:inputOutput>{url}</camunda:inputOutput></extensionElements>"
    data = around(f'<serviceTask id="x" {task}>{inner}</serviceTask>').replace(b'<process id="p"', f'<process id="p" {process}'.encode())
    found = definition(data)
    assert found.nodes["x"].config.exclusive is exclusive
    assert [text for text in warnings(data) if "exclusive" in text] == []


def test_an_exclusive_that_is_neither_true_nor_false_is_refused() -> None:
    problem = only_problem(around('<serviceTask id="x" baton:handler="h" baton:exclusive="maybe"/>'))
    assert (problem.what, problem.why) == ("baton:exclusive of serviceTask 'x' is 'maybe'", "true or false")


def test_what_an_event_begins_with_comes_after_it_and_what_an_end_ends_with_before() -> None:
    ends = f'<startEvent id="s" camunda:asyncBefore="true"><extensionElements>{listener("end")}</extensionElements></startEvent>'
    told = f"<extensionElements>{listener('start')}{listener('end')}</extensionElements>"
    body = f'{ends}<endEvent id="x">{told}</endEvent><sequenceFlow id="f" sourceRef="s" targetRef="x"/>'
    found = definition(file_of(body))
    assert [(key, found.nodes[key].name) for key in way(found)] == [
        ("s", ""),
        ("s#after-1", "before s"),
        ("s#after-2", "end listener of s"),
        ("x#before-1", "start listener of x"),
        ("x#before-2", "end listener of x"),
        ("x", ""),
    ]


def test_the_conditions_of_an_activity_are_asked_after_its_listeners() -> None:
    more = '<task id="y"/><sequenceFlow id="f3" sourceRef="x" targetRef="y"><conditionExpression>${a}</conditionExpression></sequenceFlow>'
    found = definition(task(listener("end"), attributes='default="f2"', more=more))
    last = found.nodes["x#after-1"]
    assert (last.outgoing, last.default) == (("f2", "f3"), "f2")
    assert (found.nodes["x"].outgoing, found.nodes["x"].default) == (("x-to-x#after-1",), None)
    assert found.flows["f3"].condition == parse("${a}")


def test_a_listener_of_a_flow_stands_on_it() -> None:
    flow = f'<sequenceFlow id="f" sourceRef="s" targetRef="e"><extensionElements>{listener("take")}</extensionElements></sequenceFlow>'
    found = definition(file_of(f'<startEvent id="s"/><endEvent id="e"/>{flow}'))
    assert way(found) == ["s", "f#take-1", "e"]
    assert found.nodes["e"].incoming == ("f#take-1-to-e",)


def test_listeners_of_a_process_stand_after_its_starts() -> None:
    told = f"<extensionElements>{listener('start')}{listener('end')}</extensionElements>"
    body = f'{told}<startEvent id="s"/><endEvent id="e"/><sequenceFlow id="f" sourceRef="s" targetRef="e"/>'
    found = definition(file_of(body))
    assert way(found) == ["s", "s#after-1", "e"]
    assert "the extension element camunda:executionListener is not read" in warnings(file_of(body)), "that of its end"


def test_an_expression_is_evaluated_and_a_method_is_a_handler() -> None:
    found = definition(task(listener("start", 'expression="${1 + 1}"') + listener("start", 'expression="${bean.method(execution)}"')))
    assert found.nodes["x#before-1"].config == ScriptConfig(parse("${1 + 1}"), "")
    assert found.nodes["x#before-2"].config == ServiceTaskConfig("handler", "bean.method")


def test_listeners_of_zeebe_are_job_types() -> None:
    told = (
        '<zeebe:executionListeners><zeebe:executionListener eventType="start" type="go" retries="5"/></zeebe:executionListeners>'
        '<zeebe:taskListeners><zeebe:taskListener eventType="completing" type="done"/>'
        '<zeebe:taskListener eventType="assigning" type="who"/>'
        "</zeebe:taskListeners>"
    )
    found = definition(task(told))
    assert found.nodes["x#before-1"].config == ServiceTaskConfig("handler", "go", max_attempts=5)
    assert found.nodes["x#after-1"].config == ServiceTaskConfig("handler", "done")
    assert warnings(task(told)) == ["the element zeebe:taskListener is not read"]


@pytest.mark.parametrize(
    "told",
    [
        listener("assignment", kind="task"),
        listener("delete", kind="task"),
        listener("start", ""),
        listener("start", 'expression="${execution.setVariable(a, 1)}"'),
        listener("start", 'delegateExpression="a bean"'),
        listener("start", 'class=""'),
        '<camunda:executionListener event="start"><camunda:script scriptFormat="groovy">a</camunda:script></camunda:executionListener>',
    ],
)
def test_a_listener_without_a_counterpart_is_reported_by_name(told: str) -> None:
    assert way(definition(task(told))) == ["s", "x", "e"]
    (said,) = warnings(task(told))
    assert said in ("the extension element camunda:taskListener is not read", "the extension element camunda:executionListener is not read")


@pytest.mark.parametrize(
    "body",
    [
        # what compensates has no flows, and an event behind a gateway of events none of its own
        '<boundaryEvent id="b" attachedToRef="x"><compensateEventDefinition/></boundaryEvent>'
        '<task id="y" isForCompensation="true">{}</task>'
        '<association sourceRef="b" targetRef="y" associationDirection="One"/>',
        '<subProcess id="y" triggeredByEvent="true">{}<startEvent id="a"><timerEventDefinition>'
        "<timeDuration>PT1H</timeDuration></timerEventDefinition></startEvent></subProcess>",
        '<adHocSubProcess id="y"><userTask id="z">{}</userTask></adHocSubProcess>',
    ],
)
def test_a_listener_without_a_place_is_reported_by_name(body: str) -> None:
    data = around('<userTask id="x"/>', more=body.replace("{}", f"<extensionElements>{listener('start')}</extensionElements>"))
    assert "the extension element camunda:executionListener is not read" in warnings(data)
    assert not any("#before" in key for key in definition(data).nodes)


def test_what_a_link_ends_with_comes_before_it() -> None:
    told = f"<extensionElements>{listener('start')}{listener('end')}</extensionElements>"
    link = '<linkEventDefinition name="l"/>'
    body = (
        f'<startEvent id="s"/><sequenceFlow id="f" sourceRef="s" targetRef="x"/><intermediateThrowEvent id="x">{told}{link}'
        f'</intermediateThrowEvent><intermediateCatchEvent id="y">{told}{link}</intermediateCatchEvent>'
        '<sequenceFlow id="g" sourceRef="y" targetRef="e"/><endEvent id="e"/>'
    )
    found = definition(file_of(body))
    assert way(found) == ["s", "x#before-1", "x#before-2", "x"]
    assert way(found, "y") == ["y", "y#after-1", "y#after-2", "e"]


def test_joins_and_gateways_of_events_keep_their_flows() -> None:
    fork = "".join(f'<sequenceFlow id="g{n}" sourceRef="x" targetRef="j"/>' for n in "12")
    told = f"<extensionElements>{listener('start')}</extensionElements>"
    body = (
        f'<startEvent id="s"/><sequenceFlow id="f" sourceRef="s" targetRef="x"/><parallelGateway id="x">{told}</parallelGateway>{fork}'
        f'<parallelGateway id="j">{told}</parallelGateway><sequenceFlow id="h" sourceRef="j" targetRef="e"/><endEvent id="e"/>'
    )
    found = definition(file_of(body))
    assert found.nodes["x"].incoming == ("x#before-1-to-x",)
    assert found.nodes["j"].incoming == ("g1", "g2")
    assert warnings(file_of(body)).count("the extension element camunda:executionListener is not read") == 1


def test_the_listeners_of_a_loop_are_called_around_it_and_that_is_said() -> None:
    loop = "<multiInstanceLoopCharacteristics><loopCardinality>3</loopCardinality></multiInstanceLoopCharacteristics>"
    data = around(f'<userTask id="x"><extensionElements>{listener("start")}</extensionElements>{loop}</userTask>')
    assert way(definition(data)) == ["s", "x#before-1", "x", "e"]
    assert "the listeners of userTask 'x' are called once, before and after all its instances" in warnings(data)


def test_a_listener_whose_handler_no_worker_has_is_warned_about() -> None:
    (warned,) = bound_in_vain(definition(task(listener("start", 'delegateExpression="${ship}"'))), ["mail"])
    assert (warned.element_id, "is bound to the handler 'ship', which no worker knows" in warned.what) == ("x", True)


def test_retries_that_cannot_be_read_are_a_problem() -> None:
    bad = '<zeebe:executionListeners><zeebe:executionListener eventType="start" type="go" retries="many"/></zeebe:executionListeners>'
    assert only_problem(task(bad)).what.startswith("the retries of the start listener of userTask 'X' cannot be read")
    cycle = "<camunda:failedJobRetryTimeCycle>often</camunda:failedJobRetryTimeCycle>"
    assert only_problem(task(cycle, attributes='camunda:asyncBefore="true"')).what.startswith("the retries of userTask 'X' cannot be read")


def test_a_model_with_all_of_it_is_read_to_the_last_attribute() -> None:
    assert warnings(model("listeners_and_steps")) == []
