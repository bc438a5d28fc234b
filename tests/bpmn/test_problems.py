"""What the reader refuses, each with the element, the line, and what was expected."""

from __future__ import annotations

import pytest

from engine.bpmn.reader import read_files
from tests.bpmn.models import around, file_of, model, only_problem, read

MESSAGE = '<message id="m" name="M"/><error id="err"/><escalation id="esc"/>'
TIMER = "<timerEventDefinition><timeDuration>PT1M</timeDuration></timerEventDefinition>"
CATCH = f'<intermediateCatchEvent id="x">{TIMER}</intermediateCatchEvent>'
FLOW = '<sequenceFlow id="{}" sourceRef="{}" targetRef="{}"/>'
IF = '<sequenceFlow id="{}" sourceRef="{}" targetRef="{}"><conditionExpression>${{a}}</conditionExpression></sequenceFlow>'
TABLE_CALLED = '<extensionElements><zeebe:calledDecision decisionId="dish"/></extensionElements>'
SCRIPT = '<scriptTask id="x" scriptFormat="juel"{}><script>{}</script></scriptTask>'
MULTI = '<userTask id="x"><multiInstanceLoopCharacteristics{}>{}</multiInstanceLoopCharacteristics></userTask>'
LOOPED = '<userTask id="x"><standardLoopCharacteristics{}>{}</standardLoopCharacteristics></userTask>'
THREE = "<loopCardinality>3</loopCardinality>"
ZEEBE = '<extensionElements><zeebe:loopCharacteristics inputCollection="= items" {}/></extensionElements>'
OUTPUTS = ZEEBE.format('outputCollection="results"')
RULE = "<camunda:formField id='a'><camunda:validation><camunda:constraint {}/></camunda:validation></camunda:formField>"


def test_S48_every_fault_of_three_files_is_named_with_its_element_and_line() -> None:
    files = [(f"{name}.bpmn", model(name)) for name in ("s48_faults", "s48_one_key", "s48_one_key_again")]
    result = read_files(files)
    assert [(problem.file, problem.element_id, problem.line) for problem in result.problems] == [
        ("s48_faults.bpmn", "nameless", 3),
        ("s48_faults.bpmn", "f9", 8),
        ("s48_faults.bpmn", "late", 9),
        ("s48_faults.bpmn", None, 10),
        ("s48_faults.bpmn", "no_message", 15),
        ("s48_one_key.bpmn", "shared_key", 3),
        ("s48_one_key_again.bpmn", "shared_key", 3),
    ]
    said = [f"{problem.what}; {problem.why}" for problem in result.problems]
    for part, sentence in zip(
        ("has no name", "no targetRef", "attached to nothing", "named 'Without id'", "names no message"), said, strict=False
    ):
        assert part in sentence


THROWN = (
    '<intermediateThrowEvent id="x"><messageEventDefinition messageRef="m"><extensionElements>{}</extensionElements>'
    "</messageEventDefinition></intermediateThrowEvent>"
)

UNSUPPORTED = [
    ('<businessRuleTask id="x" camunda:decisionRef="dish" camunda:mapDecisionResult="first"/>', "has the mapDecisionResult 'first'"),
    ('<businessRuleTask id="x" camunda:decisionRef="dish" camunda:decisionRefBinding="newest"/>', "has the binding 'newest'"),
    ('<businessRuleTask id="x" camunda:decisionRef="dish" camunda:decisionRefBinding="version"/>', "is bound to a version and names none"),
    (
        '<businessRuleTask id="x" camunda:decisionRef="dish" camunda:decisionRefBinding="versionTag"/>',
        "bound to a version tag and names none",
    ),
    ('<businessRuleTask id="x" camunda:decisionRef="dish" camunda:decisionRefTenantId="b"/>', "calls a decision of the tenant 'b'"),
    ('<businessRuleTask id="x" camunda:decisionRef=" "/>', "names no decision"),
    (f'<businessRuleTask id="x">{TABLE_CALLED}</businessRuleTask>', "businessRuleTask 'x' has no resultVariable"),
    ('<callActivity id="x" calledElement="q" camunda:calledElementBinding="versionTag"/>', "is bound to a version tag and names none"),
    ('<callActivity id="x" calledElement="q" camunda:calledElementBinding="newest"/>', "has the binding 'newest'"),
    ('<callActivity id="x" calledElement="q" camunda:calledElementBinding="version"/>', "does not say which"),
    ('<callActivity id="x" calledElement="q" camunda:variableMappingClass="org.x"/>', "has the attribute variableMappingClass"),
    ('<intermediateCatchEvent id="x"><signalEventDefinition/></intermediateCatchEvent>', "names no signal"),
    (
        '<intermediateCatchEvent id="x"><signalEventDefinition signalRef="s"/></intermediateCatchEvent>',
        "the signal 's', which does not exist",
    ),
    ('<intermediateCatchEvent id="x"/>', "without event definition is not supported"),
    (
        f'<intermediateCatchEvent id="x">{TIMER}<linkEventDefinition name="l"/></intermediateCatchEvent>',
        "several event definitions",
    ),
    (
        '<intermediateCatchEvent id="x"><eventDefinitionRef>t</eventDefinitionRef></intermediateCatchEvent>',
        "the event definition 't', which does not exist",
    ),
    (MULTI.format("", "<loopDataInputRef>items</loopDataInputRef>" + THREE), "has both a cardinality and a collection"),
    (MULTI.format("", "<loopDataInputRef/>"), "the loopDataInputRef of userTask 'x' is empty"),
    (MULTI.format("", "<loopDataOutputRef>items</loopDataOutputRef>" + THREE), "does not say what one instance adds"),
    (MULTI.format("", '<outputDataItem id="i"/>' + THREE), "does not say the variable that collects"),
    (MULTI.format("", OUTPUTS), "does not say what one instance adds"),
    (MULTI.format(' behavior="Some"', THREE), "has the behavior 'Some'"),
    (MULTI.format(' behavior="One"', THREE), "does not name its event (oneBehaviorEventRef)"),
    (MULTI.format(' behavior="None" noneBehaviorEventRef="gone"', THREE), "refers to the event definition 'gone', which does not exist"),
    (MULTI.format(' oneBehaviorEventRef="gone"', THREE), "has a oneBehaviorEventRef and the behavior All"),
    (MULTI.format(' behavior="Complex"', THREE), "has the behavior Complex and no complexBehaviorDefinition"),
    (MULTI.format(' behavior="Complex"', THREE + "<complexBehaviorDefinition/>"), "has no condition"),
    (MULTI.format("", THREE + "<complexBehaviorDefinition/>"), "has a complexBehaviorDefinition and the behavior All"),
    (
        MULTI.format(
            ' behavior="Complex"',
            f"{THREE}<complexBehaviorDefinition><condition>${{a}}</condition><event>{TIMER}</event></complexBehaviorDefinition>",
        ),
        "throw timerEventDefinition",
    ),
    ('<parallelGateway id="x"><standardLoopCharacteristics loopMaximum="2"/></parallelGateway>', "of parallelGateway 'x' is not supported"),
    ('<serviceTask id="x" baton:handler="h"><potentialOwner/></serviceTask>', "potentialOwner of serviceTask 'x'"),
    ('<userTask id="x" isForCompensation="true"/>', "is for compensation, and the flow"),
    ('<userTask id="x" startQuantity="0"/>', "has the startQuantity '0'"),
    ('<userTask id="x" completionQuantity="101"/>', "has the completionQuantity '101'"),
    ('<subProcess id="x" completionQuantity="many"><startEvent id="i"/></subProcess>', "has the completionQuantity 'many'"),
    ('<exclusiveGateway id="x" completionQuantity="2"/>', "has the completionQuantity '2'"),
    ('<nosuch id="x"/>', "nosuch 'x' is not supported"),
    ('<other:thing id="x"/>', "thing (urn:other) 'x' is not supported"),
    ('<serviceTask id="x" camunda:class="not a class"/>', "has the class 'not a class'"),
    ('<serviceTask id="x" camunda:expression="${execution.setVariable(a, b)}"/>', "calls execution.setVariable of another engine"),
    ('<serviceTask id="x" camunda:expression="${a +}"/>', "the expression of serviceTask 'x' is not an expression"),
]

INVALID = [
    (MULTI.format("", ""), "has neither a cardinality nor a collection"),
    (MULTI.format(' camunda:collection="items"', THREE), "has both a cardinality and a collection"),
    (MULTI.format("", "<loopCardinality>-1</loopCardinality>"), "the loopCardinality of userTask 'x' is the text '-1'"),
    (MULTI.format("", "<loopCardinality>${a} b</loopCardinality>"), "the loopCardinality of userTask 'x' is the text"),
    (MULTI.format("", "<loopCardinality>${a</loopCardinality>"), "the loopCardinality of userTask 'x' is not an expression"),
    (MULTI.format(' camunda:collection="a b"', ""), "the collection of userTask 'x' is the text 'a b'"),
    (MULTI.format("", THREE + "<completionCondition>soon</completionCondition>"), "the completionCondition of userTask 'x' is the text"),
    (MULTI.format("", THREE + "<completionCondition/>"), "the completionCondition of userTask 'x' is empty"),
    (MULTI.format(' camunda:collection="items" camunda:elementVariable=""', ""), "a variable without a good name"),
    (LOOPED.format("", ""), "userTask 'x' loops without an end"),
    (LOOPED.format(' loopMaximum="-1"', "<loopCondition>true</loopCondition>"), "has the loopMaximum '-1'"),
    (LOOPED.format(' loopMaximum="0"', ""), "has the loopMaximum '0'"),
    (LOOPED.format("", "<loopCondition>${1}</loopCondition>"), "the loopCondition of userTask 'x' is the text '${1}'"),
    (LOOPED.format("", "<loopCondition>maybe</loopCondition>"), "the loopCondition of userTask 'x' is the text 'maybe'"),
    (
        LOOPED.format(' loopMaximum="2"', "").replace("</userTask>", '<standardLoopCharacteristics loopMaximum="2"/></userTask>'),
        "has two loop characteristics",
    ),
    (SCRIPT.format(' camunda:resultVariable="b"', "${a +}"), "the script of scriptTask 'x' is not an expression"),
    ('<sendTask id="x" messageRef="gone"/>', "the message 'gone', which does not exist"),
    ('<sendTask id="x" messageRef="m" baton:timeToLive="soon"/>', "baton:timeToLive of sendTask 'x' cannot be read"),
    ('<sendTask id="x" messageRef="m" baton:timeToLive="P1M"/>', "baton:timeToLive of sendTask 'x' is P1M"),
    (THROWN.format('<camunda:in source="a"/>'), "a variable that intermediateThrowEvent 'x' sends has no target"),
    (THROWN.format('<camunda:in source="a" sourceExpression="${b}" target="c"/>'), "or not one source"),
    (THROWN.format('<camunda:in source="`" target="c"/>'), "the value of 'c' of intermediateThrowEvent 'x' is not an expression"),
    ('<receiveTask id="x" messageRef="gone"/>', "the message 'gone', which does not exist"),
    ('<receiveTask id="x" messageRef="m" instantiate="true"/>', "starts instances and has an incoming flow"),
    ('<serviceTask id="x" camunda:type="external"/>', "an empty camunda:topic"),
    ('<serviceTask id="x" baton:handler="${a}"/>', "the expression '${a}' as baton:handler"),
    ('<serviceTask id="x" camunda:delegateExpression="a b"/>', "the delegateExpression 'a b'"),
    ('<serviceTask id="x" baton:handler="mail.send"/>', "no input 'to'"),
    ('<serviceTask id="x" baton:handler="h" baton:retry="R101/PT1M"/>', "1 to 100 attempts"),
    ('<serviceTask id="x" baton:handler="h" baton:retry="now"/>', "the retries of serviceTask 'x' cannot be read"),
    ('<serviceTask id="x" baton:handler="h" baton:lease="P3D"/>', "baton:lease of serviceTask 'x' is P3D"),
    ('<userTask id="x" camunda:assignee="${a b}"/>', "assignee of userTask 'x' is not an expression: expected an operator"),
    ('<userTask id="x" name="Check ${"/>', "the name of userTask"),
    ('<intermediateCatchEvent id="x"><timerEventDefinition/></intermediateCatchEvent>', "has none of them"),
    (f'<intermediateCatchEvent id="x">{TIMER.replace("PT1M", "")}</intermediateCatchEvent>', "an empty timeDuration"),
    (f'<intermediateCatchEvent id="x">{TIMER.replace("PT1M", "soon")}</intermediateCatchEvent>', "found 'soon'"),
    (CATCH.replace("<timerEventDefinition", '<timerEventDefinition baton:timeZone="Mars/Base"'), "the zone 'Mars/Base'"),
    ('<userTask id="x" baton:timeZone="Mars/Base"/>', "userTask 'x' is in the zone 'Mars/Base'"),
    (
        '<intermediateCatchEvent id="x"><messageEventDefinition messageRef="gone"/></intermediateCatchEvent>',
        "the message 'gone', which does not exist",
    ),
    ('<subProcess id="x"><startEvent id="i"/><startEvent id="j"/></subProcess>', "a second none start event"),
    (f'<subProcess id="x"><startEvent id="i">{TIMER}</startEvent></subProcess>', "starts an embedded subprocess by an event"),
    ('<userTask id="x" default="f1"/>', "the default flow 'f1', which does not leave it"),
    ('<userTask id="x" default="gone"/>', "the default flow 'gone', which does not exist"),
    ('<parallelGateway id="x" default="f2"/>', "has the default flow 'f2'"),
    ('<userTask id="x"><incoming>f2</incoming></userTask>', "lists 'f2' as incoming"),
    ('<userTask id="x"><incoming>gone</incoming></userTask>', "lists 'gone' as incoming, which does not exist"),
]

FORMS = [
    ('<camunda:formField label="L"/>', "has no id"),
    ('<camunda:formField id="a"/><camunda:formField id="a"/>', "two fields 'a'"),
    ('<camunda:formField id="a" type="colour"/>', "the type 'colour'"),
    ('<camunda:formField id="a" type="enum"/>', "an enum without values"),
    ('<camunda:formField id="a" type="long" defaultValue="12,5"/>', "the default '12,5' for the type long"),
    ('<camunda:formField id="a" type="long" defaultValue="1.5"/>', "the default '1.5'"),
    ('<camunda:formField id="a" type="boolean" defaultValue="yes"/>', "the default 'yes'"),
    ('<camunda:formField id="a" type="date" defaultValue="29.11."/>', "the default '29.11.'"),
    ('<camunda:formField id="a" type="enum" defaultValue="z"><camunda:value id="y"/></camunda:formField>', "the default 'z'"),
    (
        RULE.format("name='min' config='x'").replace("id='a'", "id='a' type='long'"),
        "constraint min",
    ),
    (
        RULE.format("name='minlength' config='x'"),
        "minlength 'x'",
    ),
]


@pytest.mark.parametrize(("node", "part"), UNSUPPORTED + INVALID)
def test_a_faulty_element_is_refused_by_name_and_line(node: str, part: str) -> None:
    problem = only_problem(around(node, root=MESSAGE))
    assert part in problem.what
    assert problem.line == 4
    assert problem.element_id in ("x", "i", "j")
    assert problem.why
    assert problem.file == "model.bpmn"


@pytest.mark.parametrize(("fields", "part"), FORMS)
def test_a_faulty_form_field_is_refused(fields: str, part: str) -> None:
    form = f"<extensionElements><camunda:formData>{fields}</camunda:formData></extensionElements>"
    problem = only_problem(around(f'<userTask id="x">{form}</userTask>'))
    assert part in problem.what
    assert (problem.element_id, problem.line) == ("x", 4)


START = '<startEvent id="s"/>'
GATEWAY = f'{START}<parallelGateway id="g" gatewayDirection="{{}}"/><endEvent id="e"/>{FLOW.format("a", "s", "g")}{{}}{{}}'
TWO_OUT = FLOW.format("c", "g", "e") + FLOW.format("d", "g", "e")
BY_EVENT = '<subProcess id="h" triggeredByEvent="true">{}</subProcess>'
NEWS = '<startEvent id="on" isInterrupting="false"><messageEventDefinition messageRef="m"/></startEvent>'
NEWS_TOO = NEWS.replace('"on"', '"on2"')
FAULT = '<startEvent id="on" isInterrupting="false"><errorEventDefinition/></startEvent>'
LOUD = '<subProcess id="{}" triggeredByEvent="true"><startEvent id="{}"><escalationEventDefinition/></startEvent></subProcess>'
PLAIN = '<startEvent id="i"/>'
THROW = '<intermediateThrowEvent id="{}"><linkEventDefinition name="{}"/></intermediateThrowEvent>'
LINK = '<intermediateCatchEvent id="{}"><linkEventDefinition name="{}"/></intermediateCatchEvent>'
STRUCTURES = [
    ('<endEvent id="e"/>', "p", "has no start event"),
    (f'{START}<startEvent id="s2"/>', "s2", "a second none start event, besides 's'"),
    (f"{START}{FLOW.format('f', 's', 'gone')}", "f", "the targetRef 'gone', which does not exist"),
    (f"{START}{FLOW.format('f', 'gone', 's')}", "f", "the sourceRef 'gone', which does not exist"),
    (f'{START}<dataObject id="d"/>{FLOW.format("f", "s", "d")}', "f", "the targetRef 'd', which is a dataObject"),
    (f'{START}<userTask id="t"/>{FLOW.format("f", "t", "s")}', "f", "leads to the start event 's'"),
    (f'{START}<endEvent id="e"/><userTask id="t"/>{FLOW.format("f", "e", "t")}', "f", "leaves the end event 'e'"),
    (
        f'{START}<userTask id="t"/><boundaryEvent id="b" attachedToRef="t">{TIMER}</boundaryEvent>{FLOW.format("f", "s", "b")}',
        "f",
        "the boundary event 'b'",
    ),
    (f'{START}<boundaryEvent id="b" attachedToRef="gone">{TIMER}</boundaryEvent>', "b", "attached to 'gone', which does not exist"),
    (f'{START}<boundaryEvent id="b" attachedToRef="s">{TIMER}</boundaryEvent>', "b", "attached to startEvent 's'"),
    (
        f'{START}<subProcess id="u"><startEvent id="i"/><userTask id="t"/></subProcess>'
        f'<boundaryEvent id="b" attachedToRef="t">{TIMER}</boundaryEvent>',
        "b",
        "attached to 't' in another scope",
    ),
    (
        f'{START}<userTask id="t"/><boundaryEvent id="b" attachedToRef="t" cancelActivity="false"><errorEventDefinition/></boundaryEvent>',
        "b",
        "does not cancel its activity",
    ),
    (
        f'{START}<userTask id="t"/><boundaryEvent id="b" attachedToRef="t"><errorEventDefinition/></boundaryEvent>'
        '<boundaryEvent id="c" attachedToRef="t"><errorEventDefinition/></boundaryEvent>',
        "c",
        "catches every error like 'b'",
    ),
    (f'{START}<subProcess id="u"><startEvent id="i"/></subProcess>{FLOW.format("f", "s", "i")}', "f", "crosses the border of a subprocess"),
    (f'{START}<exclusiveGateway id="g"/>{FLOW.format("f", "s", "g")}', "g", "has no outgoing flow"),
    (f'{START}<inclusiveGateway id="g"/>{FLOW.format("f", "s", "g")}', "g", "has no outgoing flow"),
    (
        f'{START}<parallelGateway id="g"/><endEvent id="e"/>{IF.format("c", "g", "e")}',
        "c",
        "has a condition and leaves parallelGateway 'g'",
    ),
    (
        f'{START}<userTask id="t" default="c"/><endEvent id="e"/>{IF.format("c", "t", "e")}',
        "c",
        "is the default flow of 't'",
    ),
    (f'{START}<eventBasedGateway id="g"/>{CATCH}{FLOW.format("f", "s", "g")}{FLOW.format("h", "g", "x")}', "g", "has 1 outgoing flows"),
    (
        f'{START}<eventBasedGateway id="g"/><userTask id="t"/>{CATCH}{FLOW.format("f", "g", "t")}{FLOW.format("h", "g", "x")}',
        "g",
        "followed by userTask 't'",
    ),
    (
        f'{START}{CATCH}<eventBasedGateway id="g"/>{FLOW.format("f", "s", "x")}{FLOW.format("h", "g", "x")}{FLOW.format("k", "g", "x")}',
        "x",
        "3 incoming flows",
    ),
    (f'{START}<userTask id="t"/><userTask id="t"/>', "t", "has the id 't' of userTask 't' in line 3"),
    (f'{START}<endEvent id="e"><escalationEventDefinition/></endEvent>', "e", "names no escalation"),
    (f'{START}<endEvent id="e"><escalationEventDefinition escalationRef="gone"/></endEvent>', "e", "the escalation 'gone', which does not"),
    (f'{START}<endEvent id="e"><escalationEventDefinition escalationRef="esc"/></endEvent>', "e", "which has no code"),
    (
        f'{START}<intermediateThrowEvent id="t"><escalationEventDefinition escalationRef="esc"/></intermediateThrowEvent>',
        "t",
        "throws escalation 'esc', which has no code",
    ),
    ('<startEvent id="s"><errorEventDefinition/></startEvent>', "s", "starts a process by an error or escalation"),
    ('<startEvent id="s"><escalationEventDefinition/></startEvent>', "s", "starts a process by an error or escalation"),
    (
        f'{START}<subProcess id="u"><startEvent id="i"><escalationEventDefinition/></startEvent></subProcess>',
        "i",
        "starts an embedded subprocess by an event",
    ),
    (f"{START}{BY_EVENT.format('')}", "h", "is an event subprocess with 0 start events"),
    (f"{START}{BY_EVENT.format(NEWS + NEWS_TOO)}", "h", "is an event subprocess with 2 start events"),
    (
        f'{START}{BY_EVENT.format(NEWS + """<standardLoopCharacteristics loopMaximum="2"/>""")}',
        "h",
        "is an event subprocess with loop characteristics",
    ),
    (
        '<receiveTask id="r" messageRef="m" instantiate="true"><standardLoopCharacteristics loopMaximum="2"/></receiveTask>',
        "r",
        "starts instances and has loop characteristics",
    ),
    (f"{START}{BY_EVENT.format(PLAIN)}", "i", "starts an event subprocess without an event"),
    (
        f"{START}{BY_EVENT.format(FAULT)}",
        "on",
        "by an error and does not interrupt",
    ),
    (f"{START}{BY_EVENT.format(NEWS)}{FLOW.format('f', 's', 'h')}", "f", "leads to or from the event subprocess 'h'"),
    (
        f'{START}{BY_EVENT.format(NEWS)}<boundaryEvent id="b" attachedToRef="h">{TIMER}</boundaryEvent>',
        "b",
        "is attached to subProcess 'h'",
    ),
    (
        f"{START}{LOUD.format('h', 'on')}{LOUD.format('k', 'on2')}",
        "on2",
        "catches every escalation like 'on' in the same scope",
    ),
    (
        f'{START}<subProcess id="t"><startEvent id="i"/></subProcess><boundaryEvent id="b" attachedToRef="t"><escalationEventDefinition/>'
        f'</boundaryEvent><boundaryEvent id="c" attachedToRef="t"><escalationEventDefinition/></boundaryEvent>',
        "c",
        "catches every escalation like 'b' on the same activity",
    ),
    (f'{START}<endEvent id="e"><errorEventDefinition errorRef="err"/></endEvent>', "e", "throws error 'err', which has no code"),
    (f"{START}{LINK.format('c', 'TO')}", "c", "catches the link 'TO', which nothing throws in its scope"),
    (
        f'{START}<endEvent id="e"/><sequenceFlow id="f" sourceRef="s" targetRef="e" isImmediate="false"/>',
        "f",
        "lets other activities come between",
    ),
    (GATEWAY.format("Diverging", "", FLOW.format("b", "g", "e")), "g", "has the gatewayDirection Diverging, 1 flows in and 1 out"),
    (GATEWAY.format("Diverging", FLOW.format("b", "s", "g"), TWO_OUT), "g", "has the gatewayDirection Diverging, 2 flows in and 2 out"),
    (GATEWAY.format("Converging", FLOW.format("b", "s", "g"), TWO_OUT), "g", "has the gatewayDirection Converging, 2 flows in and 2 out"),
    (
        GATEWAY.format("Mixed", FLOW.format("b", "s", "g"), FLOW.format("c", "g", "e")),
        "g",
        "has the gatewayDirection Mixed, 2 flows in and 1 out",
    ),
    (GATEWAY.format("Sideways", "", TWO_OUT), "g", "has the gatewayDirection 'Sideways'"),
    (f"{START}{THROW.format('l', '')}", "l", "has no name"),
    (f"{START}{THROW.format('l', 'TO')}", "l", "throws the link 'TO', which nothing catches in its scope"),
    (f"{START}{THROW.format('l', 'TO')}{LINK.format('c', 'TO')}{LINK.format('d', 'TO')}", "d", "catches the link 'TO' like 'c'"),
    (
        f"{START}{THROW.format('l', 'TO')}{LINK.format('c', 'TO')}{FLOW.format('f', 's', 'c')}",
        "c",
        "catches a link and has an incoming flow",
    ),
    (
        f'{START}{THROW.format("l", "TO")}{LINK.format("c", "TO")}<endEvent id="e"/>{FLOW.format("f", "l", "e")}',
        "l",
        "throws a link and has an outgoing flow",
    ),
    (
        f'{START}<subProcess id="u"><receiveTask id="r" messageRef="m" instantiate="true"/><startEvent id="i"/></subProcess>',
        "r",
        "starts an embedded subprocess by an event",
    ),
]


@pytest.mark.parametrize(("body", "element", "part"), STRUCTURES)
def test_a_faulty_structure_is_refused_by_name(body: str, element: str, part: str) -> None:
    problems = read(file_of(body, root=MESSAGE)).problems
    assert any(problem.element_id == element and part in problem.what for problem in problems), problems
    assert {problem.element_id for problem in problems} <= {element, "x"}


@pytest.mark.parametrize(
    ("condition", "part"),
    [
        ("<conditionExpression/>", "is empty"),
        ("<conditionExpression>${'approved'}</conditionExpression>", "is the text"),
        ("<conditionExpression>a ${b}</conditionExpression>", "is the text 'a ${b}'"),
        ("<conditionExpression>${a =&gt; b}</conditionExpression>", "equality is written =="),
        ("<conditionExpression>= a &gt; &gt; 3 and</conditionExpression>", "is not an expression: expected a value, found the end"),
    ],
)
def test_a_faulty_condition_is_refused(condition: str, part: str) -> None:
    flow = f'<sequenceFlow id="f" sourceRef="t" targetRef="e">{condition}</sequenceFlow>'
    body = f'{START}<userTask id="t"/>{FLOW.format("f0", "s", "t")}<endEvent id="e"/>\n{flow}'
    problem = only_problem(file_of(body))
    assert part in problem.what
    assert (problem.element_id, problem.line) == ("f", 4)


def test_every_problem_is_named_not_the_first_only() -> None:
    faults = [
        '<callActivity id="a" camunda:caseRef="c"/>',
        '<complexGateway id="b"/>',
        '<userTask id="c" camunda:assignee="${"/>',
        FLOW.format("f", "a", "gone"),
    ]
    body = START + "\n".join(faults)
    assert [(problem.element_id, problem.line) for problem in read(file_of(body)).problems] == [("a", 3), ("b", 4), ("c", 5), ("f", 6)]


def test_an_element_that_is_refused_causes_no_further_problems_around_it() -> None:
    body = (
        f'{START}{FLOW.format("f1", "s", "x")}<callActivity id="x" camunda:caseRef="c" default="f2"/>'
        f'{FLOW.format("f2", "x", "g")}<exclusiveGateway id="g"/>'
        f'{FLOW.format("f3", "g", "x")}<boundaryEvent id="b" attachedToRef="x">{TIMER}</boundaryEvent>'
    )
    assert only_problem(file_of(body)).element_id == "x"


@pytest.mark.parametrize(
    ("data", "part"),
    [
        (file_of(START, attributes='isExecutable="false"'), "no executable process"),
        (file_of(START, attributes='isExecutable="maybe"'), "isExecutable 'maybe'"),
        (file_of(START).replace(b'id="p" ', b""), "a process has no id"),
        (file_of(START).replace(b"<process", b"<choreography").replace(b"</process", b"</choreography"), "the file has no process"),
        (b"<html/>", "the root element is html"),
        (b"<definitions/>", "the root element is definitions"),
        (file_of(f'<startEvent id="{"s" * 300}"/>'), "300 characters"),
    ],
)
def test_a_file_without_an_executable_process_is_refused(data: bytes, part: str) -> None:
    assert part in read(data).problems[0].what


def test_a_deployment_without_a_file_is_refused() -> None:
    assert read_files([]).problems[0].what == "there is no file"
