"""What is refused about conditions and choices of events, by element."""

from __future__ import annotations

import pytest

from tests.bpmn.models import around, definition, file_of, read

ROOT = '<message id="m" name="M"/><message id="n" name="N"/>'
CONDITION = "<conditionalEventDefinition>{}</conditionalEventDefinition>"
TRUE = CONDITION.format("<condition>${a}</condition>")
TIMER = "<timerEventDefinition><timeDuration>PT1H</timeDuration></timerEventDefinition>"


def message(ref: str = "m") -> str:
    return f'<messageEventDefinition messageRef="{ref}"/>'


def flow(source: str, target: str) -> str:
    return f'<sequenceFlow id="{source}_{target}" sourceRef="{source}" targetRef="{target}"/>'


def catch(key: str, event: str) -> str:
    return f'<intermediateCatchEvent id="{key}">{event}</intermediateCatchEvent>'


def choice(*elements: str, attributes: str = "", before: str = '<startEvent id="s"/>' + flow("s", "g")) -> str:
    """A gateway `g` that leads to `a` and `b`."""
    return f'{before}<eventBasedGateway id="g" {attributes}/>{flow("g", "a")}{flow("g", "b")}{"".join(elements)}'


REFUSED = {
    "no condition": (around(catch("x", CONDITION.format(""))), "x", "has no condition"),
    "an empty condition": (around(catch("x", CONDITION.format("<condition/>"))), "x", "is empty"),
    "a text": (around(catch("x", CONDITION.format("<condition>so ${often}</condition>"))), "x", "is the text 'so ${often}'"),
    "a bad expression": (around(catch("x", CONDITION.format("<condition>${a ></condition>"))), "x", "is not an expression"),
    "a process": (file_of(f'<startEvent id="x">{TRUE}</startEvent>'), "x", "starts a process by a condition"),
    "both kinds of receivers": (
        file_of(choice(catch("a", message()), '<receiveTask id="b" messageRef="n"/>'), root=ROOT),
        "g",
        "leads to the receive task 'b' and to the message event 'a'",
    ),
    "a border behind a gateway": (
        file_of(
            choice(
                '<receiveTask id="a" messageRef="m"/><receiveTask id="b" messageRef="n"/>',
                f'<boundaryEvent id="c" attachedToRef="b">{TIMER}</boundaryEvent>',
            ),
            root=ROOT,
        ),
        "b",
        "has the boundary event 'c'",
    ),
    "a loop behind a gateway": (
        file_of(
            choice(
                catch("b", TIMER),
                '<receiveTask id="a" messageRef="m"><standardLoopCharacteristics loopMaximum="2"/></receiveTask>',
            ),
            root=ROOT,
        ),
        "a",
        "is more than one",
    ),
    "a way to what begins": (
        file_of(choice(catch("a", message()), catch("b", TIMER), attributes='instantiate="true"'), root=ROOT),
        "g",
        "starts instances and has an incoming flow",
    ),
    "a parallel one that starts nothing": (
        file_of(choice(catch("a", message()), catch("b", message("n")), attributes='eventGatewayType="Parallel"'), root=ROOT),
        "g",
        "has the type Parallel and starts no instances",
    ),
    "a date behind a parallel one": (
        file_of(
            choice(catch("a", message()), catch("b", TIMER), attributes='instantiate="true" eventGatewayType="Parallel"', before=""),
            root=ROOT,
        ),
        "b",
        "waits for no message",
    ),
    "a beginning by a condition": (
        file_of(choice(catch("a", message()), catch("b", TRUE), attributes='instantiate="true"', before=""), root=ROOT),
        "b",
        "starts a process by a condition",
    ),
    "a throw among what is waited for": (
        around('<intermediateThrowEvent id="x"><linkEventDefinition name="l"/><escalationEventDefinition/></intermediateThrowEvent>'),
        "x",
        "has several event definitions",
    ),
    "two errors at one end": (
        file_of(
            '<startEvent id="s"/>'
            + flow("s", "x")
            + '<endEvent id="x"><errorEventDefinition errorRef="r"/><terminateEventDefinition/></endEvent>',
            root='<error id="r" errorCode="R"/>',
        ),
        "x",
        "throws more than one error, or an error and terminates",
    ),
    "all of several at the start of a process": (
        file_of(f'<startEvent id="x" parallelMultiple="true">{message()}{message("n")}</startEvent>', root=ROOT),
        "x",
        "starts a process by all of several events",
    ),
    "an error among what must all occur": (
        around(
            f'<subProcess id="x"><startEvent id="t"/></subProcess><boundaryEvent id="b" attachedToRef="x" parallelMultiple="true">{TIMER}'
            "<errorEventDefinition/></boundaryEvent>"
        ),
        "b",
        "waits for all of several events, one of them an errorEventDefinition",
    ),
    "one of two errors that does not interrupt": (
        around(
            f'<subProcess id="x"><startEvent id="t"/></subProcess><boundaryEvent id="b" attachedToRef="x" cancelActivity="false">{TIMER}'
            "<errorEventDefinition/></boundaryEvent>"
        ),
        "b",
        "catches an error and does not cancel its activity",
    ),
    "the same error twice": (
        around(
            '<subProcess id="x"><startEvent id="t"/></subProcess>'
            '<boundaryEvent id="b" attachedToRef="x"><errorEventDefinition/></boundaryEvent>'
            f'<boundaryEvent id="c" attachedToRef="x">{TIMER}<errorEventDefinition/></boundaryEvent>'
        ),
        "c",
        "catches every error like 'b'",
    ),
    "all of several behind a gateway": (
        file_of(
            choice(catch("b", TIMER), f'<intermediateCatchEvent id="a" parallelMultiple="true">{message()}{TRUE}</intermediateCatchEvent>'),
            root=ROOT,
        ),
        "a",
        "waits for all of several events",
    ),
    "a part that cannot be read": (around(catch("x", TIMER + CONDITION.format(""))), "x", "has no condition"),
    "a beginning inside": (
        file_of(
            '<startEvent id="s"/><subProcess id="p1"><startEvent id="t"/>'
            + choice(catch("a", message()), catch("b", TIMER), attributes='instantiate="true"', before="")
            + "</subProcess>"
            + flow("s", "p1"),
            root=ROOT,
        ),
        "g",
        "starts instances inside a subprocess",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_it_is_refused_by_element(what: str) -> None:
    data, element, part = REFUSED[what]
    problems = read(data).problems
    assert [problem.element_id for problem in problems if part in problem.what] == [element], problems
    assert len(problems) == 1


def test_a_process_may_begin_with_a_gateway_alone() -> None:
    data = file_of(choice(catch("a", message()), catch("b", TIMER), attributes='instantiate="true"', before=""), root=ROOT)
    assert read(data).problems == () and read(data).warnings == ()


def test_the_parts_of_an_event_are_read_as_if_each_stood_alone() -> None:
    found = definition(
        around(f'<intermediateCatchEvent id="x" name="Any">{message()}{TIMER}{message("n")}</intermediateCatchEvent>', root=ROOT)
    )
    assert found.parts == {"x": ("x#1", "x#2", "x#3")}
    one, two, three = (found.nodes[part].config for part in found.parts["x"])
    assert (one.message.name.text, one.timer) == ("M", None)
    assert (two.message, two.timer.expression.text) == (None, "PT1H")
    assert three.message.name.text == "N"
    assert found.nodes["x#2"].name == "Any" and found.nodes["x"].config.parts == (one, two, three)


def test_one_definition_with_parallel_multiple_is_an_event_like_any_other() -> None:
    found = definition(around(f'<intermediateCatchEvent id="x" parallelMultiple="true">{TIMER}</intermediateCatchEvent>'))
    assert not found.parts


def test_several_that_are_thrown_are_read_each() -> None:
    both = f'<endEvent id="y"><signalEventDefinition signalRef="g"/>{message()}</endEvent>'
    found = definition(file_of('<startEvent id="s"/>' + flow("s", "y") + both, root=ROOT + '<signal id="g" name="G"/>'))
    one, two = found.nodes["y"].config.parts
    assert (one.signal.name.text, one.message, two.message.name.text, two.signal) == ("G", None, "M", None)
    assert not found.parts


def test_an_escalation_at_the_border_of_a_call_or_of_a_loop_that_throws_one_is_not_warned_about() -> None:
    event = '<boundaryEvent id="b" attachedToRef="x"><escalationEventDefinition/></boundaryEvent>'
    assert read(around('<callActivity id="x" calledElement="other"/>', more=event)).warnings == ()
    loop = (
        '<multiInstanceLoopCharacteristics behavior="None" noneBehaviorEventRef="{}"><loopCardinality>2</loopCardinality>'
        "</multiInstanceLoopCharacteristics>"
    )
    said = '<escalation id="cheap" escalationCode="CHEAP"/><escalationEventDefinition id="it" escalationRef="cheap"/>'
    assert read(around(f'<userTask id="x">{loop.format("it")}</userTask>', more=event, root=said)).warnings == ()
    told = '<signal id="sig" name="S"/><signalEventDefinition id="it" signalRef="sig"/>'
    (warning,) = read(around(f'<userTask id="x">{loop.format("it")}</userTask>', more=event, root=told)).warnings
    assert "throws no escalation" in warning.what


def test_a_process_that_is_called_as_a_prefix_of_the_file_is_named_is_called() -> None:
    for text, called in (("other", "other"), ("other:check", "check"), ("nowhere:check", "nowhere:check")):
        assert definition(around(f'<callActivity id="x" calledElement="{text}"/>')).nodes["x"].config.process.text == called
