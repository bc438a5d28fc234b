"""BPMNDI -> shapes and edges, for drawings made by the server. A file without a diagram has an empty one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lxml import etree

from engine.bpmn import names
from engine.bpmn.names import BPMN, BPMNDI, DC, DI, Element
from engine.bpmn.xml import parse_xml

MAX_PARTS = 20_000
FARTHEST = 1_000_000.0  # a coordinate beyond this is no drawing


@dataclass(frozen=True, slots=True)
class Bounds:
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Shape:
    """An element drawn as a box. `tag` is its BPMN tag; `event` the tag of its event definition, "" without one."""

    element_id: str
    tag: str
    name: str
    bounds: Bounds
    label: Bounds | None = None
    expanded: bool = True
    horizontal: bool = True
    event: str = ""
    interrupting: bool = True


@dataclass(frozen=True, slots=True)
class Edge:
    """A flow or association drawn as a line through its points."""

    element_id: str
    tag: str
    name: str
    points: tuple[tuple[float, float], ...]
    label: Bounds | None = None


@dataclass(frozen=True, slots=True)
class Diagram:
    """All planes of a file together; `bounds` surrounds everything, and is None if there is nothing."""

    shapes: tuple[Shape, ...] = ()
    edges: tuple[Edge, ...] = ()
    bounds: Bounds | None = None


def read_diagram(data: bytes) -> Diagram:
    """The drawing in a file that was deployed. Raises engine.bpmn.xml.Unreadable for what is no XML that may be read.

    What is drawn wrongly (a shape without bounds, of no element, at no number) is left out.
    """
    root = parse_xml(data)
    known = {element.get("id"): element for element in root.iter(f"{{{BPMN}}}*") if element.get("id")}
    shapes: list[Shape] = []
    edges: list[Edge] = []
    for drawn in root.iter(f"{{{BPMNDI}}}BPMNShape", f"{{{BPMNDI}}}BPMNEdge"):
        element = known.get(names.reference(drawn.get("bpmnElement")))
        if element is None or len(shapes) + len(edges) >= MAX_PARTS:
            continue
        if drawn.tag == f"{{{BPMNDI}}}BPMNShape":
            if (shape := _shape(drawn, element)) is not None:
                shapes.append(shape)
        elif (edge := _edge(drawn, element)) is not None:
            edges.append(edge)
    return Diagram(tuple(shapes), tuple(edges), _around(shapes, edges))


def _shape(drawn: Element, element: Element) -> Shape | None:
    bounds = _bounds(drawn)
    if bounds is None:
        return None
    event = next((names.local(child) for child in names.elements(element) if names.local(child).endswith("EventDefinition")), "")
    return Shape(
        element_id=element.get("id") or "",
        tag=names.local(element),
        name=element.get("name") or "",
        bounds=bounds,
        label=_label(drawn),
        expanded=names.flag(drawn.get("isExpanded"), default=True),
        horizontal=names.flag(drawn.get("isHorizontal"), default=True),
        event=event,
        interrupting=names.flag(element.get("cancelActivity") or element.get("isInterrupting"), default=True),
    )


def _edge(drawn: Element, element: Element) -> Edge | None:
    points = [(_number(point.get("x")), _number(point.get("y"))) for point in drawn.iterchildren(f"{{{DI}}}waypoint")]
    good = tuple((x, y) for x, y in points if x is not None and y is not None)
    if len(good) < 2:
        return None
    return Edge(element.get("id") or "", names.local(element), element.get("name") or "", good, _label(drawn))


def _label(drawn: Element) -> Bounds | None:
    label = next(iter(drawn.iterchildren(f"{{{BPMNDI}}}BPMNLabel")), None)
    return _bounds(label) if label is not None else None


def _bounds(holder: etree._Element) -> Bounds | None:
    found = next(iter(holder.iterchildren(f"{{{DC}}}Bounds")), None)
    if found is None:
        return None
    x, y, width, height = (_number(found.get(name)) for name in ("x", "y", "width", "height"))
    if x is None or y is None or width is None or height is None or width < 0 or height < 0:
        return None
    return Bounds(x, y, width, height)


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and abs(number) <= FARTHEST else None


def _labels(parts: Sequence[Shape | Edge]) -> list[Bounds]:
    return [part.label for part in parts if part.label is not None]


def _around(shapes: list[Shape], edges: list[Edge]) -> Bounds | None:
    boxes = [shape.bounds for shape in shapes] + _labels(shapes) + _labels(edges)
    points = [point for edge in edges for point in edge.points]
    points += [(box.x, box.y) for box in boxes] + [(box.x + box.width, box.y + box.height) for box in boxes]
    if not points:
        return None
    left, top = min(x for x, _ in points), min(y for _, y in points)
    return Bounds(left, top, max(x for x, _ in points) - left, max(y for _, y in points) - top)
