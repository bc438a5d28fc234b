"""Namespaces and the small questions that every parser asks of an element."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from lxml import etree

from engine.bpmn.noted import TEXT, note

BPMN = "http://www.omg.org/spec/BPMN/20100524/MODEL"
BPMNDI = "http://www.omg.org/spec/BPMN/20100524/DI"
DC = "http://www.omg.org/spec/DD/20100524/DC"
DI = "http://www.omg.org/spec/DD/20100524/DI"
XSI = "http://www.w3.org/2001/XMLSchema-instance"
BATON = "urn:baton:bpmn"
JBPM = "http://www.jboss.org/drools"
ZEEBE = "http://camunda.org/schema/zeebe/1.0"

# Namespaces in which the attributes that we read have the same meaning; the first one with the attribute wins.
CAMUNDA_LIKE = (
    "http://camunda.org/schema/1.0/bpmn",
    "http://operaton.org/schema/1.0/bpmn",
    "http://flowable.org/bpmn",
    "http://activiti.org/bpmn",
)
PREFIXES = {
    BATON: "baton",
    ZEEBE: "zeebe",
    JBPM: "drools",
    CAMUNDA_LIKE[0]: "camunda",
    CAMUNDA_LIKE[1]: "operaton",
    CAMUNDA_LIKE[2]: "flowable",
    CAMUNDA_LIKE[3]: "activiti",
}

Element = etree._Element


def split(tag: str) -> tuple[str, str]:
    """A tag or attribute as (namespace, local name)."""
    if tag.startswith("{"):
        namespace, _, name = tag[1:].partition("}")
        return namespace, name
    return "", tag


def local(element: Element) -> str:
    return split(str(element.tag))[1]


def namespace(element: Element) -> str:
    return split(str(element.tag))[0]


def shown(tag: str) -> str:
    """A tag or attribute as people write it: `camunda:class`, `userTask`."""
    space, name = split(tag)
    if space in ("", BPMN):
        return name
    return f"{PREFIXES[space]}:{name}" if space in PREFIXES else f"{name} ({space})"


def line(element: Element) -> int | None:
    """The line of the file in which the element begins."""
    found: Any = element.sourceline  # the stubs leave its type open
    return int(found) if found else None


def elements(parent: Element) -> Iterator[Element]:
    """The children that are elements."""
    for child in parent:
        if isinstance(child.tag, str):
            yield child


def bpmn(parent: Element, *names: str) -> Iterator[Element]:
    """The children of these BPMN tags."""
    return children(parent, {f"{{{BPMN}}}{name}" for name in names})


def children(parent: Element, tags: Collection[str]) -> Iterator[Element]:
    """The children of these tags, each noted as read."""
    for child in parent:
        if child.tag in tags:
            note(child)
            yield child


def text(element: Element) -> str:
    """All text within an element, markup in it left out."""
    for each in element.iter():
        note(each, TEXT)
    return "".join(str(part) for part in element.itertext())


def reference(value: str | None) -> str | None:
    """The id that an attribute of type QName refers to, its prefix left out."""
    return value.strip().rpartition(":")[2] if value and value.strip() else None


def vendor(element: Element, name: str, *, baton: bool = True) -> str | None:
    """An attribute in our own namespace or in one that means the same. Only looked at: whoever reads it asks the context for it."""
    for space in ((BATON,) if baton else ()) + CAMUNDA_LIKE:
        value = element.attrib.get(f"{{{space}}}{name}")
        if value is not None:
            return str(value)
    return None


def extensions(element: Element) -> Iterator[Element]:
    """The extension elements of an element."""
    for holder in bpmn(element, "extensionElements"):
        yield from elements(holder)


def is_flag(value: str) -> bool:
    """Whether a text is an xs:boolean."""
    return value.strip() in ("true", "false", "1", "0")


def flag(value: str | None, *, default: bool) -> bool:
    """An xs:boolean; anything that is none counts as the default (the checks name it)."""
    match (value or "").strip():
        case "true" | "1":
            return True
        case "false" | "0":
            return False
    return default
