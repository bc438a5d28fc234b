"""Two ways to ask whether what counts as read, or as reported, really is: add what nobody knows, and change what is known."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from lxml import etree

from engine.bpmn.reader import read_files
from tests.accounting.count import count_parts
from tests.accounting.drawing import BPMN, DIAGRAMS

NAMESPACES = ("", "{urn:of-nobody}", f"{{{BPMN}}}", "{http://camunda.org/schema/1.0/bpmn}", "{http://flowable.org/bpmn}")
TOGETHER = 100  # at a time: a warning about an element that is not read names two hundred parts of it
VALUE = "nobodys-value"
SAMPLES = 2  # of each attribute of each element


def unknown_that_goes_unnoticed(content: bytes) -> Iterator[str]:
    """Attributes and extension elements of nobody, added everywhere in an accepted file: those that no warning names."""
    number = len(list(_parse(content).iter()))
    for start in range(0, number, TOGETHER):
        for space in NAMESPACES:
            yield from _missed(content, range(start, min(start + TOGETHER, number)), f"{space}nobodys", attribute=True)
        yield from _missed(content, range(start, min(start + TOGETHER, number)), "{urn:of-nobody}nobodys", attribute=False)


def _missed(content: bytes, places: range, tag: str, *, attribute: bool) -> Iterator[str]:
    root = _parse(content)
    elements = list(root.iter())
    wanted = []
    for place in places:
        element = elements[place]
        if attribute:
            element.set(f"{tag}{place}", "1")
        elif _may_be_extended(element):
            _extend(element, f"{tag}{place}")
        else:
            continue
        wanted.append(place)
    result = read_files([("model.bpmn", etree.tostring(root))])
    said = " ".join(f"{warning.what} {warning.why} " for warning in result.warnings)
    what = "attribute" if attribute else "extension element"
    for place in wanted:
        if not re.search(rf"nobodys{place}\b", said) or result.problems:
            yield f"line {elements[place].sourceline}, {etree.QName(elements[place]).localname}: the {what} {tag}"


def _may_be_extended(element: etree._Element) -> bool:
    """Elements of the standard that hold elements; those that hold text and references have no place for extensions."""
    name = etree.QName(element)
    simple = name.localname.endswith(("Ref", "Refs", "incoming", "outgoing")) or name.localname in (
        "text",
        "script",
        "extensionElements",
        "documentation",
    )
    return name.namespace == BPMN and not simple and not (element.text or "").strip()


def _extend(element: etree._Element, tag: str) -> None:
    holder = element.find(f"{{{BPMN}}}extensionElements")
    if holder is None:
        holder = etree.Element(f"{{{BPMN}}}extensionElements")
        element.insert(len(element.findall(f"{{{BPMN}}}documentation")), holder)
    etree.SubElement(holder, tag)


def read_and_without_effect(contents: Sequence[bytes]) -> dict[str, int]:
    """Attributes that count as used, and whose value changes neither the definitions nor what is said of a file, wherever tried."""
    tried: dict[str, int] = {}
    seen: dict[str, bool] = {}
    for content in contents:
        before = _answer(content)
        for place, name, used in count_parts(content):
            element = list(_parse(content).iter())[place]
            what = f"{etree.QName(element).localname} {name}"
            if not used or seen.get(what) or tried.get(what, 0) >= SAMPLES or etree.QName(element).namespace in DIAGRAMS:
                continue
            tried[what] = tried.get(what, 0) + 1
            seen[what] = _answer(_changed(content, place, name)) != before
    return {what: tried[what] for what, effect in seen.items() if not effect}


def _changed(content: bytes, place: int, name: str) -> bytes:
    root = _parse(content)
    list(root.iter())[place].set(name, VALUE)
    return etree.tostring(root)


def _answer(content: bytes) -> Any:
    result = read_files([("model.bpmn", content)])
    return [definition for _, definition in result.definitions], result.problems, result.warnings


def _parse(content: bytes) -> etree._Element:
    return etree.fromstring(content, etree.XMLParser(remove_comments=True, remove_pis=True, resolve_entities=False))
