"""What stands in for what a model leaves to another engine, or leaves out (decision 0075). Each is said at deployment."""

from __future__ import annotations

from typing import Any

import pytest

from engine.bpmn.calls import bound_in_vain
from engine.bpmn.definition import EndConfig, ErrorConfig, MessageConfig, ReceiveTaskConfig, ScriptConfig, ServiceTaskConfig
from engine.expressions import MissingName, constant
from tests.bpmn.models import around, definition, file_of, only_problem, read

HANDLER = "a handler of the name '{}': the job waits until a worker has it"
VARIABLE = "a variable of the name '{}', which is read instead"
OFFERED = '<interface id="i" name="Stock"><operation id="unnamed"/></interface>'


def config(data: bytes, key: str = "x") -> Any:
    return definition(data).nodes[key].config


def warnings(data: bytes) -> list[tuple[str, str]]:
    return [(each.what, each.why) for each in read(data).warnings]


# ---- work that nobody here can do


@pytest.mark.parametrize(
    ("node", "what"),
    [
        ('<serviceTask id="x"/>', "serviceTask 'x' says nowhere what it does"),
        ('<serviceTask id="x" implementation="##WebService"/>', "serviceTask 'x' says nowhere what it does"),
        ('<serviceTask id="x" operationRef="unnamed"/>', "serviceTask 'x' says nowhere what it does"),
        ('<sendTask id="x"/>', "sendTask 'x' says nowhere what it does"),
        ('<businessRuleTask id="x"/>', "businessRuleTask 'x' says nowhere what it does"),
        ('<scriptTask id="x"/>', "scriptTask 'x' says nowhere what it does"),
        ('<scriptTask id="x"><script> </script></scriptTask>', "scriptTask 'x' says nowhere what it does"),
        (
            '<scriptTask id="x" scriptFormat="javascript"><script>a = 1</script></scriptTask>',
            "scriptTask 'x' has a script in javascript, which is not run",
        ),
        (
            "<scriptTask id='x'><script>print(1)</script></scriptTask>",
            "scriptTask 'x' has the script 'print(1)' in no language, which is not run",
        ),
        (
            '<scriptTask id="x" scriptFormat="python" camunda:resource="send.py"/>',
            "scriptTask 'x' has its script in send.py, which is not read",
        ),
    ],
)
def test_a_task_whose_work_is_not_described_here_waits_for_a_handler_of_its_id(node: str, what: str) -> None:
    data = around(node, root=OFFERED)
    assert config(data) == ServiceTaskConfig("handler", "x")
    assert warnings(data) == [(what, HANDLER.format("x"))]


def test_an_empty_class_says_nothing() -> None:
    data = around('<serviceTask id="x" camunda:class=" "/>')
    assert config(data) == ServiceTaskConfig("handler", "x")
    assert [what for what, _ in warnings(data)] == ["serviceTask 'x' says nowhere what it does", "the attribute camunda:class is not read"]


def test_the_deployment_also_says_that_no_worker_knows_that_handler() -> None:
    (said,) = bound_in_vain(definition(around('<serviceTask id="x"/>')), {"y"})
    assert said.what == "x is bound to the handler 'x', which no worker knows"


@pytest.mark.parametrize("tag", ["serviceTask", "sendTask"])
def test_a_built_in_task_of_another_engine_is_a_handler_of_its_type_with_its_fields_as_inputs(tag: str) -> None:
    fields = (
        '<camunda:field name="to" stringValue="ada@example.org"/><camunda:field name="subject" expression="Order ${id}"/>'
        "<camunda:field name='text'><camunda:string>Hello</camunda:string></camunda:field>"
        "<camunda:field name='cc'><camunda:expression>${boss}</camunda:expression></camunda:field>"
    )
    data = around(f'<{tag} id="x" camunda:type="mail"><extensionElements>{fields}</extensionElements></{tag}>')
    found = config(data)
    assert (found.work, found.topic) == ("handler", "mail")
    values = {name: each.evaluate({"id": 7, "boss": "bo"}) for name, each in found.inputs}
    assert values == {"to": "ada@example.org", "subject": "Order 7", "text": "Hello", "cc": "bo"}
    assert warnings(data) == [(f"{tag} 'x' has the type 'mail', which is not run", HANDLER.format("mail"))]


def test_a_field_without_a_name_is_refused() -> None:
    data = around('<serviceTask id="x" camunda:class="a.B"><extensionElements><camunda:field/></extensionElements></serviceTask>')
    assert only_problem(data).what == "serviceTask 'x' has a field ''"


CONNECTOR = (
    '<serviceTask id="x"><extensionElements><camunda:connector><camunda:connectorId>http-connector</camunda:connectorId>'
    "<camunda:inputOutput><camunda:inputParameter name='url'>https://example.org/${id}</camunda:inputParameter>"
    "<camunda:outputParameter name='holiday'><camunda:script scriptFormat='javascript'>JSON.parse(response)</camunda:script>"
    "</camunda:outputParameter><camunda:outputParameter name='code'>${statusCode}</camunda:outputParameter></camunda:inputOutput>"
    "</camunda:connector>{}</extensionElements></serviceTask>"
)


def test_a_connector_is_a_handler_of_its_id_and_what_it_maps_is_mapped() -> None:
    found = config(around(CONNECTOR.replace("{}", "")))
    assert found.topic == "http-connector"
    assert ([name for name, _ in found.inputs], [name for name, _ in found.outputs]) == (["url"], ["holiday", "code"])
    assert found.inputs[0][1].evaluate({"id": 3}) == "https://example.org/3"
    assert [each.evaluate({"statusCode": 200, "holiday": True}) for _, each in found.outputs] == [True, 200]
    assert found.returned == ()


def test_outputs_of_the_task_itself_see_what_the_connector_made() -> None:
    more = "<camunda:inputOutput><camunda:outputParameter name='free'>${holiday}</camunda:outputParameter></camunda:inputOutput>"
    found = config(around(CONNECTOR.replace("{}", more)))
    assert [name for name, _ in found.outputs] == ["free"]
    assert [name for name, _ in found.returned] == ["holiday", "code"]


def test_a_script_in_a_mapping_is_a_variable_and_says_which() -> None:
    mapped = (
        "<extensionElements><camunda:inputOutput><camunda:inputParameter name='a'><camunda:script scriptFormat='groovy'>1</camunda:script>"
        "</camunda:inputParameter><camunda:inputParameter name='b'><camunda:list><camunda:script scriptFormat='juel'>${c}</camunda:script>"
        "<camunda:script scriptFormat='text/x-feel'>c + 1</camunda:script>"
        "</camunda:list></camunda:inputParameter></camunda:inputOutput></extensionElements>"
    )
    data = around(f'<serviceTask id="x" baton:handler="h">{mapped}</serviceTask>')
    values = [each.evaluate({"x.a": 5, "c": 6}) for _, each in config(data).inputs]
    assert values == [5, [6, 7]]
    assert warnings(data) == [
        (
            "the inputParameter 'a' of serviceTask 'x' is a script in groovy, which is not run",
            VARIABLE.format("x.a"),
        )
    ]


@pytest.mark.parametrize(("text", "value"), [("0", "0"), ("noop", "noop")])
def test_a_script_that_is_a_text_of_our_language_has_that_text_as_its_value(text: str, value: str) -> None:
    data = around(f'<scriptTask id="x" scriptFormat="juel" camunda:resultVariable="r"><script>{text}</script></scriptTask>')
    assert config(data) == ScriptConfig(constant(value), "r")
    assert warnings(data)[0][0] == f"the script of scriptTask 'x' is the text {text!r}"


def test_a_script_without_a_result_variable_says_that_its_value_goes_nowhere() -> None:
    data = around('<scriptTask id="x" scriptFormat="juel"><script>${a}</script></scriptTask>')
    assert config(data).result_variable == ""
    assert [what for what, _ in warnings(data)] == ["scriptTask 'x' has no resultVariable: its value is kept nowhere"]


# ---- conditions that nobody here can evaluate


def conditional(condition: str) -> bytes:
    way = f'<sequenceFlow id="go" sourceRef="x" targetRef="e">{condition}</sequenceFlow>'
    rest = '<sequenceFlow id="f3" sourceRef="x" targetRef="e"/><endEvent id="e"/>'
    start = '<startEvent id="s"/><sequenceFlow id="f1" sourceRef="s" targetRef="x"/><exclusiveGateway id="x" default="f3"/>'
    return file_of(start + way + rest)


@pytest.mark.parametrize(
    ("condition", "variable", "what"),
    [
        ("<conditionExpression>approved</conditionExpression>", "approved", "the condition of sequenceFlow 'go' is the text 'approved'"),
        ("<conditionExpression>over 1000</conditionExpression>", "go", "the condition of sequenceFlow 'go' is the text 'over 1000'"),
        (
            '<conditionExpression language="groovy">a > 1</conditionExpression>',
            "go",
            "the condition of sequenceFlow 'go' is written in groovy, which is not run",
        ),
        (
            "<conditionExpression>${rules.mayPass(order)}</conditionExpression>",
            "go",
            "the condition of sequenceFlow 'go' calls what is not here: expected a method that an expression may call, found mayPass()",
        ),
        (
            "<conditionExpression>${XML(order)}</conditionExpression>",
            "go",
            "the condition of sequenceFlow 'go' calls what is not here: expected a variable, found a call of XML()",
        ),
    ],
)
def test_a_condition_for_another_engine_or_for_people_is_a_variable(condition: str, variable: str, what: str) -> None:
    data = conditional(condition)
    found = definition(data).flows["go"].condition
    assert found is not None
    assert [found.evaluate({variable: value}) for value in (True, False)] == [True, False]
    with pytest.raises(MissingName):
        found.evaluate({})
    ((said, why),) = warnings(data)
    assert said.startswith(what)
    assert why == VARIABLE.format(variable)


@pytest.mark.parametrize(("text", "value"), [("true", True), (" False ", False)])
def test_true_and_false_mean_what_they_say(text: str, value: bool) -> None:
    data = conditional(f"<conditionExpression>{text}</conditionExpression>")
    found = definition(data).flows["go"].condition
    assert found is not None and found.evaluate({}) is value
    assert warnings(data) == []


# ---- messages and errors without a name


def test_a_receive_task_that_names_no_message_waits_for_that_of_its_id() -> None:
    data = around('<receiveTask id="x"/>')
    assert config(data) == ReceiveTaskConfig(MessageConfig(constant("x")))
    assert warnings(data) == [("receiveTask 'x' names no message", "a message of the name 'x', which is read instead")]


def two_pools(flow: str, root: str = "") -> bytes:
    """A send task `x`, and a process that the message starts at `begin`."""
    drawn = f'<collaboration id="c"><participant id="a" processRef="p"/><participant id="b" processRef="q"/>{flow}</collaboration>'
    other = (
        '<process id="q" isExecutable="true"><startEvent id="begin"><messageEventDefinition/></startEvent>'
        '<sequenceFlow id="g" sourceRef="begin" targetRef="y"/><endEvent id="y"/></process>'
    )
    return around('<sendTask id="x"/>', root=root + drawn).replace(b"</definitions>", f"{other}</definitions>".encode())


@pytest.mark.parametrize(
    ("attributes", "root", "name"),
    [
        ('id="m1" name=" New  order "', "", "New order"),
        ('id="m1"', "", "m1"),
        ('id="m1" name="drawn" messageRef="m"', '<message id="m" name="ORDER"/>', "ORDER"),
    ],
)
def test_what_a_message_flow_joins_sends_and_waits_for_one_message(attributes: str, root: str, name: str) -> None:
    data = two_pools(f'<messageFlow {attributes} sourceRef="x" targetRef="begin"/>', root)
    result = read(data)
    assert result.problems == ()
    (_, one), (_, other) = result.definitions
    sent, awaited = one.nodes["x"].config, other.nodes["begin"].config.message
    assert isinstance(sent, MessageConfig)
    assert (sent.name.evaluate({}), awaited.name.evaluate({})) == (name, name)
    assert [what.partition(" names")[0] for what, _ in warnings(data)] == ["sendTask 'x'", "startEvent 'begin'"]


def test_an_event_about_which_message_flows_say_different_things_is_refused() -> None:
    flows = '<messageFlow id="m1" sourceRef="x" targetRef="begin"/><messageFlow id="m2" sourceRef="a" targetRef="begin"/>'
    assert only_problem(two_pools(flows)).what == "startEvent 'begin' names no message"


@pytest.mark.parametrize("what", ["message", "signal"])
def test_flowable_names_messages_and_signals_by_expressions(what: str) -> None:
    event = f"<{what}EventDefinition flowable:{what}Expression=\"${{'news-' + 1}}\"/>".replace("'news-' + 1", "topic")
    found = getattr(config(around(f'<intermediateCatchEvent id="x">{event}</intermediateCatchEvent>')), what)
    assert found.name.evaluate({"topic": "news"}) == "news"


def test_an_error_end_that_names_no_error_throws_its_own_id() -> None:
    inside = '<startEvent id="i"/><sequenceFlow id="k" sourceRef="i" targetRef="j"/><endEvent id="j"><errorEventDefinition/></endEvent>'
    data = around(f'<subProcess id="x">{inside}</subProcess>')
    assert config(data, "j") == EndConfig(error="j")
    assert warnings(data) == [("endEvent 'j' names no error", "an errorRef; its code is 'j', and what catches every error catches it")]


BORDER = (
    '<boundaryEvent id="b" attachedToRef="x"><errorEventDefinition errorRef="GONE"/></boundaryEvent>'
    '<sequenceFlow id="h" sourceRef="b" targetRef="e"/>'
)


def test_a_reference_to_no_error_is_its_code_in_a_vendors_file_and_refused_in_others() -> None:
    data = around('<userTask id="x"/>', more=BORDER)
    assert config(data, "b").error == ErrorConfig("GONE", None, None)
    assert warnings(data)[0][0] == "boundaryEvent 'b' refers to the error 'GONE', which does not exist"
    rest = data.partition(b">")[2]
    plain = b'<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL">' + rest
    assert "boundaryEvent 'b' refers to the error 'GONE', which does not exist" in [each.what for each in read(plain).problems]


# ---- gateways, users, message events, work items


def gateway(tag: str, ways: str, attributes: str = "") -> bytes:
    start = f'<startEvent id="s"/><sequenceFlow id="f1" sourceRef="s" targetRef="x"/><{tag} id="x" {attributes}/>'
    return file_of(f'{start}{ways}<endEvent id="e"/><endEvent id="d"/>')


OPEN = '<sequenceFlow id="{}" sourceRef="x" targetRef="{}"/>'
IF = '<sequenceFlow id="{}" sourceRef="x" targetRef="{}"><conditionExpression>${{a}}</conditionExpression></sequenceFlow>'


def test_the_one_way_out_of_an_exclusive_gateway_without_a_condition_is_the_default() -> None:
    data = gateway("exclusiveGateway", OPEN.format("open", "e") + IF.format("shut", "d"))
    assert definition(data).nodes["x"].default == "open"
    what = "sequenceFlow 'open' has no condition and is one of several that leave exclusiveGateway 'x'"
    assert warnings(data) == [(what, "a condition, or to be the default flow, as which it is read")]


def test_of_several_ways_without_a_condition_each_is_a_variable() -> None:
    for attributes, ways in (("", "ab"), ('default="d1"', "a")):
        flows = "".join(OPEN.format(way, "e") for way in ways) + (OPEN.format("d1", "d") if attributes else "")
        data = gateway("exclusiveGateway", flows, attributes)
        conditions = [definition(data).flows[way].condition for way in ways]
        assert [each and each.evaluate({way: True}) for each, way in zip(conditions, ways, strict=True)] == [True] * len(ways)
        assert [why for _, why in warnings(data)][: len(ways)] == [VARIABLE.format(way) for way in ways]


def test_a_way_out_of_an_inclusive_gateway_without_a_condition_is_always_taken() -> None:
    data = gateway("inclusiveGateway", OPEN.format("open", "e") + IF.format("shut", "d"))
    found = definition(data)
    assert (found.flows["open"].condition, found.nodes["x"].default) == (None, None)
    assert [why for _, why in warnings(data)] == ["a condition, or to be the default flow; it is taken always"]


def test_who_a_bean_would_have_found_is_a_variable() -> None:
    data = around('<userTask id="x" camunda:assignee="${people.findBoss(order)}" camunda:candidateGroups="sales, ${people.teams()}"/>')
    found = config(data)
    assert found.assignee.evaluate({"x.assignee": "bo"}) == "bo"
    assert [each.evaluate({"x.candidateGroups": ["a", "b"]}) for each in found.candidate_groups] == ["sales", ["a", "b"]]
    assert [why for _, why in warnings(data)] == [VARIABLE.format("x.assignee"), VARIABLE.format("x.candidateGroups")]


@pytest.mark.parametrize("tag", ["intermediateThrowEvent", "endEvent"])
def test_a_message_event_that_a_vendor_binds_to_work_is_done_as_a_send_task(tag: str) -> None:
    bound = '<messageEventDefinition camunda:type="external" camunda:topic="mail"/>'
    thrown = around(f'<intermediateThrowEvent id="x">{bound}</intermediateThrowEvent>')
    ended = around('<userTask id="x"/>').replace(b'<endEvent id="e"/>', f'<endEvent id="e">{bound}</endEvent>'.encode())
    data, key = (ended, "e") if tag == "endEvent" else (thrown, "x")
    node = definition(data).nodes[key]
    assert (node.kind, node.config) == ("send_task", ServiceTaskConfig("external", "mail"))
    assert warnings(data) == []


def test_a_work_item_of_jbpm_is_a_handler_and_no_abstract_task() -> None:
    data = around('<task id="x" xmlns:tns="http://www.jboss.org/drools" tns:taskName="Email"/>')
    node = definition(data).nodes["x"]
    assert (node.kind, node.config) == ("service_task", ServiceTaskConfig("handler", "Email"))
    assert warnings(data) == [("task 'x' is the work item 'Email', which is not run", HANDLER.format("Email"))]


def test_a_result_that_a_call_keeps_for_itself_is_said_not_to_be_kept() -> None:
    kept = '<extensionElements><camunda:out source="a" target="b" local="true"/></extensionElements>'
    data = around(f'<callActivity id="x" calledElement="q">{kept}</callActivity>')
    assert config(data).results == ()
    assert warnings(data)[0][0] == "callActivity 'x' keeps a result local, where nothing is left that could see it"


def test_a_subprocess_without_a_start_event_begins_with_all_that_no_flow_leads_to() -> None:
    inside = '<userTask id="a"/><task id="b"/><sequenceFlow id="g" sourceRef="a" targetRef="c"/><task id="c"/>'
    assert definition(around(f'<subProcess id="x">{inside}</subProcess>')).starts["x"] == ("a", "b")
    data = around('<subProcess id="x"/>')
    assert definition(data).starts["x"] == ()
    assert warnings(data) == [("subProcess 'x' holds nothing that begins", "a start event, or an activity; it is done at once")]


@pytest.mark.parametrize("called", ["", "<extensionElements><zeebe:calledElement/></extensionElements>"])
def test_a_call_activity_that_calls_nothing_calls_the_process_of_its_id(called: str) -> None:
    data = around(f'<callActivity id="x">{called}</callActivity>')
    assert config(data).process.evaluate({}) == "x"
    assert ("callActivity 'x' says nowhere what it calls", "a process of the id 'x', which is called instead") in warnings(data)


def test_an_event_that_throws_a_message_and_names_none_sends_that_of_its_id() -> None:
    data = around('<intermediateThrowEvent id="x"><messageEventDefinition/></intermediateThrowEvent>')
    assert config(data).message.name.evaluate({}) == "x"
    assert warnings(data) == [("intermediateThrowEvent 'x' names no message", "a message of the name 'x', which is read instead")]
    plain = b'<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL">' + data.partition(b">")[2]
    assert "intermediateThrowEvent 'x' names no message" in [each.what for each in read(plain).problems]
    caught = around('<intermediateCatchEvent id="x"><messageEventDefinition/></intermediateCatchEvent>')
    assert only_problem(caught).what == "intermediateCatchEvent 'x' names no message"


def test_a_retry_of_no_repetition_is_one_attempt() -> None:
    cycle = "<extensionElements><camunda:failedJobRetryTimeCycle>R0/PT1S</camunda:failedJobRetryTimeCycle></extensionElements>"
    found = config(around(f'<serviceTask id="x" baton:handler="h">{cycle}</serviceTask>'))
    assert (found.retry, found.max_attempts) == ("R1/PT1S", 1)


def test_an_activity_for_compensation_that_nothing_leads_to_is_warned_about_in_a_vendors_file() -> None:
    data = around('<userTask id="x"/>', more='<userTask id="undo" isForCompensation="true"/>')
    ((what, why),) = warnings(data)
    assert what == "userTask 'undo' is for compensation, and no compensation boundary event leads to it"
    assert why.endswith("it never runs")


JBPM = 'xmlns:drools="http://www.jboss.org/drools"'


@pytest.mark.parametrize(
    ("tag", "text", "time"),
    [
        ("timeDuration", "500ms", "PT0.5S"),
        ("timeDuration", " 1d2h30m ", "PT95400S"),
        ("timeCycle", "2s###2s", "R/PT2S"),
        ("timeCycle", "1m", "R/PT60S"),
    ],
)
def test_the_times_of_jbpm_are_read_in_its_files(tag: str, text: str, time: str) -> None:
    timer = f"<timerEventDefinition><{tag}>{text}</{tag}></timerEventDefinition>"
    catch = around(f'<intermediateCatchEvent id="x" {JBPM}>{timer}</intermediateCatchEvent>')
    assert config(catch).timer.expression.evaluate({}) == time
    assert only_problem(around(f'<intermediateCatchEvent id="x">{timer}</intermediateCatchEvent>')).what.endswith(f"found {text.strip()!r}")


def test_a_cycle_of_jbpm_whose_first_wait_is_another_is_refused() -> None:
    timer = "<timerEventDefinition><timeCycle>1s###2s</timeCycle></timerEventDefinition>"
    assert "found '1s###2s'" in only_problem(around(f'<intermediateCatchEvent id="x" {JBPM}>{timer}</intermediateCatchEvent>')).what


def test_a_correlation_subscription_is_said_not_to_be_read() -> None:
    data = around('<userTask id="x"/>', more='<correlationSubscription id="c" correlationKeyRef="k"/>')
    assert [what for what, _ in warnings(data)] == ["the element correlationSubscription is not read"]
