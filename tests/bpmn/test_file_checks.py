"""Rules over a whole file, each with a small model that breaks it: the problem names the element that is wrong."""

from __future__ import annotations

import pytest

from engine.bpmn.reader import read_files

PLAIN = (
    '<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
    ' id="defs" targetNamespace="urn:test"'
)
ITEMS = (
    '<itemDefinition id="order" structureRef="Order"/><itemDefinition id="same_order" structureRef="Order"/>'
    '<itemDefinition id="number" structureRef="Number"/><itemDefinition id="orders" structureRef="Order" isCollection="true"/>'
    '<message id="ordered" name="ordered" itemRef="order"/><message id="called" name="called"/>'
    '<error id="failed" name="failed" errorCode="F"/>'
    '<interface id="shop" name="shop"><operation id="sell" name="sell"><inMessageRef>ordered</inMessageRef></operation></interface>'
)
WAY = (
    '<startEvent id="start"/><sequenceFlow id="in" sourceRef="start" targetRef="a"/><sequenceFlow id="out" sourceRef="a" targetRef="end"/>'
)
END = '<endEvent id="end"/>'


def problems(body: str, *, root: str = "", attributes: str = "", process: str = "") -> list[tuple[str | None, str]]:
    text = f'{PLAIN}{attributes}>{ITEMS}<process id="p" isExecutable="true"{process}>{body}</process>{root}</definitions>'
    return [(problem.element_id, problem.what) for problem in read_files([("m", text.encode())]).problems]


def around(task: str, *more: str) -> str:
    """start -> the element `a` -> end, and what else there is."""
    return WAY + task + END + "".join(more)


def task(inside: str = "", **attributes: str) -> str:
    return f'<task id="a"{"".join(f" {key}={chr(34)}{value}{chr(34)}" for key, value in attributes.items())}>{inside}</task>'


def io(inputs: str = "", outputs: str = "", sets: str = "<inputSet/><outputSet/>") -> str:
    return f"<ioSpecification>{inputs}{outputs}{sets}</ioSpecification>"


def timer(duration: str) -> str:
    return f'<intermediateCatchEvent id="a"><timerEventDefinition id="t">{duration}</timerEventDefinition></intermediateCatchEvent>'


def copied(source: str, target: str, inside: str = "") -> str:
    return f'<dataInputAssociation id="as"><sourceRef>{source}</sourceRef><targetRef>{target}</targetRef>{inside}</dataInputAssociation>'


def caught(operation: str = "") -> str:
    definition = f'<messageEventDefinition id="m" messageRef="ordered">{operation}</messageEventDefinition>'
    return f'<intermediateCatchEvent id="a">{definition}</intermediateCatchEvent>'


OBJECTS = '<dataObject id="object" name="data" itemSubjectRef="number"/>'
INPUT = io('<dataInput id="din" itemSubjectRef="order"/>', sets="<inputSet><dataInputRefs>din</dataInputRefs></inputSet><outputSet/>")
OUTPUT, NUMBER = '<dataOutput id="d"/>', '<dataInput id="d" itemSubjectRef="number"/>'

CASES = {
    # flows
    "nothing leads to it": (
        around(task(), '<task id="b"/><sequenceFlow id="f" sourceRef="b" targetRef="end"/>'),
        "b",
        "has no incoming flow",
    ),
    "it leads nowhere": (around(task(), '<task id="b"/><sequenceFlow id="f" sourceRef="a" targetRef="b"/>'), "b", "has no outgoing flow"),
    "a border leads nowhere": (
        around(
            '<receiveTask id="a" messageRef="called"/>',
            '<boundaryEvent id="b" attachedToRef="a"><timerEventDefinition>'
            '<timeDuration xsi:type="tFormalExpression">PT1S</timeDuration></timerEventDefinition></boundaryEvent>',
        ),
        "b",
        "has no outgoing flow",
    ),
    "a start without an end": (
        '<startEvent id="start"/><task id="a"/><sequenceFlow id="f" sourceRef="start" targetRef="a"/>',
        "p",
        "no end event",
    ),
    "the only way has a condition": (
        '<startEvent id="start"/><sequenceFlow id="in" sourceRef="start" targetRef="a"/><task id="a"/>'
        '<sequenceFlow id="out" sourceRef="a" targetRef="end">'
        '<conditionExpression xsi:type="tFormalExpression">${yes}</conditionExpression></sequenceFlow><endEvent id="end"/>',
        "out",
        "is conditional and the only flow",
    ),
    "listed at its target alone": (
        WAY + task("<incoming>in</incoming>") + END,
        "start",
        "does not list 'in' as outgoing, which 'a' lists",
    ),
    "listed at its source alone": (WAY + task("<outgoing>out</outgoing>") + END, "end", "does not list 'out' as incoming, which 'a' lists"),
    # processes, texts, expressions
    "natural language": (
        around(timer("<timeDuration>PT1S</timeDuration>")),
        "t",
        "timeDuration of timerEventDefinition 't' is natural language",
    ),
    "no MIME type": (around(task('<documentation id="doc" textFormat="INVALID">x</documentation>')), "doc", "has the textFormat 'INVALID'"),
    # data
    "a collection by its item only": (around(task(), '<dataObject id="d" itemSubjectRef="orders"/>'), "d", "is no collection"),
    "a collection by itself only": (
        around(task(), '<dataObject id="d" itemSubjectRef="order" isCollection="true"/>'),
        "d",
        "is a collection",
    ),
    "optional, and not in its set": (
        around(task(io('<dataInput id="din"/>', sets="<inputSet><optionalInputRefs>din</optionalInputRefs></inputSet><outputSet/>"))),
        "din",
        "is optional in a set that does not list it",
    ),
    "used while executing, and not in its set": (
        around(
            task(
                io(
                    "",
                    '<dataOutput id="d"/>',
                    sets="<inputSet/><outputSet><whileExecutingOutputRefs>d</whileExecutingOutputRefs></outputSet>",
                )
            )
        ),
        "d",
        "is used while executing in a set that does not list it",
    ),
    "sets that do not name each other": (
        around(task(io(sets='<inputSet id="i"><outputSetRefs>o</outputSetRefs></inputSet><outputSet id="o"/>'))),
        "i",
        "names the outputSet 'o', which does not name it",
    ),
    "data from what is none": (around(task(INPUT + copied("start", "din"))), "as", "the sourceRef 'start', which is a startEvent"),
    "data from nowhere": (around(task(INPUT + copied("nowhere", "din"))), "as", "the sourceRef 'nowhere', which does not exist"),
    "another item": (around(task(INPUT + copied("object", "din")), OBJECTS), "as", "copies 'number' into 'order'"),
    "an empty transformation": (
        around(task(INPUT + copied("object", "din", "<transformation/>")), OBJECTS),
        "as",
        "has an empty transformation",
    ),
    "two sources": (
        around(
            task(INPUT + copied("object", "din").replace("<targetRef>", "<sourceRef>other</sourceRef><targetRef>")),
            OBJECTS,
            '<dataObject id="other"/>',
        ),
        "as",
        "has several sources",
    ),
    "a reference by another name": (
        around(
            task(), OBJECTS, '<dataObjectReference id="r" name="data" dataObjectRef="object"><dataState name="new"/></dataObjectReference>'
        ),
        "r",
        "refers to 'data' in the state 'new'",
    ),
    "an event with other data": (
        around(
            caught("<operationRef>sell</operationRef>").replace(
                "<messageEvent", '<dataOutput id="d" itemSubjectRef="number"/><messageEvent', 1
            )
        ),
        "a",
        "has data that does not fit its event definitions",
    ),
    # services
    "a typed message without an operation": (around(caught()), "m", "names no operation"),
    "an operation that is none": (
        around(caught("<operationRef>called</operationRef>")),
        "m",
        "the operationRef 'called', which is a message",
    ),
    "received as another item": (
        around(f'<receiveTask id="a" messageRef="ordered">{io("", OUTPUT)}</receiveTask>'),
        "a",
        "is another item than its message",
    ),
    "two outputs of one message": (
        around(
            '<receiveTask id="a" messageRef="ordered">'
            + io("", '<dataOutput id="d" itemSubjectRef="order"/><dataOutput id="e" itemSubjectRef="order"/>')
            + "</receiveTask>"
        ),
        "a",
        "has 2 dataOutputs",
    ),
    "two output sets of a service": (
        around(f'<serviceTask id="a" operationRef="sell">{io(sets="<inputSet/><outputSet/><outputSet/>")}</serviceTask>'),
        "a",
        "1 input sets and 2 output sets",
    ),
    "a service of another item": (
        around(f'<serviceTask id="a" operationRef="sell">{io(NUMBER)}</serviceTask>'),
        "a",
        "is another item than the inMessageRef",
    ),
    "an interface that is not bound": (
        around(task(), "<supportedInterfaceRef>shop</supportedInterfaceRef>"),
        "p",
        "does not bind operation 'sell'",
    ),
}


@pytest.mark.parametrize(("body", "element", "what"), CASES.values(), ids=CASES)
def test_what_breaks_a_rule_is_named(body: str, element: str, what: str) -> None:
    found = problems(body)
    assert [(key, text) for key, text in found if key == element and what in text], found


def test_a_public_process_is_not_executed() -> None:
    assert problems(around(task()), process=' processType="Public"') == [("p", "process 'p' is executable and has the processType Public")]


POOLS = '<participant id="us" processRef="p"/><participant id="them"/>'
FLOWS = {
    "from a pool to itself": ("them", "them", "begins and ends in the same participant"),
    "from a pool to what lies in it": ("us", "a", "begins and ends in the same participant"),
    "within one process": ("a", "a", "begins and ends in the same participant"),
    "to what is no end": ("them", "object", "the targetRef 'object', which is a dataObject"),
    "to nothing": ("them", "nowhere", "the targetRef 'nowhere', which does not exist"),
    "to a start that is about nothing": ("them", "start", "which is not about a message"),
    "to an end": ("them", "end", "leads to endEvent 'end'"),
    "from an end that is about nothing": ("end", "them", "which is not about a message"),
    "from a start": ("start", "them", "leaves startEvent 'start'"),
}


@pytest.mark.parametrize(("source", "target", "what"), FLOWS.values(), ids=FLOWS)
def test_a_message_flow_that_cannot_be_meant_is_named(source: str, target: str, what: str) -> None:
    flow = f'<messageFlow id="mf" sourceRef="{source}" targetRef="{target}"/>'
    found = problems(around(task(), OBJECTS), root=f"<collaboration>{POOLS}{flow}</collaboration>")
    assert [(key, text) for key, text in found if key == "mf" and what in text], found


def test_message_flows_both_to_and_from_an_event_are_refused_at_the_event() -> None:
    flows = '<messageFlow id="m1" sourceRef="them" targetRef="a"/><messageFlow id="m2" sourceRef="a" targetRef="them"/>'
    found = problems(around(caught("<operationRef>sell</operationRef>")), root=f"<collaboration>{POOLS}{flows}</collaboration>")
    assert found == [("a", "intermediateCatchEvent 'a' has message flows that lead to it and that leave it")]


def test_message_flows_between_participants_are_accepted() -> None:
    flows = '<messageFlow id="m1" sourceRef="them" targetRef="a"/><messageFlow id="m2" sourceRef="us" targetRef="them"/>'
    assert problems(around(task()), root=f"<collaboration>{POOLS}{flows}</collaboration>") == []


def test_a_call_has_the_data_of_what_it_calls() -> None:
    called = (
        '<process id="q" isExecutable="true"><ioSpecification><dataInput id="qin" itemSubjectRef="order"/><inputSet><dataInputRefs>qin'
        '</dataInputRefs></inputSet><outputSet/></ioSpecification><startEvent id="s"/><endEvent id="e"/>'
        '<sequenceFlow id="sf" sourceRef="s" targetRef="e"/></process>'
    )
    found = problems(around(f'<callActivity id="a" calledElement="q">{io()}</callActivity>'), root=called)
    assert ("a", "callActivity 'a' has other dataInputs than process 'q'") in found


def test_a_call_of_a_process_that_only_events_start_is_named() -> None:
    called = (
        '<process id="q" isExecutable="true"><startEvent id="s"><timerEventDefinition>'
        '<timeDate xsi:type="tFormalExpression">2030-01-01</timeDate>'
        '</timerEventDefinition></startEvent><endEvent id="e"/><sequenceFlow id="sf" sourceRef="s" targetRef="e"/></process>'
    )
    found = problems(around('<callActivity id="a" calledElement="q"/>'), root=called)
    assert found == [("a", "callActivity 'a' calls process 'q', which only events start")]


def test_a_global_task_binds_the_interface_that_it_supports() -> None:
    found = problems(around(task()), root='<globalTask id="g"><supportedInterfaceRef>shop</supportedInterfaceRef></globalTask>')
    assert ("g", "globalTask 'g' supports interface 'shop' and does not bind operation 'sell'") in found


def test_what_vendors_leave_away_is_asked_of_files_that_speak_the_standard_alone() -> None:
    """Decision 0050."""
    loose = '<startEvent id="start"/><sequenceFlow id="in" sourceRef="start" targetRef="a"/>' + caught()
    assert {key for key, _ in problems(loose)} == {"p", "a", "m"}
    assert problems(loose, attributes=' xmlns:camunda="http://camunda.org/schema/1.0/bpmn"') == []


def test_a_file_that_only_draws_names_what_it_draws() -> None:
    text = f'{PLAIN}><collaboration id="c"><participant id="x"/></collaboration></definitions>'
    found = read_files([("m", text.encode())]).problems
    assert {(each.element_id, each.what) for each in found} == {
        ("c", "collaboration 'c' is drawn, and nothing runs it"),
        ("defs", "the file has no process"),
    }
