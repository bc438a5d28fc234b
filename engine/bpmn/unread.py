"""Warnings for every attribute, element and text of a file that nothing here reads: never silently dropped (issue 4).

Run after the parsers: what they asked for is noted (`noted.py`). The standard gives some things to people and tools, not to the run:
`vocabulary.py` lists them, and nothing is said about them.
"""

from __future__ import annotations

from engine.bpmn import data, names, vocabulary
from engine.bpmn.context import Context
from engine.bpmn.names import BPMN, Element
from engine.bpmn.noted import ITSELF, TEXT, asked

FOR_PEOPLE, REFUSED = "for people", "refused"  # what an element is within
NOTHING: frozenset[str] = frozenset()


def report(top: Element, context: Context) -> None:
    """Everything below `top`, and `top` itself."""
    waiting = [(top, "")]
    while waiting:
        element, within = waiting.pop()
        if element.tag in vocabulary.BY_EDITORS:
            waiting += [(child, within) for child in reversed(_of_an_editor(element, context))]
            continue
        if _is_foreign(element) and not context.was_read(element):
            context.unread_extension(element)  # and so is all that lies in it
            continue
        for_people, named_already = _is_for_people(element, context), element in context.refused
        if not (within or for_people or named_already or _is_read(element)):
            context.unread_element(element)
            continue
        own = within or (FOR_PEOPLE if for_people else REFUSED if named_already else "")
        _own(element, context, within=own)
        below = own if own != REFUSED or within or not _goes_on(element) else ""
        waiting += [(child, below) for child in reversed(list(names.elements(element)))]


def _of_an_editor(element: Element, context: Context) -> list[Element]:
    """What lies in an element of an editor; what else it has is reported."""
    for key in element.attrib:
        if str(key) not in vocabulary.BY_EDITORS[str(element.tag)] and names.split(str(key))[0] not in vocabulary.OF_TOOLS:
            context.unread_attribute(element, str(key))
    return list(names.elements(element))


def _own(element: Element, context: Context, *, within: str) -> None:
    """Its attributes and its text. `within` what is FOR_PEOPLE or REFUSED, nothing is to be said about what the standard gives it."""
    known, for_people = _known(element), _for_people(element)
    for key in element.attrib:
        tag = str(key)
        space, name = names.split(tag)
        if space in vocabulary.OF_TOOLS or (space == "" and (name in for_people or (within and name in (known or NOTHING)))):
            continue
        if known is None and within == REFUSED:
            continue  # the vendor's element is named in the problem
        if tag not in asked(element) or (space in ("", BPMN) and known is not None and name not in known):
            context.unread_attribute(element, tag)
    if not within and (element.text or "").strip() and TEXT not in asked(element):
        context.unread_text(element)


def _is_foreign(element: Element) -> bool:
    """An extension element: it stands in extensionElements, or where the standard has no place for it."""
    parent = element.getparent()
    standard = (BPMN, *vocabulary.DIAGRAM)
    around = parent is not None and (names.namespace(parent) in standard or str(parent.tag) in vocabulary.BY_EDITORS)
    return around and names.namespace(element) not in standard


def _is_read(element: Element) -> bool:
    """Whether a parser asked for it, or for anything in it but the id, which everything has."""
    found = asked(element)
    if element.tag == f"{{{BPMN}}}extensionElements":
        return True  # what it holds is judged by itself
    return not found.isdisjoint((ITSELF, TEXT)) or any(key in found for key in element.attrib if key != "id")


def _is_for_people(element: Element, context: Context) -> bool:
    """An element that is drawn or describes, with all that the standard puts into it."""
    space, tag = names.split(str(element.tag))
    if space == BPMN and tag == "process":
        return not names.flag(element.attrib.get("isExecutable"), default=True)
    if space == BPMN and tag in data.ASSOCIATIONS:
        return data.is_drawn(element, context)
    return space in vocabulary.DIAGRAM or (space == BPMN and tag in vocabulary.FOR_PEOPLE)


def _goes_on(element: Element) -> bool:
    """Whether what an element holds is read though a problem is about the element itself."""
    return names.local(element) in vocabulary.CONTAINERS and ITSELF in asked(element)


def _for_people(element: Element) -> frozenset[str]:
    """The attributes of an element that describe it, or name it to other elements, and say nothing to the run."""
    space, tag = names.split(str(element.tag))
    return vocabulary.DESCRIPTIVE.get(tag, NOTHING) | vocabulary.NAMES if space == BPMN else vocabulary.IDS


def _known(element: Element) -> frozenset[str] | None:
    """The attributes without a namespace that the standard gives an element; None for elements of vendors."""
    space, tag = names.split(str(element.tag))
    if space == BPMN:
        return vocabulary.STANDARD.get(tag, NOTHING) | {"id"}
    return vocabulary.DIAGRAM[space].get(tag, NOTHING) if space in vocabulary.DIAGRAM else None
