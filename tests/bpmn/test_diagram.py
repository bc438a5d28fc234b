"""The drawing in a file: shapes, edges, and what is wrong left out."""

from __future__ import annotations

import pytest

from engine.bpmn.diagram import Bounds, Diagram, Edge, Shape, read_diagram
from engine.bpmn.xml import Unreadable
from tests.bpmn.models import file_of

SPACES = (
    'xmlns:di="http://www.omg.org/spec/DD/20100524/DI" xmlns:dc="http://www.omg.org/spec/DD/20100524/DC"'
    ' xmlns:bpmndi="http://www.omg.org/spec/BPMN/20100524/DI"'
)
BODY = (
    '<startEvent id="s" name="Start"/><sequenceFlow id="f" name="go" sourceRef="s" targetRef="t"/>'
    '<subProcess id="t" name="Work"><startEvent id="i"/></subProcess>'
    '<boundaryEvent id="b" attachedToRef="t" cancelActivity="false">'
    "<timerEventDefinition><timeDuration>PT1M</timeDuration></timerEventDefinition></boundaryEvent>"
)


def shape(element: str, bounds: str, attributes: str = "", inside: str = "") -> str:
    return f'<bpmndi:BPMNShape bpmnElement="{element}" {attributes}><dc:Bounds {bounds}/>{inside}</bpmndi:BPMNShape>'


def drawn(parts: str) -> bytes:
    diagram = f'<bpmndi:BPMNDiagram {SPACES}><bpmndi:BPMNPlane bpmnElement="p">{parts}</bpmndi:BPMNPlane></bpmndi:BPMNDiagram>'
    return file_of(BODY).replace(b"</definitions>", diagram.encode() + b"</definitions>")


def test_shapes_and_edges_are_read_with_their_labels() -> None:
    label = '<bpmndi:BPMNLabel><dc:Bounds x="0" y="140" width="40" height="14"/></bpmndi:BPMNLabel>'
    edge = f'<bpmndi:BPMNEdge bpmnElement="f"><di:waypoint x="46" y="118"/><di:waypoint x="100.5" y="118"/>{label}</bpmndi:BPMNEdge>'
    parts = shape("s", 'x="10" y="100" width="36" height="36"', inside=label) + edge
    parts += shape("t", 'x="100" y="78" width="100" height="80"', 'isExpanded="false"') + shape(
        "b", 'x="150" y="140" width="36" height="36"'
    )
    assert read_diagram(drawn(parts)) == Diagram(
        (
            Shape("s", "startEvent", "Start", Bounds(10, 100, 36, 36), Bounds(0, 140, 40, 14)),
            Shape("t", "subProcess", "Work", Bounds(100, 78, 100, 80), expanded=False),
            Shape("b", "boundaryEvent", "", Bounds(150, 140, 36, 36), event="timerEventDefinition", interrupting=False),
        ),
        (Edge("f", "sequenceFlow", "go", ((46, 118), (100.5, 118)), Bounds(0, 140, 40, 14)),),
        Bounds(0, 78, 200, 98),
    )


def test_a_file_without_a_drawing_has_an_empty_one() -> None:
    assert read_diagram(file_of(BODY)) == Diagram()


@pytest.mark.parametrize(
    "part",
    [
        shape("gone", 'x="1" y="1" width="1" height="1"'),
        shape("s", 'x="1" y="1" width="1"'),
        shape("s", 'x="nan" y="1" width="1" height="1"'),
        shape("s", 'x="1e300" y="1" width="1" height="1"'),
        shape("s", 'x="1" y="1" width="-1" height="1"'),
        '<bpmndi:BPMNShape bpmnElement="s"/>',
        "<bpmndi:BPMNShape/>",
        '<bpmndi:BPMNEdge bpmnElement="f"><di:waypoint x="1" y="1"/></bpmndi:BPMNEdge>',
        '<bpmndi:BPMNEdge bpmnElement="f"><di:waypoint x="1" y="a"/><di:waypoint x="1" y="1"/></bpmndi:BPMNEdge>',
    ],
)
def test_what_is_drawn_wrongly_is_left_out(part: str) -> None:
    assert read_diagram(drawn(part)) == Diagram()


def test_a_drawing_is_read_by_the_hardened_reader() -> None:
    with pytest.raises(Unreadable):
        read_diagram(b"<!DOCTYPE x>" + file_of(BODY))
