"""Compensation and transactions read from XML: what compensates what; what is refused, by the element at fault (10.7, 13.5.5)."""

from __future__ import annotations

import pytest

from engine.bpmn.definition import CompensateConfig, Problem, Undo
from tests.bpmn.models import definition, file_of, model, only_problem, read

COMPENSATE, CANCEL = "<compensateEventDefinition/>", "<cancelEventDefinition/>"
UNDO = f'<boundaryEvent id="u" attachedToRef="a">{COMPENSATE}</boundaryEvent>'
HANDLER = '<task id="h" isForCompensation="true"/>'
LEADS = '<association id="l" sourceRef="u" targetRef="h"/>'


def steps(*, more: str = UNDO + HANDLER + LEADS, end: str = f'<endEvent id="e">{COMPENSATE}</endEvent>') -> bytes:
    """start -> a -> end, which compensates; `more` beside them."""
    flows = '<sequenceFlow id="f1" sourceRef="s" targetRef="a"/><sequenceFlow id="f2" sourceRef="a" targetRef="e"/>'
    return file_of(f'<startEvent id="s"/><userTask id="a"/>{end}{flows}{more}')


def boxed(inside: str = "", *, more: str = "", tag: str = "subProcess", attributes: str = "", end: str = '<endEvent id="be"/>') -> bytes:
    """start -> x, a subprocess with a task b -> end; `inside` it, and `more` beside it."""
    box = f'<startEvent id="bs"/><userTask id="b"/><sequenceFlow id="b1" sourceRef="bs" targetRef="b"/>{end}'
    box += f'<sequenceFlow id="b2" sourceRef="b" targetRef="be"/>{inside}'
    flows = '<sequenceFlow id="f1" sourceRef="s" targetRef="x"/><sequenceFlow id="f2" sourceRef="x" targetRef="e"/>'
    return file_of(f'<startEvent id="s"/><{tag} id="x" {attributes}>{box}</{tag}><endEvent id="e"/>{flows}{more}')


def by_event(start: str, *, attributes: str = "", rest: str = "") -> str:
    return (
        f'<subProcess id="ev" triggeredByEvent="true" {attributes}><startEvent id="es" {rest}>{start}</startEvent>'
        '<sequenceFlow id="v1" sourceRef="es" targetRef="ee"/><endEvent id="ee"/></subProcess>'
    )


def test_an_event_at_an_activity_that_does_not_exist_is_a_problem_and_no_crash() -> None:
    lost = steps(more=UNDO.replace('attachedToRef="a"', 'attachedToRef="lost"') + HANDLER + LEADS)
    assert any("'lost'" in str(problem) for problem in read(lost).problems)


def test_which_activities_can_be_compensated_and_by_what() -> None:
    assert definition(steps()).compensable == {"a": Undo("u", "h")}
    assert definition(model("compensation")).compensable == {
        "hotel": Undo("hotel_undo", "no_hotel"),
        "seat": Undo("seat_undo", "no_seat"),
        "seats": Undo(None, "seats_undo"),
        "trip": Undo(),
    }
    assert definition(model("every_element")).compensable == {}


def test_what_a_throw_says() -> None:
    named = '<endEvent id="e"><compensateEventDefinition activityRef="a" waitForCompletion="false"/></endEvent>'
    assert definition(steps(end=named)).nodes["e"].config.compensate == CompensateConfig("a", waits=False)
    assert definition(steps()).nodes["e"].config.compensate == CompensateConfig()


def test_an_association_of_a_text_is_no_handler() -> None:
    text = '<textAnnotation id="t"/><association id="l2" sourceRef="u" targetRef="t"/>'
    assert definition(steps(more=UNDO + HANDLER + LEADS + text)).compensable == {"a": Undo("u", "h")}


SECOND = '<task id="h2" isForCompensation="true"/><association id="l2" sourceRef="u" targetRef="h2"/>'
INNER = f'<boundaryEvent id="u" attachedToRef="b">{COMPENSATE}</boundaryEvent>{HANDLER}{LEADS}'
OUT = '<sequenceFlow id="o" sourceRef="c" targetRef="e"/>'
CAUGHT = f'<boundaryEvent id="c" attachedToRef="x">{CANCEL}</boundaryEvent>{OUT}'
STOP = f'<endEvent id="be">{CANCEL}</endEvent>'
ON_X = '<boundaryEvent id="ux" attachedToRef="x"><compensateEventDefinition/></boundaryEvent><task id="hx" isForCompensation="true"/>'
ON_X += '<association id="lx" sourceRef="ux" targetRef="hx"/>'


@pytest.mark.parametrize(
    ("data", "element", "what"),
    [
        pytest.param(steps(more=UNDO), "u", "with 0 handlers", id="no handler"),
        pytest.param(steps(more=UNDO + HANDLER + LEADS + SECOND), "u", "with 2 handlers", id="two handlers"),
        pytest.param(
            steps(more=UNDO + '<sequenceFlow id="f3" sourceRef="u" targetRef="e"/>' + HANDLER + LEADS),
            "u",
            "the flow 'f3' leaves it",
            id="a flow out of the boundary event",
        ),
        pytest.param(
            steps(more=UNDO.replace('id="u"', 'id="u" cancelActivity="false"') + HANDLER + LEADS),
            "u",
            "cancelActivity false",
            id="not cancelling",
        ),
        pytest.param(
            steps(more=UNDO + '<task id="h" isForCompensation="true"/><sequenceFlow id="f3" sourceRef="h" targetRef="e"/>' + LEADS),
            "h",
            "the flow 'f3' leads from it",
            id="a flow out of the handler",
        ),
        pytest.param(
            steps(end='<endEvent id="e"><compensateEventDefinition activityRef="z"/></endEvent>'),
            "e",
            "'z', which does not exist",
            id="nothing",
        ),
        pytest.param(
            steps(end='<endEvent id="e"><compensateEventDefinition activityRef="s"/></endEvent>'), "e", "startEvent 's'", id="no activity"
        ),
        pytest.param(
            steps(more="", end='<endEvent id="e"><compensateEventDefinition activityRef="a"/></endEvent>'),
            "e",
            "which has no compensation handler",
            id="what has no handler",
        ),
        pytest.param(
            steps(more=UNDO.replace("<compensateEventDefinition/>", '<compensateEventDefinition activityRef="a"/>') + HANDLER + LEADS),
            "u",
            "names the activity 'a'",
            id="caught with a name",
        ),
        pytest.param(
            boxed(INNER, more='<task id="y"/><sequenceFlow id="g" sourceRef="s" targetRef="y"/>').replace(
                b'<endEvent id="e"/>', b'<endEvent id="e"><compensateEventDefinition activityRef="b"/></endEvent>'
            ),
            "e",
            "'b', which is not visible from it",
            id="an activity of an inner scope",
        ),
        pytest.param(
            boxed(f'<boundaryEvent id="u" attachedToRef="b">{COMPENSATE}</boundaryEvent>', more=HANDLER + LEADS),
            "u",
            "leads to 'h' in another scope",
            id="a handler elsewhere",
        ),
        pytest.param(file_of(f'<startEvent id="s">{COMPENSATE}</startEvent>'), "s", "starts a process by compensation", id="a process"),
        pytest.param(steps(more=UNDO + HANDLER + LEADS + by_event(COMPENSATE)), "ev", "of the process itself", id="the process itself"),
        pytest.param(
            boxed(by_event(COMPENSATE, rest='isInterrupting="false"')),
            "es",
            "by compensation and does not interrupt",
            id="not interrupting",
        ),
        pytest.param(
            boxed(by_event(COMPENSATE) + by_event(COMPENSATE).replace('"e', '"w').replace('"v', '"z')), "wv", "second", id="two of them"
        ),
        pytest.param(boxed(by_event(COMPENSATE), more=ON_X), "ev", "as the boundary event 'ux' does", id="two ways"),
        pytest.param(
            boxed(by_event("<messageEventDefinition messageRef='m'/>", attributes='isForCompensation="true"')).replace(
                b"<process", b'<message id="m" name="M"/><process'
            ),
            "ev",
            "without a compensation start event",
            id="for compensation by a message",
        ),
        pytest.param(
            file_of(f'<startEvent id="s"/><sequenceFlow id="f" sourceRef="s" targetRef="e"/><endEvent id="e">{CANCEL}</endEvent>'),
            "e",
            "outside of a transaction",
            id="a cancel anywhere",
        ),
        pytest.param(boxed(tag="transaction", end=STOP), "be", "which has no cancel boundary event", id="a cancel that nothing catches"),
        pytest.param(boxed(more=CAUGHT), "c", "catches cancel at subProcess 'x'", id="a cancel of a subprocess"),
        pytest.param(
            boxed(tag="transaction", end=STOP, more=CAUGHT + CAUGHT.replace('"c"', '"c2"').replace('"o"', '"o2"')),
            "c2",
            "like 'c'",
            id="twice",
        ),
        pytest.param(
            boxed(tag="transaction", end=STOP, more=CAUGHT.replace('id="c"', 'id="c" cancelActivity="false"')),
            "c",
            "cancelActivity false",
            id="a cancel that does not interrupt",
        ),
        pytest.param(
            boxed(
                "<multiInstanceLoopCharacteristics><loopCardinality>2</loopCardinality></multiInstanceLoopCharacteristics>",
                tag="transaction",
                end=STOP,
                more=CAUGHT,
            ),
            "be",
            "which has loop characteristics",
            id="a looped transaction",
        ),
        pytest.param(boxed(tag="transaction", attributes='method="##Store"'), "x", "the method '##Store'", id="another method"),
        pytest.param(boxed(tag="transaction", attributes='triggeredByEvent="true"'), "x", "is triggered by an event", id="triggered"),
    ],
)
def test_what_is_wrong_is_refused_by_the_element_at_fault(data: bytes, element: str, what: str) -> None:
    problem = only_problem(data)
    assert (problem.element_id, what in problem.what) == (element, True), problem


def test_a_handler_of_a_handler_is_refused() -> None:
    second = f'<boundaryEvent id="u2" attachedToRef="h">{COMPENSATE}</boundaryEvent><association id="l2" sourceRef="u2" targetRef="h2"/>'
    found = read(steps(more=UNDO + HANDLER + LEADS + second + '<task id="h2" isForCompensation="true"/>')).problems
    assert _about(found, "u2", "which is for compensation itself")


def test_a_gateway_is_not_for_compensation() -> None:
    found = read(steps(more='<parallelGateway id="g" isForCompensation="true"/>')).problems
    assert _about(found, "g", "is for compensation")


def test_a_throw_that_sees_nothing_to_compensate_is_warned_about() -> None:
    (warning,) = read(steps(more="")).warnings
    assert (warning.element_id, "compensates nothing" in warning.what) == ("e", True)


def _about(problems: tuple[Problem, ...], element: str, what: str) -> list[Problem]:
    return [each for each in problems if each.element_id == element and what in each.what]
