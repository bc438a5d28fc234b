"""Warnings for every attribute and extension element of a file that nothing here reads: never silently dropped (issue 4).

Run after the parsers, which note what they asked for. Attributes without a namespace are looked up in `vocabulary.py`.
"""

from __future__ import annotations

from engine.bpmn import names, vocabulary
from engine.bpmn.context import Context
from engine.bpmn.names import BPMN, Element

NOTHING: frozenset[str] = frozenset()


def report(top: Element, context: Context) -> None:
    """Everything below `top`, and `top` itself."""
    waiting = [top]
    while waiting:
        element = waiting.pop()
        if _is_foreign(element) and not context.was_read(element):
            context.unread_extension(element)  # and so is all that lies in it
            continue
        known = _known(element)
        for key in element.attrib:
            tag = str(key)
            space, name = names.split(tag)
            if space in vocabulary.OF_TOOLS:
                continue
            if space != "" or name not in known:
                context.unread_attribute(element, tag)
        waiting += reversed(list(names.elements(element)))


def _is_foreign(element: Element) -> bool:
    """An extension element: it stands in extensionElements, or where the standard has no place for it."""
    parent = element.getparent()
    return parent is not None and names.namespace(parent) == BPMN and names.namespace(element) not in (BPMN, *vocabulary.DIAGRAM)


def _known(element: Element) -> frozenset[str]:
    """The attributes without a namespace that an element may have."""
    space, tag = names.split(str(element.tag))
    if space == BPMN:
        return vocabulary.STANDARD.get(tag, NOTHING) | {"id"}
    if space in vocabulary.DIAGRAM:
        return vocabulary.DIAGRAM[space].get(tag, NOTHING)
    return vocabulary.OF_VENDORS.get(tag, NOTHING)
