"""Where a step stands in its process: a small drawing of the step and its neighbours, and the same in words.

Drawn on the server from the model's own bounds (docs/decisions): the diagram of a whole case, to pan and zoom, is the
instance page's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from textwrap import wrap
from uuid import UUID

from engine.bpmn.definition import Node, ProcessDefinition
from engine.bpmn.diagram import Diagram, Edge, Shape, read_diagram
from engine.bpmn.xml import Unreadable

PADDING = 14.0
WIDEST = 460.0  # of the models' units; more would be too small to read in a column of 24rem
LETTER = 6.6  # the average width of a letter at the drawing's size
LINE = 15.0
ROUND = ("Event",)
GLYPHS = {"userTask": "user", "serviceTask": "gear", "sendTask": "send", "receiveTask": "mail"}


@dataclass(frozen=True, slots=True)
class Text:
    """A name, wrapped to lines with their places."""

    lines: tuple[tuple[float, float, str], ...]
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class Box:
    """One element to draw. `form`: rect, circle, diamond. `state`: done, now or nothing."""

    form: str
    x: float
    y: float
    width: float
    height: float
    state: str
    ends: bool
    twice: bool  # a second line inside: intermediate and boundary events
    mark: str  # x, plus, pentagon, timer, message, error, user, gear, …
    text: Text


@dataclass(frozen=True, slots=True)
class Line:
    path: str
    done: bool
    text: Text


@dataclass(frozen=True, slots=True)
class Where:
    """The drawing (None without one in the model) and the words."""

    view_box: str | None
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
    before: tuple[str, ...]
    here: str
    after: tuple[str, ...]


def where_it_stands(
    definition_id: UUID, xml: bytes | None, definition: ProcessDefinition, node: Node, *, taken: Mapping[str, int], done: Iterable[str]
) -> Where:
    """`taken`: flows that tokens of this case went along; `done`: steps that people completed, in order."""
    drawing = _drawing(definition_id, xml) if xml is not None else Diagram()
    shown, shapes = _part_that_fits(definition, node, drawing)
    edges = [edge for edge in drawing.edges if _inside(definition, edge, shown)]
    left_by = {definition.flows[flow].source for flow in taken if flow in definition.flows}
    return Where(
        view_box=_view_box(shapes, edges) if any(shape.element_id == node.id for shape in shapes) else None,
        boxes=tuple(
            _box(shape, "now" if shape.element_id == node.id else "done" if shape.element_id in left_by else "") for shape in shapes
        ),
        lines=tuple(_line(edge, done=edge.element_id in taken) for edge in edges),
        before=tuple(dict.fromkeys(done)),
        here=node.name or node.id,
        after=_after(definition, node),
    )


def _state(shape: Shape, node: Node, left_by: set[str]) -> str:
    if shape.element_id == node.id:
        return "now"
    return "done" if shape.element_id in left_by else ""


@lru_cache(maxsize=128)
def _drawing(definition_id: UUID, xml: bytes) -> Diagram:
    try:
        return read_diagram(xml)
    except Unreadable:
        return Diagram()


# ---- which part


def _part_that_fits(definition: ProcessDefinition, node: Node, drawing: Diagram) -> tuple[set[str], list[Shape]]:
    """The step with as many neighbours as stay readable in a column: the farthest are left out first."""
    shown: set[str] = set()
    shapes: list[Shape] = []
    for wanted in _neighbourhoods(definition, node):
        shown, shapes = wanted, [shape for shape in drawing.shapes if shape.element_id in wanted]
        left, right = min((s.bounds.x for s in shapes), default=0.0), max((s.bounds.x + s.bounds.width for s in shapes), default=0.0)
        if right - left <= WIDEST:
            break
    return shown, shapes


def _neighbourhoods(definition: ProcessDefinition, node: Node) -> Iterator[set[str]]:
    """From wide to narrow: what follows the gateways behind the step; what leads to it; what follows it; itself."""
    itself = {node.id, *node.attached}
    before = {definition.flows[flow].source for flow in node.incoming}
    after = {definition.flows[flow].target for flow in node.outgoing}
    gateways = [definition.nodes[target] for target in after if "gateway" in definition.nodes[target].kind]
    beyond = {definition.flows[flow].target for gateway in gateways for flow in gateway.outgoing}
    yield itself | before | after | beyond
    yield itself | before | after
    yield itself | after
    yield itself


def _inside(definition: ProcessDefinition, edge: Edge, shown: set[str]) -> bool:
    flow = definition.flows.get(edge.element_id)
    return flow is not None and flow.source in shown and flow.target in shown


def _after(definition: ProcessDefinition, node: Node) -> tuple[str, ...]:
    """The names of what may come next, looking through gateways; at most five."""
    names: dict[str, None] = {}
    seen: set[str] = set()
    queue = [definition.flows[flow].target for flow in node.outgoing]
    while queue and len(names) < 5:
        following = definition.nodes[queue.pop(0)]
        if following.id in seen:
            continue
        seen.add(following.id)
        if "gateway" in following.kind:
            queue += [definition.flows[flow].target for flow in following.outgoing]
        elif following.kind == "end_event":
            names[f"the end ({following.name})" if following.name else "the end"] = None
        else:
            names[following.name or following.id] = None
    return tuple(names)


# ---- the drawing


def _view_box(shapes: list[Shape], edges: list[Edge]) -> str:
    xs = [x for shape in shapes for x in (shape.bounds.x, shape.bounds.x + shape.bounds.width)]
    ys = [y for shape in shapes for y in (shape.bounds.y, shape.bounds.y + shape.bounds.height)]
    for edge in edges:
        xs += [x for x, _ in edge.points]
        ys += [y for _, y in edge.points]
    for box in (_box(shape, "") for shape in shapes):
        for x, y, words in box.text.lines:
            xs += [x - len(words) * LETTER / 2, x + len(words) * LETTER / 2]
            ys += [y - 11, y + 4]
    left, top = min(xs) - PADDING, min(ys) - PADDING
    return f"{left:.0f} {top:.0f} {max(xs) + PADDING - left:.0f} {max(ys) + PADDING - top:.0f}"


def _box(shape: Shape, state: str) -> Box:
    at = shape.bounds
    form = "diamond" if shape.tag.endswith("Gateway") else "circle" if shape.tag.endswith(ROUND) else "rect"
    return Box(
        form,
        at.x,
        at.y,
        at.width,
        at.height,
        state,
        ends=shape.tag == "endEvent",
        twice=shape.tag.startswith(("intermediate", "boundary")),
        mark=_mark(shape),
        text=_inner_text(shape) if form == "rect" else _outer_text(shape),
    )


def _mark(shape: Shape) -> str:
    if shape.tag.endswith("Gateway"):
        return {"exclusiveGateway": "x", "parallelGateway": "plus", "eventBasedGateway": "pentagon"}.get(shape.tag, "")
    if shape.event:
        return shape.event.removesuffix("EventDefinition")
    return GLYPHS.get(shape.tag, "")


def _inner_text(shape: Shape) -> Text:
    at = shape.bounds
    lines = wrap(shape.name, max(int((at.width - 12) / LETTER), 6))[: max(int((at.height - 8) / LINE), 1)]
    top = at.y + at.height / 2 - (len(lines) - 1) * LINE / 2 + 4
    return Text(tuple((at.x + at.width / 2, top + n * LINE, words) for n, words in enumerate(lines)))


def _outer_text(shape: Shape) -> Text:
    """A name below its symbol, or where the model puts it."""
    at, label = shape.bounds, shape.label
    lines = wrap(shape.name, 16)
    x = label.x + label.width / 2 if label else at.x + at.width / 2
    top = (label.y if label else at.y + at.height + 4) + 10
    return Text(tuple((x, top + n * 13, words) for n, words in enumerate(lines)), quiet=True)


def _line(edge: Edge, *, done: bool) -> Line:
    path = "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in edge.points)
    if not edge.name:
        return Line(path, done, Text(()))
    middle = len(edge.points) // 2
    (x1, y1), (x2, y2) = edge.points[middle - 1], edge.points[middle]
    x, y = (edge.label.x + edge.label.width / 2, edge.label.y + 10) if edge.label else ((x1 + x2) / 2, (y1 + y2) / 2 - 5)
    return Line(path, done, Text(((x, y, edge.name),), quiet=True))
