"""docs/dialects.md tells what is so: every spelling of a row reads as the others do, or is reported by name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine.bpmn.coverage.dialects import DIALECTS, page
from engine.bpmn.definition import ProcessDefinition
from engine.bpmn.names import CAMUNDA_LIKE
from tests.bpmn.models import around, definition, file_of, read

CAMUNDA = CAMUNDA_LIKE[0].encode()


def user(attributes: str = "", inside: str = "") -> bytes:
    return around(f'<userTask id="x" {attributes}>{_extensions(inside)}</userTask>')


def service(attributes: str = "", inside: str = "", *, handler: str = 'baton:handler="h"') -> bytes:
    return around(f'<serviceTask id="x" {handler} {attributes}>{_extensions(inside)}</serviceTask>')


def call(attributes: str = 'calledElement="p2"', inside: str = "") -> bytes:
    return around(f'<callActivity id="x" {attributes}>{_extensions(inside)}</callActivity>')


def loop(attributes: str, inside: str = "") -> bytes:
    tag = "multiInstanceLoopCharacteristics"
    return around(f'<userTask id="x"><{tag} {attributes}>{_extensions(inside)}</{tag}></userTask>')


def caught(attributes: str) -> bytes:
    event = f'<boundaryEvent id="b" attachedToRef="x"><errorEventDefinition {attributes}/></boundaryEvent>'
    return around('<serviceTask id="x" baton:handler="h"/>', more=event)


def process(attributes: str) -> bytes:
    return file_of('<startEvent id="s"/>', attributes=f'isExecutable="true" {attributes}')


def _extensions(inside: str) -> str:
    return f"<extensionElements>{inside}</extensionElements>" if inside else ""


IO = '<camunda:inputOutput><camunda:{0}Parameter name="a">${{b.c}}</camunda:{0}Parameter></camunda:inputOutput>'
ZEEBE_IO = '<zeebe:ioMapping><zeebe:{} source="= b.c" target="a"/></zeebe:ioMapping>'
NOTHING = 'propagateAllParentVariables="false" propagateAllChildVariables="false"'
FIELD = '<camunda:formData><camunda:formField id="n" label="N" type="long"/></camunda:formData>'

# What the columns camunda and baton have: the same text with another prefix. And what zeebe has.
CAMUNDA_SAYS: dict[str, list[bytes]] = {
    "assignee": [user('camunda:assignee="ada"'), user('camunda:assignee="${boss}"')],
    "candidate users": [user('camunda:candidateUsers="ada,${bo}"')],
    "candidate groups": [user('camunda:candidateGroups="sales, ${team}"')],
    "due date": [user('camunda:dueDate="P1D"')],
    "follow-up date": [user('camunda:followUpDate="2026-12-01"')],
    "priority of a task": [user('camunda:priority="70"')],
    "initiator": [file_of('<startEvent id="s" camunda:initiator="who"/>')],
    "form fields": [user("", FIELD)],
    "form properties": [user("", '<camunda:formProperty id="n" name="N" type="long"/>')],
    "form": [user('camunda:formRef="f"')],
    "binding of a form": [user('camunda:formRef="f" camunda:formRefBinding="deployment"')],
    "form key": [user('camunda:formKey="f"')],
    "external topic": [service('camunda:type="external" camunda:topic="t"', handler="")],
    "retries": [service("", "<camunda:failedJobRetryTimeCycle>5</camunda:failedJobRetryTimeCycle>")],
    "priority of work": [service('camunda:jobPriority="7"'), service('camunda:taskPriority="7"')],
    "exclusive work": [service('camunda:exclusive="true"')],
    "headers": [service("", '<camunda:properties><camunda:property name="k" value="v"/></camunda:properties>')],
    "result variable": [around('<scriptTask id="x" camunda:resultVariable="b"><script>${a + 1}</script></scriptTask>')],
    "listeners": [user("", '<camunda:executionListener event="start" delegateExpression="${go}"/>')],
    "asynchronous": [user('camunda:asyncBefore="true"'), user('camunda:async="true"')],
    "inputs": [service("", IO.format("input"))],
    "outputs": [service("", IO.format("output"))],
    "collection of a loop": [loop('camunda:collection="${lines}" camunda:elementVariable="line"')],
    "results of a loop": [],
    "correlation key": [],
    "error and escalation variables": [caught('camunda:errorCodeVariable="c" camunda:errorMessageVariable="m"')],
    "called process": [call()],
    "binding of a call": [
        call('calledElement="p2" camunda:calledElementBinding="deployment"'),
        call('calledElement="p2" camunda:sameDeployment="true"'),
    ],
    "tag of a version": [process('camunda:versionTag="1"')],
    "variables into a call": [call(inside='<camunda:in variables="all"/>')],
    "variables out of a call": [call(inside='<camunda:out variables="all"/>')],
    "business key of a call": [call(inside='<camunda:in businessKey="${number}"/>')],
    "handler": [service('camunda:delegateExpression="${h}"', handler=""), service('camunda:class="h"', handler="")],
}
BATON_SAYS: dict[str, bytes] = {
    "handler": service(),
    "retries": service('baton:retry="5"'),
    "results of a loop": loop(
        'baton:collection="lines" baton:elementVariable="line" baton:outputCollection="all" baton:outputElement="${a.b}"'
    ),
    "correlation key": around('<receiveTask id="x" messageRef="m"/>', root='<message id="m" name="M" baton:correlationKey="${a.b}"/>'),
}
ZEEBE_SAYS: dict[str, bytes] = {
    "assignee": user("", '<zeebe:assignmentDefinition assignee="ada"/>'),
    "candidate users": user("", '<zeebe:assignmentDefinition candidateUsers="ada,${bo}"/>'),
    "candidate groups": user("", '<zeebe:assignmentDefinition candidateGroups="sales, ${team}"/>'),
    "due date": user("", '<zeebe:taskSchedule dueDate="P1D"/>'),
    "follow-up date": user("", '<zeebe:taskSchedule followUpDate="2026-12-01"/>'),
    "form": user("", '<zeebe:formDefinition formId="f"/>'),
    "binding of a form": user("", '<zeebe:formDefinition formId="f" bindingType="deployment"/>'),
    "form key": user("", '<zeebe:formDefinition formKey="f"/>'),
    "priority of a task": user("", '<zeebe:priorityDefinition priority="70"/>'),
    "handler": service("", '<zeebe:taskDefinition type="h"/>', handler=""),
    "retries": service("", '<zeebe:taskDefinition type="h" retries="5"/>', handler=""),
    "headers": service("", '<zeebe:taskHeaders><zeebe:header key="k" value="v"/></zeebe:taskHeaders>'),
    "result variable": around(
        '<scriptTask id="x"><extensionElements><zeebe:script expression="= a + 1" resultVariable="b"/></extensionElements></scriptTask>'
    ),
    "listeners": user("", '<zeebe:executionListeners><zeebe:executionListener eventType="start" type="go"/></zeebe:executionListeners>'),
    "inputs": service("", ZEEBE_IO.format("input")),
    "outputs": service("", ZEEBE_IO.format("output")),
    "collection of a loop": loop("", '<zeebe:loopCharacteristics inputCollection="= lines" inputElement="line"/>'),
    "results of a loop": loop(
        "", '<zeebe:loopCharacteristics inputCollection="= lines" inputElement="line" outputCollection="all" outputElement="= a.b"/>'
    ),
    "correlation key": around(
        '<receiveTask id="x" messageRef="m"/>',
        root='<message id="m" name="M"><extensionElements><zeebe:subscription correlationKey="= a.b"/></extensionElements></message>',
    ),
    "called process": call("", f'<zeebe:calledElement processId="p2" {NOTHING}/>'),
    "binding of a call": call(
        "",
        f'<zeebe:calledElement processId="p2" bindingType="deployment" {NOTHING}/>',
    ),
    "tag of a version": process("").replace(
        b"<startEvent", b'<extensionElements><zeebe:versionTag value="1"/></extensionElements><startEvent'
    ),
    "variables into a call": call("", '<zeebe:calledElement processId="p2" propagateAllChildVariables="false"/>'),
    "variables out of a call": call("", '<zeebe:calledElement processId="p2" propagateAllParentVariables="false"/>'),
}
IN_FEEL = {
    "result variable",
    "inputs",
    "outputs",
    "collection of a loop",
    "results of a loop",
    "correlation key",
}  # other texts, so other expressions
REPORTED: dict[str, list[bytes]] = {
    "pages of other products": [
        user('camunda:formKey="embedded:app:page.html"'),
        user("", '<zeebe:formDefinition externalReference="f"/>'),
    ],
    "who may start": [process('camunda:candidateStarterUsers="ada" camunda:candidateStarterGroups="g"')],
    "in the task list": [process('camunda:isStartableInTasklist="false"')],
    "retention": [process('camunda:historyTimeToLive="P1D"')],
    "of another tenant": [call('calledElement="p2" camunda:calledElementTenantId="t"')],
    "which variable wakes a condition": [
        around(
            '<intermediateCatchEvent id="x"><conditionalEventDefinition camunda:variableName="a" camunda:variableEvents="create">'
            "<condition>${a}</condition></conditionalEventDefinition></intermediateCatchEvent>"
        )
    ],
    "owner and category": [user('flowable:owner="ada" flowable:category="c"')],
    "calendars": [user('flowable:businessCalendarName="c"')],
    "skipping": [user('flowable:skipExpression="${a}"')],
    "variables that are not kept": [
        service(
            'flowable:expression="${1 + 1}" flowable:resultVariable="a" flowable:storeResultVariableAsTransient="true"'
            ' flowable:useLocalScopeForResultVariable="true"',
            handler="",
        )
    ],
    "listeners of other moments": [
        *(
            user("", f'<camunda:taskListener event="{event}" delegateExpression="${{a}}"/>')
            for event in ("assignment", "update", "delete", "timeout")
        ),
        *(
            user("", f'<zeebe:taskListeners><zeebe:taskListener eventType="{event}" type="a"/></zeebe:taskListeners>')
            for event in ("assigning", "updating", "canceling")
        ),
    ],
}


def meaning(data: bytes) -> ProcessDefinition:
    """The definition, without what was said about it; nothing of it may go unread."""
    assert [each.what for each in read(data).warnings if each.what.endswith("is not read")] == []
    return replace(definition(data), warnings=())


@pytest.mark.parametrize("row", [row for row in DIALECTS if not row.reported], ids=lambda row: row.key)
def test_every_spelling_of_a_row_reads_as_the_others(row) -> None:  # type: ignore[no-untyped-def]
    told = CAMUNDA_SAYS[row.key]
    assert bool(told) == bool(row.camunda)
    spelled = [data.replace(CAMUNDA, space.encode()) for data in told for space in CAMUNDA_LIKE]
    if row.baton:
        spelled.append(BATON_SAYS[row.key] if row.key in BATON_SAYS else told[0].replace(b"camunda:", b"baton:"))
    found = [meaning(data) for data in spelled]
    if row.zeebe and row.key not in IN_FEEL:
        found.append(meaning(ZEEBE_SAYS[row.key]))
    elif row.zeebe:
        assert shape(meaning(ZEEBE_SAYS[row.key])) == shape(found[0])
    first = [each for each in found if each != found[0]]
    assert not first or row.key in ("assignee", "asynchronous"), "the first is what the others are"


@pytest.mark.parametrize(
    ("task", "attribute"), [('baton:handler="h"', "jobPriority"), ('camunda:type="external" camunda:topic="t"', "taskPriority")]
)
def test_the_priority_of_a_process_is_that_of_its_tasks(task: str, attribute: str) -> None:
    own = around(f'<serviceTask id="x" {task} camunda:{attribute}="7"/>')
    inherited = around(f'<serviceTask id="x" {task}/>').replace(b'<process id="p"', f'<process id="p" camunda:{attribute}="7"'.encode())
    assert meaning(inherited) == meaning(own)


def shape(found: ProcessDefinition) -> object:
    """A node as it is but for the texts of its expressions."""
    return found.nodes["x"].kind, type(found.nodes["x"].config), list(found.flows)


@pytest.mark.parametrize("row", [row for row in DIALECTS if row.reported], ids=lambda row: row.key)
def test_what_has_no_counterpart_is_reported_by_name(row) -> None:  # type: ignore[no-untyped-def]
    for data in REPORTED[row.key]:
        result = read(data)
        assert result.problems == ()
        assert any(each.what.endswith("is not read") for each in result.warnings), data
    said = " ".join(f"{each.what} {each.why}" for data in REPORTED[row.key] for each in read(data).warnings)
    names = row.camunda.partition(" of ")[0].split(", ") + row.zeebe.partition(" of ")[0].split(", ")
    assert [name for name in names if name and name not in said] == []


def test_a_report_says_why_nothing_reads_it_where_we_know() -> None:
    known = read(process('camunda:historyTimeToLive="P30D"')).warnings
    assert [each.why for each in known] == ["nothing of it: the history of a case is kept; nothing deletes it"]
    unknown = read(process('camunda:madeUp="1"')).warnings
    assert [each.why for each in unknown] == ["nothing of it: the process runs as if it were not there"]


def test_the_page_is_what_the_table_says() -> None:
    assert (Path(__file__).parents[2] / "docs" / "dialects.md").read_text(encoding="utf-8") == page()
