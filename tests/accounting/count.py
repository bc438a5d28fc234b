"""One file: what of it was used, what is drawn, what was reported, and what is in none of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from lxml import etree

from engine.bpmn.definition import Problem
from engine.bpmn.reader import ReadResult, read_noting
from tests.accounting import drawing
from tests.accounting.drawing import BPMN

TEXT = "#text"
ITSELF = ""
DATA = ("dataObject", "dataObjectReference", "dataInput", "dataOutput", "property")
CONTAINERS = frozenset({"definitions", "process", "subProcess", "transaction", "adHocSubProcess"})
PREFIXES = {
    "urn:baton:bpmn": "baton",
    "http://camunda.org/schema/zeebe/1.0": "zeebe",
    "http://camunda.org/schema/1.0/bpmn": "camunda",
    "http://operaton.org/schema/1.0/bpmn": "operaton",
    "http://flowable.org/bpmn": "flowable",
    "http://activiti.org/bpmn": "activiti",
    "http://www.jboss.org/drools": "drools",
}
PLACEHOLDER = "__targetRef_placeholder"


@dataclass
class Counted:
    """One file. `left`: what nobody accounts for, as people would look for it."""

    file: str
    accepted: bool
    used: int = 0
    drawn: int = 0
    reported: int = 0
    left: list[str] = field(default_factory=list)


def count(file: str, content: bytes) -> Counted:
    """Every element, attribute and text of one file."""
    result, notes = read_noting(file, content)
    counted = Counted(file, accepted=not result.problems)
    try:
        elements = list(etree.fromstring(content, etree.XMLParser(remove_comments=True, remove_pis=True, resolve_entities=False)).iter())
    except etree.XMLSyntaxError:
        counted.reported = int(bool(result.problems))
        counted.left = [] if result.problems else ["the file is no XML, and nobody says so"]
        return counted
    if not notes or _as_a_whole(result):
        counted.reported = sum(len(list(_parts(element))) for element in elements)
        return counted
    if len(notes) != len(elements):
        counted.left = [f"the reader saw {len(notes)} elements of {len(elements)}"]
        return counted
    _Walk(elements, dict(zip(elements, notes, strict=True)), result, counted).over(elements[0], drawn=False, reported=False)
    return counted


def count_parts(content: bytes) -> Iterator[tuple[int, str, bool]]:
    """(place of the element in the file, attribute, whether the reader says that it read it)."""
    _, notes = read_noting("model.bpmn", content)
    elements = etree.fromstring(content, etree.XMLParser(remove_comments=True, remove_pis=True, resolve_entities=False)).iter()
    for place, (element, asked) in enumerate(zip(elements, notes, strict=True)):
        yield from ((place, str(key), key in asked) for key in element.attrib)


def _as_a_whole(result: ReadResult) -> bool:
    """Whether the file was refused before its elements were looked at."""
    wholly = ("the root element is", "the file has a DOCTYPE", "the processes have")
    return any(problem.what.startswith(wholly) for problem in result.problems)


def _parts(element: etree._Element) -> Iterator[str]:
    """The element itself, its attributes, its text."""
    yield ITSELF
    yield from (str(key) for key in element.attrib)
    if (element.text or "").strip():
        yield TEXT


@dataclass
class _Walk:
    elements: list[etree._Element]
    notes: dict[etree._Element, frozenset[str]]
    result: ReadResult
    counted: Counted
    data: frozenset[str] = frozenset()
    said: frozenset[tuple[int | None, str]] = frozenset()
    refused: frozenset[tuple[int | None, str | None]] = frozenset()

    def __post_init__(self) -> None:
        root = self.elements[0]
        found = (element for tag in DATA for element in root.iter(f"{{{BPMN}}}{tag}"))
        self.data = frozenset(element.get("id", "") for element in found if element.get("name") != PLACEHOLDER)
        self.said = frozenset(_key(warning) for warning in self.result.warnings)
        self.refused = frozenset((problem.line, problem.element_id) for problem in self.result.problems)

    def over(self, element: etree._Element, *, drawn: bool, reported: bool) -> None:
        """The element and what it holds. `drawn`, `reported`: what is around it is so, with all that it holds."""
        notes, here = self.notes[element], (element.sourceline, _nearest_id(element))
        foreign = etree.QName(element).namespace not in (BPMN, *drawing.DIAGRAMS)
        drawn = (drawn and not foreign) or drawing.is_whole(element, self.data)
        goes_on = etree.QName(element).localname in CONTAINERS and ITSELF in notes
        refused = here in self.refused
        whole = reported or (refused and not goes_on) or any((element.sourceline, what) in self.said for what in _names_of(element))
        for part in _parts(element):
            if whole or self._is_reported(element, part) or (refused and goes_on):
                self.counted.reported += 1
            elif self._is_used(element, part, notes):
                self.counted.used += 1
            elif (drawn and part in (ITSELF, TEXT)) or (part not in (ITSELF, TEXT) and drawing.is_drawn(element, part, within=drawn)):
                self.counted.drawn += 1
            else:
                self.counted.left.append(_told(element, part))
        for child in element:
            self.over(child, drawn=drawn, reported=whole)

    def _is_used(self, element: etree._Element, part: str, notes: frozenset[str]) -> bool:
        if part != ITSELF:
            return part in notes
        if element.tag == f"{{{BPMN}}}extensionElements":
            return True  # it is nothing but what it holds
        return not notes.isdisjoint((ITSELF, TEXT, *(str(key) for key in element.attrib if key != "id")))

    def _is_reported(self, element: etree._Element, part: str) -> bool:
        if part == ITSELF:
            return False
        what = f"the text in {_shown(str(element.tag))}" if part == TEXT else f"the attribute {_shown(part)}"
        return (element.sourceline, f"{what} is not read") in self.said


def _key(warning: Problem) -> tuple[int | None, str]:
    """Where and what. Not the id: what several events share (10.5.5) is told with each of them."""
    return warning.line, warning.what


def _names_of(element: etree._Element) -> tuple[str, str]:
    shown = _shown(str(element.tag))
    return f"the element {shown} is not read", f"the extension element {shown} is not read"


def _shown(tag: str) -> str:
    name = etree.QName(tag)
    if name.namespace in (None, BPMN):
        return name.localname
    prefix = PREFIXES.get(name.namespace or "")
    return f"{prefix}:{name.localname}" if prefix else f"{name.localname} ({name.namespace})"


def _nearest_id(element: etree._Element) -> str | None:
    """The id of the element or of what is around it. Ids in extension elements name parts of an element."""
    around: etree._Element | None = element
    while around is not None:
        parent = around.getparent()
        inside = parent is None or etree.QName(parent).namespace != BPMN or etree.QName(parent).localname == "extensionElements"
        if around.get("id") and (etree.QName(around).namespace == BPMN or not inside):
            return around.get("id")
        around = parent
    return None


def _told(element: etree._Element, part: str) -> str:
    where = f"line {element.sourceline}, {_shown(str(element.tag))} {_nearest_id(element) or ''}".rstrip()
    return f"{where}: {'the element itself' if part == ITSELF else 'its text' if part == TEXT else _shown(part)}"
