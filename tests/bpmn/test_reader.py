"""What the reader makes of models that are right."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from engine.bpmn import support
from engine.bpmn.calls import bound_in_vain
from engine.bpmn.context import Context
from engine.bpmn.definition import (
    BoundaryConfig,
    CatchConfig,
    EndConfig,
    ErrorConfig,
    FormField,
    ServiceTaskConfig,
    StartConfig,
    SubprocessConfig,
    UserTaskConfig,
)
from engine.bpmn.names import Element
from engine.bpmn.reader import read_files
from tests.bpmn.models import around, definition, file_of, model, read

ORDER = {"id": 7, "customer": "Lea", "total": Decimal("9.5"), "lines": [{"sku": "a"}]}


def config(data: bytes, node: str = "x") -> Any:
    return definition(data).nodes[node].config


def test_a_model_with_one_of_everything_is_read() -> None:
    found = definition(model("every_element"))
    assert (found.key, found.name, found.documentation) == ("every_element", "Every element", "One of everything that is supported.")
    more = [definition(model(name)) for name in ("more_elements", "in_no_required_order", "compensation")]
    kinds = frozenset().union(*(row.kinds for row in support.TABLE.values()))
    calling = read_files([("calls", model("an_order_calls_a_check"))]).definitions
    every = (found, *more, *(each for _, each in calling))
    assert {node.kind for each in every for node in each.nodes.values()} == kinds
    assert found.starts == {None: ("start", "start_nightly", "start_by_message"), "pick": ("pick_start",)}
    assert found.nodes["reserve"].parent == found.nodes["none_left"].parent == "pick"
    assert found.nodes["pick"].attached == ("remind", "halted")
    assert found.nodes["in_order"].default == "f5"
    assert found.nodes["check"].incoming == ("f1", "f2", "f3")
    assert found.nodes["fork"].outgoing == ("f7", "f8")
    condition = found.flows["f6"].condition
    assert condition is not None
    assert condition.evaluate({"ok": False}) is True
    assert found.warnings == ()


def test_start_events_are_read() -> None:
    nodes = definition(model("every_element")).nodes
    start = nodes["start"].config
    assert isinstance(start, StartConfig)
    assert start.initiator == "starter"
    (amount,) = start.fields
    assert (amount.id, amount.type, amount.required, amount.minimum) == ("amount", "double", True, "0")
    nightly, message = nodes["start_nightly"].config, nodes["start_by_message"].config
    assert (nightly.timer.type, nightly.timer.expression.evaluate({})) == ("cycle", "0 0 2 ? * MON-FRI")
    assert message.message.name.evaluate({}) == "ORDER PLACED"


def test_a_user_task_is_read_with_people_dates_and_form() -> None:
    task = definition(model("every_element")).nodes["check"].config
    assert isinstance(task, UserTaskConfig)
    variables = {"starter": "ada", "deputy": "bo", "deadline": "2026-12-01", "order": ORDER}
    assert task.assignee is not None and task.assignee.evaluate(variables) == "ada"
    assert [user.evaluate(variables) for user in task.candidate_users] == ["ada", "bo"]
    assert [group.evaluate(variables) for group in task.candidate_groups] == ["sales"]
    assert task.due is not None and task.due.evaluate(variables) == "2026-12-01"
    assert task.follow_up is not None and task.follow_up.evaluate({}) == "P1D"
    assert task.priority is not None and task.priority.evaluate({}) == "70"
    assert task.name is not None and task.name.evaluate(variables) == "Check order 7"
    assert task.about is not None and task.about.evaluate(variables) == "Lea, 9.5 EUR"
    ok, colour, note = task.fields
    assert ok.default is not None and ok.default.evaluate({}) == "true"
    assert colour == FormField("colour", "Colour", "enum", values=(("red", "Red"), ("green", "Green")), readonly=True)
    assert (note.min_length, note.max_length) == (2, 200)


def test_a_service_task_is_read_with_mappings_and_retries() -> None:
    task = definition(model("every_element")).nodes["reserve"].config
    assert isinstance(task, ServiceTaskConfig)
    assert (task.work, task.topic, task.retry, task.max_attempts, task.lease_seconds) == ("handler", "stock.reserve", "R5/PT1M", 5, 120)
    given = {name: expression.evaluate({"order": ORDER}) for name, expression in task.inputs}
    assert given == {"sku": "a", "both": [7, "fixed"], "entries": {"id": 7}}
    ((name, output),) = task.outputs
    assert (name, output.evaluate({"shelf": {"number": 3}})) == ("place", 3)


def test_external_tasks_and_deliveries_are_told_apart_from_handlers() -> None:
    nodes = definition(model("every_element")).nodes
    dun, hurry = nodes["dun"].config, nodes["hurry"].config
    assert (dun.work, dun.topic, dun.max_attempts) == ("external", "dunning", 3)
    assert dun.priority.evaluate({"order": ORDER}) == Decimal("9.5")
    assert (hurry.work, hurry.topic, hurry.max_attempts) == ("deliver", "mail.send", 8)


def test_events_are_read() -> None:
    nodes = definition(model("every_element")).nodes
    remind, halted, none_left = (nodes[key].config for key in ("remind", "halted", "none_left"))
    assert isinstance(remind, BoundaryConfig) and remind.timer is not None
    assert (remind.attached_to, remind.interrupting, remind.timer.type) == ("pick", False, "cycle")
    assert halted.interrupting and halted.message.name.evaluate({}) == "HALT" and halted.message.key is None
    assert none_left.error == ErrorConfig("OUT_OF_STOCK", None, "why")
    paid, late = nodes["is_paid"].config, nodes["too_late"].config
    assert isinstance(paid, CatchConfig) and paid.message is not None and paid.message.key is not None
    assert paid.message.key.evaluate({"order": ORDER}) == 7
    assert late.timer.expression.evaluate({}) == "P14D"
    assert nodes["stop"].config == EndConfig(terminate=True)
    message = nodes["end"].config.message
    assert (message.name.evaluate({}), message.destination.evaluate({})) == ("SHIPPED", "http://orders.example/events")
    assert nodes["pick"].config == SubprocessConfig()


@pytest.mark.parametrize(
    ("attributes", "inside", "expected"),
    [
        ('baton:handler="check"', "", ("handler", "check")),
        ('camunda:type="external" camunda:topic="t"', "", ("external", "t")),
        ('flowable:type="external-worker" flowable:topic="t"', "", ("external", "t")),
        ('camunda:delegateExpression="${checkIt}"', "", ("handler", "checkIt")),
        ("", '<zeebe:taskDefinition type="z" retries="5"/>', ("handler", "z")),
        ('baton:handler="check" camunda:class="org.x.Y"', "", ("handler", "check")),
    ],
)
def test_a_service_task_may_be_bound_in_any_of_the_documented_ways(attributes: str, inside: str, expected: tuple[str, str]) -> None:
    task = config(around(f'<serviceTask id="x" {attributes}><extensionElements>{inside}</extensionElements></serviceTask>'))
    assert (task.work, task.topic) == expected
    assert task.max_attempts == (5 if inside else 3)


@pytest.mark.parametrize(
    ("text", "attempts", "retry"),
    [("R3/PT5M", 3, "R3/PT5M"), (" PT1M, PT5M ,PT30M", 4, "PT1M,PT5M,PT30M"), ("7", 7, None), ("PT0S", 2, "PT0S")],
)
def test_retry_policies_are_read(text: str, attempts: int, retry: str | None) -> None:
    task = config(around(f'<serviceTask id="x" baton:handler="h" baton:retry="{text}"/>'))
    assert (task.max_attempts, task.retry) == (attempts, retry)


def test_zeebe_says_who_does_a_user_task_and_when() -> None:
    task = config(
        around(
            '<userTask id="x"><extensionElements><zeebe:userTask/>'
            '<zeebe:assignmentDefinition assignee="= order.customer" candidateGroups="a, b" candidateUsers="= people"/>'
            '<zeebe:taskSchedule dueDate="= due"/></extensionElements></userTask>'
        )
    )
    assert task.assignee.evaluate({"order": ORDER}) == "Lea"
    assert [group.evaluate({}) for group in task.candidate_groups] == ["a", "b"]
    assert [user.evaluate({"people": ["x"]}) for user in task.candidate_users] == [["x"]]
    assert task.due.evaluate({"due": "2026-01-01"}) == "2026-01-01"


def test_a_comma_inside_an_expression_does_not_split_a_list_of_candidates() -> None:
    task = config(around("""<userTask id="x" camunda:candidateGroups="a,${b ? 'c,d' : e},f"/>"""))
    assert [group.evaluate({"b": True}) for group in task.candidate_groups] == ["a", "c,d", "f"]


@pytest.mark.parametrize(
    "prefix", ["http://camunda.org/schema/1.0/bpmn", "http://operaton.org/schema/1.0/bpmn", "http://activiti.org/bpmn"]
)
def test_the_prefix_of_a_vendor_does_not_matter_only_its_namespace(prefix: str) -> None:
    assert config(around(f'<userTask id="x" xmlns:v="{prefix}" v:assignee="ada"/>')).assignee.evaluate({}) == "ada"


def test_a_correlation_key_is_read_from_zeebe_or_from_our_own_attribute() -> None:
    catch = '<intermediateCatchEvent id="x"{}><messageEventDefinition messageRef="m"/></intermediateCatchEvent>'
    message = '<message id="m" name="M"{}/>'
    own = around(catch.format(""), root=message.format(' baton:correlationKey="${order.id}"'))
    assert config(own).message.key.evaluate({"order": ORDER}) == 7
    juel = '<message id="m" name="M"><extensionElements><zeebe:subscription correlationKey="${order.id}"/></extensionElements></message>'
    assert config(around(catch.format(""), root=juel)).message.key.evaluate({"order": ORDER}) == 7
    assert config(around(catch.format(' baton:correlationKey="k"'), root=message.format(""))).message.key.evaluate({}) == "k"
    assert config(around(catch.format(""), root=message.format(""))).message.key is None
    prefixed = catch.format("").replace('"m"', '"tns:m"')
    assert config(around(prefixed, root=message.format(""))).message.name.evaluate({}) == "M"


def test_a_timer_keeps_the_zone_that_its_author_gave() -> None:
    timer = '<timerEventDefinition baton:timeZone="Europe/Berlin"><timeDate>2026-07-01T08:00:00</timeDate></timerEventDefinition>'
    assert config(around(f'<intermediateCatchEvent id="x">{timer}</intermediateCatchEvent>')).timer.zone == "Europe/Berlin"
    assert config(around('<userTask id="x" camunda:dueDate="P1D" baton:timeZone="Europe/Berlin"/>')).zone == "Europe/Berlin"


def test_activities_and_events_may_fork_and_take_conditions_and_a_default() -> None:
    found = definition(
        file_of(
            '<startEvent id="s"/><sequenceFlow id="f1" sourceRef="s" targetRef="t"/><sequenceFlow id="f2" sourceRef="s" targetRef="e"/>'
            '<userTask id="t" default="f4"/>'
            '<sequenceFlow id="f3" sourceRef="t" targetRef="e"><conditionExpression>${a}</conditionExpression></sequenceFlow>'
            '<sequenceFlow id="f4" sourceRef="t" targetRef="e"/><endEvent id="e"/>'
        )
    )
    assert found.nodes["s"].outgoing == ("f1", "f2")
    assert found.nodes["t"].default == "f4"
    assert found.nodes["e"].incoming == ("f2", "f3", "f4")


def test_a_process_that_does_not_say_so_is_executable_and_others_are_passed_over() -> None:
    assert read(file_of('<startEvent id="s"/>', attributes="")).problems == ()
    two = file_of('<startEvent id="s"/>').replace(
        b"</definitions>", b'<process id="q" isExecutable="false"><task id="t"/></process></definitions>'
    )
    assert [found.key for _, found in read(two).definitions] == ["p"]


def test_what_is_only_drawn_is_passed_over_in_silence() -> None:
    body = (
        '<laneSet id="l"><lane id="l1"><flowNodeRef>s</flowNodeRef></lane></laneSet><textAnnotation id="n"><text>hm</text></textAnnotation>'
        '<association id="a" sourceRef="s" targetRef="n"/><group id="g"/><dataObject id="d"/>'
        '<dataObjectReference id="r" dataObjectRef="d"/>'
        '<startEvent id="s"/>'
    )
    root = (
        '<collaboration id="c"><participant id="pool" processRef="p"/><messageFlow id="m" sourceRef="pool" targetRef="s"/></collaboration>'
    )
    assert read(file_of(body, root=root)).warnings == ()


def test_foreign_attributes_and_extensions_that_nobody_reads_are_named_in_warnings() -> None:
    data = around(
        '<userTask id="x" camunda:formKey="app:f.jsf" other:colour="red" camunda:assignee="ada"><extensionElements>'
        '<camunda:taskListener event="create"/><other:thing/></extensionElements></userTask>'
    )
    result = read(data)
    assert result.problems == ()
    assert [(warning.element_id, warning.line, warning.what.removesuffix(" is not read")) for warning in result.warnings] == [
        ("x", 4, "the attribute camunda:formKey"),
        ("x", 4, "the attribute colour (urn:other)"),
        ("x", 4, "the extension element camunda:taskListener"),
        ("x", 4, "the extension element thing (urn:other)"),
    ]
    assert result.definitions[0][1].warnings == result.warnings


def test_elements_that_no_token_reaches_and_loops_without_end_are_warned_about() -> None:
    body = (
        '<startEvent id="s"/><sequenceFlow id="f1" sourceRef="s" targetRef="a"/><userTask id="a"/>'
        '<sequenceFlow id="f2" sourceRef="a" targetRef="b"/><userTask id="b"/><sequenceFlow id="f3" sourceRef="b" targetRef="a"/>'
        '<userTask id="island"/>'
    )
    warnings = read(file_of(body)).warnings
    assert {(warning.element_id, warning.what.rpartition(" is ")[2].rpartition("' ")[2]) for warning in warnings} == {
        ("s", "leads to no end"),
        ("a", "leads to no end"),
        ("b", "leads to no end"),
        ("island", "never reached"),
    }


def test_a_boundary_event_that_has_no_time_to_happen_is_warned_about() -> None:
    timer = "<timerEventDefinition><timeDuration>PT1M</timeDuration></timerEventDefinition>"
    late = f'<boundaryEvent id="b" attachedToRef="x">{timer}</boundaryEvent>'
    script = '<scriptTask id="x" scriptFormat="juel" camunda:resultVariable="b"><script>${a}</script></scriptTask>'
    for host in ('<task id="x"/>', '<manualTask id="x"/>', script):
        (warning,) = read(around(host, more=late)).warnings
        assert (warning.element_id, "never occurs" in warning.what) == ("b", True)
    assert read(around('<userTask id="x"/>', more=late)).warnings == ()


def test_an_escalation_boundary_on_a_task_is_warned_about_and_on_a_subprocess_not() -> None:
    event = '<boundaryEvent id="b" attachedToRef="x"><escalationEventDefinition/></boundaryEvent>'
    (warning,) = read(around('<userTask id="x"/>', more=event)).warnings
    assert (warning.element_id, "throws no escalation" in warning.what) == ("b", True)
    inside = '<startEvent id="i"/><sequenceFlow id="g" sourceRef="i" targetRef="j"/><endEvent id="j"/>'
    assert read(around(f'<subProcess id="x">{inside}</subProcess>', more=event)).warnings == ()


def test_event_subprocesses_are_listed_by_scope_and_their_start_says_whether_it_interrupts() -> None:
    event = '<messageEventDefinition messageRef="m"/>'
    handler = '<subProcess id="{}" triggeredByEvent="true"><startEvent id="{}" {}>{}</startEvent>{}</subProcess>'
    inner = handler.format("k", "on2", 'isInterrupting="false"', event, "")
    body = f'<startEvent id="s"/>{handler.format("h", "on", "", event, inner)}'
    found = definition(file_of(body, root='<message id="m" name="M"/>'))
    assert found.event_subprocesses == {None: ("h",), "h": ("k",)}
    assert found.starts == {None: ("s",), "h": ("on",), "k": ("on2",)}
    assert [found.nodes[key].config.interrupting for key in ("on", "on2")] == [True, False]
    assert {node.kind for node in found.nodes.values()} == {"start_event", "event_subprocess"}
    assert found.warnings == ()


def test_a_handler_that_no_worker_knows_is_warned_about() -> None:
    data = around('<serviceTask id="x" baton:handler="nosuch"/>')
    assert read(data).warnings == ()
    assert bound_in_vain(definition(data), {"nosuch"}) == ()
    (warning,) = bound_in_vain(definition(data), {"http.call"}, "m")
    assert (warning.element_id, warning.what, warning.file) == ("x", "x is bound to the handler 'nosuch', which no worker knows", "m")


@pytest.mark.parametrize(
    ("node", "value", "variable"),
    [
        ('<scriptTask id="x" scriptFormat="juel" baton:resultVariable="n"><script>${a + 1}</script></scriptTask>', 3, "n"),
        ('<scriptTask id="x" scriptFormat="text/x-feel" camunda:resultVariable="n"><script>a</script></scriptTask>', 2, "n"),
        ('<scriptTask id="x" flowable:resultVariable="n"><script>= a</script></scriptTask>', 2, "n"),
        ('<scriptTask id="x" camunda:resultVariable="n"><script>No. ${a}</script></scriptTask>', "No. 2", "n"),
        (
            '<scriptTask id="x"><extensionElements><zeebe:script expression="= a" resultVariable="m"/></extensionElements></scriptTask>',
            2,
            "m",
        ),
    ],
)
def test_a_script_is_one_expression_in_either_language(node: str, value: object, variable: str) -> None:
    read_script = config(around(node))
    assert (read_script.expression.evaluate({"a": 2}), read_script.result_variable) == (value, variable)


@pytest.mark.parametrize(
    "bound", ['baton:handler="h"', 'camunda:type="external" camunda:topic="h"', 'camunda:delegateExpression="${h}"', "zeebe"]
)
@pytest.mark.parametrize("tag", ["scriptTask", "sendTask", "businessRuleTask"])
def test_other_tasks_are_bound_as_service_tasks_are(tag: str, bound: str) -> None:
    zeebe = '<extensionElements><zeebe:taskDefinition type="h"/></extensionElements>' if bound == "zeebe" else ""
    script = "<script>a = 1</script>" if tag == "scriptTask" else ""
    attributes = "" if zeebe else bound
    assert config(around(f'<{tag} id="x" {attributes}>{zeebe}{script}</{tag}>')).topic == "h"


def loop_of(attributes: str, inside: str = "", tag: str = "multiInstanceLoopCharacteristics") -> Any:
    data = around(f'<userTask id="x"><{tag} {attributes}>{inside}</{tag}></userTask>')
    found = definition(data)
    assert found.warnings == ()
    return found.nodes["x"].loop


@pytest.mark.parametrize(
    ("attributes", "inside", "element"),
    [
        ('camunda:collection="items" camunda:elementVariable="one"', "", "one"),
        ('camunda:collection="${items}"', "", None),
        ('flowable:collection="items" flowable:elementVariable="one"', "", "one"),
        (
            "",
            '<extensionElements><zeebe:loopCharacteristics inputCollection="= items" inputElement="one"/></extensionElements>',
            "one",
        ),
    ],
)
def test_a_collection_is_read_in_each_spelling(attributes: str, inside: str, element: str | None) -> None:
    found = loop_of(attributes, inside)
    assert (found.collection.evaluate({"items": [1, 2]}), found.element, found.sequential) == ([1, 2], element, False)
    assert (found.cardinality, found.until, found.index) == (None, None, "loopCounter")


def test_cardinality_order_index_and_completion_condition_of_several_instances() -> None:
    inside = "<loopCardinality>${n}</loopCardinality><completionCondition>${nrOfCompletedInstances == 2}</completionCondition>"
    found = loop_of('isSequential="true" flowable:elementIndexVariable="i"', inside)
    assert (found.sequential, found.cardinality.evaluate({"n": 3}), found.index) == (True, 3, "i")
    assert found.until.evaluate({"nrOfCompletedInstances": 2}) is True


def test_a_standard_loop_has_a_condition_a_maximum_or_both() -> None:
    found = loop_of('testBefore="true" loopMaximum="3"', "<loopCondition>${more}</loopCondition>", "standardLoopCharacteristics")
    assert (found.test_before, found.maximum, found.condition.evaluate({"more": True})) == (True, 3, True)
    for always in ("true", "${true}"):
        assert loop_of("", f"<loopCondition>{always}</loopCondition>", "standardLoopCharacteristics").condition is not None
    found = loop_of('loopMaximum="2"', "", "standardLoopCharacteristics")
    assert (found.test_before, found.maximum, found.condition) == (False, 2, None)


def test_an_activity_keeps_its_quantities() -> None:
    node = definition(around('<userTask id="x" startQuantity="2" completionQuantity="3"/>')).nodes["x"]
    assert (node.start_quantity, node.completion_quantity) == (2, 3)


def test_a_looped_subprocess_keeps_its_flow_elements() -> None:
    inside = '<startEvent id="i"/><standardLoopCharacteristics loopMaximum="2"/>'
    found = definition(around(f'<subProcess id="x">{inside}</subProcess>'))
    assert (found.nodes["x"].loop is not None, found.nodes["i"].parent, set(found.nodes)) == (True, "x", {"s", "x", "i", "e"})


def test_a_shared_event_definition_is_read_where_events_refer_to_it() -> None:
    root = (
        '<timerEventDefinition id="hour"><timeDuration>PT1H</timeDuration></timerEventDefinition>'
        '<message id="m" name="M"/><messageEventDefinition id="shared" messageRef="m"/>'
    )
    event = '<intermediateCatchEvent id="{}"><eventDefinitionRef>{}</eventDefinitionRef></intermediateCatchEvent>'
    more = event.format("y", "tns:hour") + event.format("z", "shared")
    found = definition(around(event.format("x", "hour"), root=root, more=more))
    assert [found.nodes[key].config.timer.expression.text for key in ("x", "y")] == ["PT1H", "PT1H"]
    assert found.nodes["z"].config.message.name.evaluate({}) == "M"


def test_a_receive_task_that_instantiates_is_a_start_of_the_process() -> None:
    body = '<receiveTask id="r" messageRef="m" instantiate="true"/><endEvent id="e"/><sequenceFlow id="f" sourceRef="r" targetRef="e"/>'
    found = definition(file_of(body, root='<message id="m" name="M"/>'))
    assert found.starts == {None: ("r",)}
    assert found.warnings == ()


def test_an_element_can_be_added_without_touching_the_reader() -> None:
    def parse(element: Element, context: Context) -> str:
        return context.attribute(element, "colour", "urn:other") or "none"

    data = around('<other:paint id="x" other:colour="red"/>')
    with support.registered("{urn:other}paint", support.Supported("paint", "activity", parse)):
        node = definition(data).nodes["x"]
        assert (node.kind, node.config, node.incoming) == ("paint", "red", ("f1",))
    assert "paint" in read(data).problems[0].what
    with pytest.raises(ValueError, match="in the table already"):
        support.register("userTask", support.TABLE["userTask", None])


def test_S38_names_of_the_world_are_the_same_in_every_encoding() -> None:
    text = model("names_of_the_world").decode()
    names = ["Prüfung", "審批", "Оплата 🙂", "مراجعة"]
    encoded = {
        "utf-8": text.encode(),
        "utf-8 with a mark": text.encode("utf-8-sig"),
        "utf-16": text.replace('"UTF-8"', '"UTF-16"').encode("utf-16"),
        "utf-16 without a mark": text.replace('"UTF-8"', '"UTF-16"').encode("utf-16-be"),
        "undeclared": text.split("?>", 1)[1].strip().encode(),
    }
    for how, data in encoded.items():
        found = definition(data)
        assert [node.name for node in found.nodes.values()] == names, how
        assert found.name == "Prüfung 審批 Оплата 🙂 مراجعة"
    latin = '<?xml version="1.0" encoding="ISO-8859-1"?>' + around('<userTask id="x" name="Prüfung"/>').decode()
    assert definition(latin.encode("iso-8859-1")).nodes["x"].name == "Prüfung"
