"""A process without a drawing -> its drawing, by the library bpmn-io (a port of bpmn-auto-layout). `python -m engine.drawings.layout KEY`
reads a file from standard input and writes one with a drawing.

The library sees a bare copy: nodes, flows and subprocesses of one process, with the `incoming` and `outgoing` that it goes by, and every
subprocess marked as expanded. What it makes is put into the author's own text, which is else unchanged.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator

from lxml import etree

from engine.bpmn import names
from engine.bpmn.names import BPMN, BPMNDI, DC, DI, Element
from engine.bpmn.references import name_flows
from engine.bpmn.xml import parse_xml

MAX_PARTS = 600  # nodes of the process: the library's time grows with the square
MAX_FLOWS = 2 * MAX_PARTS
MAX_MEMORY = 1_000_000_000  # bytes of the process that lays out
NO_LAYOUT = 3  # exit code: there is a reason, in one sentence on standard error
COPY = "copied-part-"  # what ids in the copy begin with
PLACE = f"{{{BPMN}}}"
SUBPROCESSES = ("subProcess", "transaction", "adHocSubProcess")
KEPT = ("name", "sourceRef", "targetRef", "attachedToRef", "default", "cancelActivity", "isInterrupting", "triggeredByEvent")
NOT_DRAWN = {
    "laneSet": "lanes",
    "dataObjectReference": "data objects",
    "dataStoreReference": "data stores",
    "textAnnotation": "annotations",
    "group": "groups",
}


class NoLayout(Exception):
    """Why there is no drawing, in one sentence for people."""


def has_drawing(content: bytes, key: str) -> bool:
    """Whether the file draws any node of the process. Raises engine.bpmn.xml.Unreadable."""
    root = parse_xml(content)
    drawn = {names.reference(shape.get("bpmnElement")) for shape in root.iter(f"{{{BPMNDI}}}BPMNShape")}
    return any(node.get("id") in drawn for process in _processes(root, key) for node in _every_node(process))


def not_drawn(content: bytes, key: str) -> tuple[str, ...]:
    """What a layout leaves out of the process's picture, in words."""
    root = parse_xml(content)
    tags = {names.local(part) for process in _processes(root, key) for part in process.iter(PLACE + "*")}
    pools = sum(1 for _ in root.iter(PLACE + "participant"))
    return (*(word for tag, word in NOT_DRAWN.items() if tag in tags), *(("pools and message flows",) if pools > 1 else ()))


def laid_out(content: bytes, key: str) -> bytes:
    """The file with a drawing of the process `key`, and of no other. Raises NoLayout, and whatever the library raises."""
    from bpmn_io.auto_layout import layout_process

    root = parse_xml(content)
    process = next(_processes(root, key), None)
    if process is None:
        raise NoLayout(f"the file has no process {key}: a global task has one step, and no picture")
    name_flows(root, [process])  # as the reader names those without an id
    parts = sum(1 for _ in process.iter(PLACE + "*"))
    if sum(1 for _ in _every_node(process)) > MAX_PARTS or sum(1 for _ in process.iter(PLACE + "sequenceFlow")) > MAX_FLOWS:
        raise NoLayout(f"it has more than {MAX_PARTS} steps or {MAX_FLOWS:,} flows ({parts:,} parts), which would be no picture")
    stands_for: dict[str, str] = {}
    drawn = parse_xml(layout_process(etree.tostring(_bare(process, stands_for), encoding="unicode")).encode())
    diagrams = list(drawn.iter(f"{{{BPMNDI}}}BPMNDiagram"))
    if not diagrams:
        raise NoLayout("the library made no drawing")
    for part in diagrams[0].iter(f"{{{BPMNDI}}}*"):
        if part.get("bpmnElement") in stands_for:
            part.set("bpmnElement", stands_for[part.get("bpmnElement") or ""])
    for old in list(root.iter(f"{{{BPMNDI}}}BPMNDiagram")):
        root.remove(old)
    root.append(diagrams[0])
    _add_compensation(process, diagrams[0])
    return bytes(etree.tostring(root, encoding="utf-8", xml_declaration=True))


def _processes(root: Element, key: str) -> Iterator[Element]:
    return (process for process in names.bpmn(root, "process") if process.get("id") == key)


def _every_node(scope: Element) -> Iterator[Element]:
    for child in names.elements(scope):
        if _is_node(child):
            yield child
            yield from _every_node(child)


def _is_node(element: Element) -> bool:
    """A node of the flow: it has an id, and may be drawn as a shape of its own."""
    tag = names.local(element)
    drawn = tag.endswith(("Task", "Event", "Gateway", "Activity")) or tag in ("task", *SUBPROCESSES)
    return names.namespace(element) == BPMN and drawn and element.get("id") is not None


def _bare(process: Element, stands_for: dict[str, str]) -> Element:
    """A file with this process alone, stripped to what the library looks at.

    The library reads ids of ASCII alone, so each has another there; `stands_for` gets what it means.
    """
    root = etree.Element(PLACE + "definitions", nsmap={"bpmn": BPMN, "bpmndi": BPMNDI, "dc": DC, "di": DI})
    root.set("targetNamespace", "urn:baton:drawing")
    copy = etree.SubElement(root, PLACE + "process", {"id": process.get("id") or ""})
    expanded: list[str] = []
    _copy_scope(process, copy, expanded)
    _rename(copy, expanded, stands_for)
    diagram = etree.SubElement(root, f"{{{BPMNDI}}}BPMNDiagram", {"id": "given"})
    plane = etree.SubElement(diagram, f"{{{BPMNDI}}}BPMNPlane", {"id": "given_plane", "bpmnElement": copy.get("id") or ""})
    for number, key in enumerate(expanded):
        shape = etree.SubElement(plane, f"{{{BPMNDI}}}BPMNShape", {"id": f"given_{number}", "bpmnElement": key, "isExpanded": "true"})
        etree.SubElement(shape, f"{{{DC}}}Bounds", {"x": "0", "y": "0", "width": "350", "height": "200"})
    return root


def _copy_scope(scope: Element, copy: Element, expanded: list[str]) -> None:
    nodes = {node.get("id") or "": node for node in names.elements(scope) if _is_node(node)}
    flows = [
        flow
        for flow in names.bpmn(scope, "sequenceFlow")
        if flow.get("id") and names.reference(flow.get("sourceRef")) in nodes and names.reference(flow.get("targetRef")) in nodes
    ]
    for key, node in nodes.items():
        made = etree.SubElement(copy, node.tag, _attributes(node))
        for tag, end in (("incoming", "targetRef"), ("outgoing", "sourceRef")):
            for flow in flows:
                if names.reference(flow.get(end)) == key:
                    etree.SubElement(made, PLACE + tag).text = flow.get("id")
        if names.local(node) in SUBPROCESSES and any(_is_node(inner) for inner in names.elements(node)):
            expanded.append(key)
            _copy_scope(node, made, expanded)
    for flow in flows:
        etree.SubElement(copy, flow.tag, _attributes(flow))


def _rename(copy: Element, expanded: list[str], stands_for: dict[str, str]) -> None:
    """Other ids for the process and all that lies in it, wherever they are named."""
    parts = [each for each in copy.iter(PLACE + "*") if each.get("id") is not None]
    other = {each.get("id") or "": f"{COPY}{number}" for number, each in enumerate(parts)}
    stands_for |= {new: old for old, new in other.items()}
    for each in copy.iter(PLACE + "*"):
        for name in ("id", "sourceRef", "targetRef", "attachedToRef", "default"):
            if (old := each.get(name)) is not None:
                each.set(name, other.get(old, old))
        if each.text in other:
            each.text = other[each.text]
    expanded[:] = [other[key] for key in expanded]


def _attributes(element: Element) -> dict[str, str]:
    given = {name: element.get(name) or "" for name in KEPT if element.get(name)}
    ends = {name: names.reference(value) or "" for name, value in given.items() if name.endswith("Ref")}
    return {"id": element.get("id") or "", **given, **ends}


def _add_compensation(process: Element, diagram: Element) -> None:
    """The lines from compensation events to their handlers, which the library does not know: straight, from middle to middle."""
    plane = next(diagram.iter(f"{{{BPMNDI}}}BPMNPlane"))
    middles = dict(_middles(plane))
    for number, association in enumerate(list(process.iter(PLACE + "association"))):
        ends = [middles.get(names.reference(association.get(end)) or "") for end in ("sourceRef", "targetRef")]
        if None in ends:
            continue
        if association.get("id") is None:
            association.set("id", f"association-{number}-of-{process.get('id')}")
        key = association.get("id") or ""
        edge = etree.SubElement(plane, f"{{{BPMNDI}}}BPMNEdge", {"id": f"{key}_di", "bpmnElement": key})
        for x, y in (end for end in ends if end is not None):
            etree.SubElement(edge, f"{{{DI}}}waypoint", {"x": f"{x:g}", "y": f"{y:g}"})


def _middles(plane: Element) -> Iterator[tuple[str, tuple[float, float]]]:
    for shape in plane.iter(f"{{{BPMNDI}}}BPMNShape"):
        for box in shape.iterchildren(f"{{{DC}}}Bounds"):
            x, y, width, height = (float(box.get(name) or 0) for name in ("x", "y", "width", "height"))
            yield shape.get("bpmnElement") or "", (x + width / 2, y + height / 2)


def _main() -> int:
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    try:
        sys.stdout.buffer.write(laid_out(sys.stdin.buffer.read(), sys.argv[1]))
    except NoLayout as reason:
        sys.stderr.write(str(reason))
        return NO_LAYOUT
    return 0


if __name__ == "__main__":
    sys.exit(_main())
