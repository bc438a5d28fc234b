"""What is refused about conditions and choices of events, by element."""

from __future__ import annotations

import pytest

from tests.bpmn.models import around, file_of, read

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
    "a text": (around(catch("x", CONDITION.format("<condition>often</condition>"))), "x", "is the text 'often'"),
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
    "a beginning by a condition": (
        file_of(choice(catch("a", message()), catch("b", TRUE), attributes='instantiate="true"', before=""), root=ROOT),
        "b",
        "starts a process by a condition",
    ),
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
