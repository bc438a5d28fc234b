"""Models as other tools and engines write them: what runs, under which name, and what is said about the rest."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from engine.bpmn.calls import bound_in_vain
from engine.bpmn.context import MAX_NAME
from engine.bpmn.definition import ScriptConfig, ServiceTaskConfig, UserTaskConfig
from engine.bpmn.times import parse_due
from engine.expressions import parse
from engine.expressions.clock import CLOCK
from tests.bpmn.models import around, definition, file_of, only_problem, read

# ---- flows without ids


def unnamed(*ends: tuple[str, str], more: str = "") -> bytes:
    flows = "".join(f'<sequenceFlow sourceRef="{source}" targetRef="{target}"/>' for source, target in ends)
    return file_of(f'<startEvent id="s"/><parallelGateway id="x"/><task id="t"/><endEvent id="e"/>{flows}{more}')


def test_a_flow_without_an_id_gets_one_of_its_ends() -> None:
    found = definition(unnamed(("s", "x"), ("x", "t"), ("t", "e"), ("x", "e")))
    assert list(found.flows) == ["s-to-x", "x-to-t", "t-to-e", "x-to-e"]
    assert found.nodes["x"].outgoing == ("x-to-t", "x-to-e")


def test_the_id_of_a_flow_is_the_same_wherever_it_stands_in_the_file() -> None:
    ends = [("s", "x"), ("x", "t"), ("t", "e"), ("x", "e")]
    assert set(definition(unnamed(*ends)).flows) == set(definition(unnamed(*reversed(ends))).flows)


def test_two_flows_between_the_same_elements_are_two_and_no_id_is_taken_twice() -> None:
    named = '<sequenceFlow id="x-to-e-2" sourceRef="x" targetRef="e"/><sequenceFlow id="x-to-t" sourceRef="x" targetRef="e"/>'
    found = definition(unnamed(("s", "x"), ("x", "t"), ("t", "e"), ("x", "e"), ("x", "e"), more=named))
    assert set(found.flows) == {"s-to-x", "x-to-t", "x-to-t-2", "t-to-e", "x-to-e", "x-to-e-2", "x-to-e-3"}


def test_ends_with_long_ids_make_an_id_that_fits() -> None:
    long = "a" * MAX_NAME
    found = definition(file_of(f'<startEvent id="s"/><task id="{long}"/><sequenceFlow sourceRef="s" targetRef="{long}"/>'))
    (flow,) = found.flows
    assert flow.startswith("flow-") and len(flow) <= MAX_NAME


def test_a_flow_without_an_id_is_judged_as_any_other() -> None:
    problem = only_problem(file_of('<startEvent id="s"/><sequenceFlow sourceRef="s" targetRef="gone"/>'))
    assert problem.what == "sequenceFlow 's-to-gone' has the targetRef 'gone', which does not exist"


def test_a_flow_node_without_an_id_stays_refused() -> None:
    assert [each.what for each in read(file_of('<startEvent id="s"/><task name="T"/>')).problems] == ["a task named 'T' has no id"]


# ---- what other engines call in Java


def task(attributes: str, *, tag: str = "serviceTask") -> bytes:
    return around(f'<{tag} id="x" {attributes}/>')


def config(data: bytes) -> ServiceTaskConfig | ScriptConfig:
    found = definition(data).nodes["x"].config
    assert isinstance(found, ServiceTaskConfig | ScriptConfig)
    return found


@pytest.mark.parametrize("prefix", ["camunda", "flowable"])
@pytest.mark.parametrize("tag", ["serviceTask", "sendTask", "businessRuleTask", "scriptTask"])
@pytest.mark.parametrize(
    ("binding", "handler", "warning"),
    [
        ('class="org.x.Ship$Now"', "org.x.Ship$Now", "is bound to the class org.x.Ship$Now, which is not run"),
        ('delegateExpression="#{ship.now}"', "ship.now", None),
        ('expression="${ship.now()}"', "ship.now", "calls ship.now, which is not run"),
        ('expression="#{ ship.now(order, execution) }"', "ship.now", "calls ship.now with (order, execution), which is not run"),
    ],
)
def test_classes_beans_and_methods_are_names_of_handlers(prefix: str, tag: str, binding: str, handler: str, warning: str | None) -> None:
    data = task(f"{prefix}:{binding}", tag=tag)
    assert config(data) == ServiceTaskConfig("handler", handler)
    assert [each.what for each in read(data).warnings] == ([f"{tag} 'x' {warning}"] if warning else [])


def test_a_handler_that_no_worker_has_is_warned_about_whatever_names_it() -> None:
    for binding in ('class="a.B"', 'delegateExpression="${a.B}"', 'expression="${a.B()}"'):
        (warned,) = bound_in_vain(definition(task(f"camunda:{binding}")), ["c"])
        assert warned.what == "x is bound to the handler 'a.B', which no worker knows"


def test_a_name_for_workers_goes_before_what_java_would_call() -> None:
    assert config(task('camunda:type="external" camunda:topic="t" camunda:expression="${true}"')) == ServiceTaskConfig("external", "t")
    assert config(task('baton:handler="h" camunda:class="a.B"')) == ServiceTaskConfig("handler", "h")


def test_a_second_binding_is_reported_as_not_read() -> None:
    for more in ('camunda:delegateExpression="${c}"', 'camunda:expression="${c}"', 'camunda:expression="${c.d()}"'):
        warned = [each.what for each in read(task(f'camunda:class="a.B" {more}')).warnings]
        assert f"the attribute {more.partition('=')[0]} is not read" in warned
    warned = [each.what for each in read(task('baton:handler="h" camunda:class="a.B"')).warnings]
    assert warned == ["the attribute camunda:class is not read"]


def test_an_expression_of_ours_is_evaluated_into_its_result_variable() -> None:
    found = config(task('camunda:expression="${amount * 2}" camunda:resultVariable="twice"'))
    assert isinstance(found, ScriptConfig)
    assert (found.result_variable, found.expression.evaluate({"amount": 4})) == ("twice", 8)
    assert config(task('flowable:expression="${true}" flowable:resultVariableName="yes"')) == ScriptConfig(parse("${true}"), "yes")
    assert config(task('camunda:expression="${true}"')) == ScriptConfig(parse("${true}"), "")


def test_a_call_that_could_be_a_beans_is_one_if_nobody_wants_its_value() -> None:
    expression = 'camunda:expression="${shop.add(order)}"'
    wanted = f'{expression} camunda:resultVariable="sum"'
    assert config(task(expression)) == ServiceTaskConfig("handler", "shop.add")
    assert config(task(wanted)) == ScriptConfig(parse("${shop.add(order)}"), "sum")


def test_the_result_variable_of_a_method_is_reported_as_a_handler_returns_its_variables() -> None:
    warned = read(task('camunda:expression="${a.b()}" camunda:resultVariable="c"')).warnings
    assert "the attribute camunda:resultVariable is not read" in [each.what for each in warned]


@pytest.mark.parametrize(
    "node",
    [
        '<serviceTask id="x" camunda:expression="${a}">{}</serviceTask>',
        '<scriptTask id="x" camunda:resultVariable="b">{}<script>${a}</script></scriptTask>',
    ],
)
def test_output_parameters_of_an_expression_are_kept(node: str) -> None:
    mapped = (
        "<extensionElements><camunda:inputOutput><camunda:outputParameter name='o'>${b}</camunda:outputParameter>"
        "</camunda:inputOutput></extensionElements>"
    )
    found = config(around(node.replace("{}", mapped)))
    assert isinstance(found, ScriptConfig)
    assert [name for name, _ in found.outputs] == ["o"]


def test_setting_a_variable_of_the_execution_is_a_result_variable() -> None:
    found = config(task("""camunda:expression="${execution.setVariable('twice', amount * 2)}" """))
    assert isinstance(found, ScriptConfig)
    assert (found.result_variable, found.expression.evaluate({"amount": 4})) == ("twice", 8)


# ---- what the standard itself says of who does the work


OFFERED = '<interface id="i" name="Stock"><operation id="o" name="Reserve goods"/><operation id="unnamed"/></interface>'


@pytest.mark.parametrize("tag", ["serviceTask", "sendTask"])
@pytest.mark.parametrize(
    ("attributes", "handler", "warning"),
    [
        (
            'operationRef="o" implementation="##WebService"',
            "Reserve goods",
            "has the operation 'Reserve goods', and services are not called",
        ),
        ('implementation="${services.reserve}"', "services.reserve", "has the implementation services.reserve, which is not run"),
    ],
)
def test_an_operation_or_a_named_implementation_is_a_handler(tag: str, attributes: str, handler: str, warning: str) -> None:
    data = around(f'<{tag} id="x" {attributes}/>', root=OFFERED)
    assert config(data) == ServiceTaskConfig("handler", handler)
    (warned,) = read(data).warnings
    assert warned.what.startswith(f"{tag} 'x' {warning}")


# ---- who a task is for, and until when


def user_task(inside: str, attributes: str = "") -> bytes:
    return around(f'<userTask id="x" {attributes}>{inside}</userTask>', root='<resource id="r" name="Sales team"/>')


def role(tag: str, text: str, attributes: str = "") -> str:
    formal = f"<formalExpression {attributes}>{text}</formalExpression>"
    return f"<{tag}><resourceAssignmentExpression>{formal}</resourceAssignmentExpression></{tag}>"


def people(data: bytes) -> tuple[str | None, list[str], list[str]]:
    found = definition(data).nodes["x"].config
    assert isinstance(found, UserTaskConfig)
    texts = [[each.text for each in several] for several in (found.candidate_users, found.candidate_groups)]  # type: ignore[attr-defined]
    return (found.assignee and found.assignee.text, *texts)  # type: ignore[attr-defined, return-value]


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        (role("potentialOwner", "user(ada), group(sales), user( ${boss} )"), (None, ["ada", "${boss}"], ["sales"])),
        (role("potentialOwner", "sales, ${team}"), (None, [], ["sales", "${team}"])),
        (role("potentialOwner", "user(ada)") + role("potentialOwner", "user(bo)"), (None, ["ada", "bo"], [])),
        (role("humanPerformer", "ada"), ("ada", [], [])),
        (role("performer", "user(${who})", 'language="http://www.w3.org/1999/XPath"'), ("${who}", [], [])),
        ("<potentialOwner><resourceRef>r</resourceRef></potentialOwner>", (None, [], ["Sales team"])),
        ("<performer/>", (None, [], [])),
    ],
)
def test_resource_roles_say_who_a_task_is_for(inside: str, expected: tuple[str | None, list[str], list[str]]) -> None:
    assert people(user_task(inside)) == expected


def test_roles_add_to_the_candidates_of_the_attributes() -> None:
    assert people(user_task(role("potentialOwner", "user(bo)"), 'camunda:candidateUsers="ada"')) == (None, ["ada", "bo"], [])


@pytest.mark.parametrize(
    ("inside", "what"),
    [
        (role("potentialOwner", "sales"), "potentialOwner of userTask 'x' has 'sales', which is read as a group"),
        (role("potentialOwner", ""), "potentialOwner of userTask 'x' says nobody"),
        ("<performer/>", "a performer without id of userTask 'x' says nobody"),
        ("<performer><resourceRef>r</resourceRef></performer>", "performer of userTask 'x' is the resource 'Sales team', which is read as"),
    ],
)
def test_what_other_engines_may_read_otherwise_is_warned_about(inside: str, what: str) -> None:
    (warned,) = read(user_task(inside)).warnings
    assert warned.what.startswith(what)


@pytest.mark.parametrize(
    ("inside", "what"),
    [
        (role("humanPerformer", "group(sales)"), "humanPerformer of userTask 'x' has the group 'sales'"),
        (role("humanPerformer", "ada, bo"), "userTask 'x' has 2 performers"),
        (role("potentialOwner", "user()"), "potentialOwner of userTask 'x' has 'user()'"),
        (role("potentialOwner", "role(boss)"), "potentialOwner of userTask 'x' has 'role(boss)'"),
        (role("potentialOwner", "${a +}"), "potentialOwner of userTask 'x' is not an expression"),
        (
            role("potentialOwner", "ada", 'language="http://www.mvel.org/2.0"'),
            "potentialOwner of userTask 'x' is written in http://www.mvel",
        ),
        (
            "<performer><resourceRef>gone</resourceRef></performer>",
            "performer of userTask 'x' refers to the resource 'gone', which does",
        ),
        ("<performer><resourceParameterBinding/></performer>", "resourceParameterBinding of a performer without id of userTask 'x' is not"),
        (
            "<performer><resourceAssignmentExpression><expression/></resourceAssignmentExpression></performer>",
            "performer of userTask 'x' has no formal expression",
        ),
    ],
)
def test_roles_that_cannot_be_read_are_refused_by_name(inside: str, what: str) -> None:
    assert only_problem(user_task(inside)).what.startswith(what)


def test_an_assignee_and_a_performer_are_one_too_many() -> None:
    assert only_problem(user_task(role("performer", "bo"), 'camunda:assignee="ada"')).what == "userTask 'x' has an assignee and a performer"


@pytest.mark.parametrize(
    ("text", "due"),
    [
        ("${dateTime().plusWeeks(1).toDate()}", datetime(2026, 2, 7, 12, tzinfo=UTC)),
        ("#{ dateTime().plusMonths(1).plusDays(2).plusHours(3) }", datetime(2026, 3, 2, 15, tzinfo=UTC)),
        ("${now()}", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("${dateTime().plusDays(1).plusMonths(1)}", datetime(2026, 3, 1, 12, tzinfo=UTC)),
        ("${now().minusDays(1)}", datetime(2026, 1, 30, 12, tzinfo=UTC)),
    ],
)
@pytest.mark.parametrize("attribute", ["dueDate", "followUpDate"])
def test_a_date_may_be_counted_from_now(attribute: str, text: str, due: datetime) -> None:
    found = definition(user_task("", f'camunda:{attribute}="{text}"')).nodes["x"].config
    assert isinstance(found, UserTaskConfig)
    expression = found.due if attribute == "dueDate" else found.follow_up
    assert expression is not None
    now = datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert parse_due(expression.evaluate({CLOCK: now}), now=now) == due
