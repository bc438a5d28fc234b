"""Type references and item definitions read (DMN 1.3, 7.3.2)."""

from __future__ import annotations

from engine.bpmn.names import flag
from engine.dmn import names
from engine.dmn.context import Context
from engine.dmn.definition import ANY_TYPE, Type
from engine.dmn.names import Element, named
from engine.dmn.types import simple

MAX_DEPTH = 20  # of types within types


def read_types(root: Element, context: Context) -> None:
    """The item definitions of the file, into `context.types`."""
    elements = {name: item for item in names.children(root, "itemDefinition") if (name := (item.get("name") or "").strip())}
    for name, item in elements.items():
        if name not in context.types:  # or else another type has needed it before
            context.types[name] = _item(item, elements, context, (name,))


def type_of(element: Element | None, context: Context) -> Type:
    """What the typeRef of an element says; anything where it says nothing, or, with a warning, what nobody knows."""
    reference = _reference(element)
    if element is None or not reference:
        return ANY_TYPE
    found = simple(reference) or context.types.get(reference) or context.types.get(reference.rpartition(":")[2])
    if found is None:
        context.warn(element, f"{named(element)} is of the type {reference!r}, which is not defined", "values are taken as they are")
        return ANY_TYPE
    return found


def _reference(element: Element | None) -> str:
    """An attribute; an element in item definitions, and in files of other versions."""
    if element is None:
        return ""
    holder = names.child(element, "typeRef")
    return (names.text(holder) if holder is not None else element.get("typeRef") or "").strip()


def _item(item: Element, elements: dict[str, Element], context: Context, within: tuple[str, ...]) -> Type:
    name = (item.get("name") or "").strip()
    is_list = flag(item.get("isCollection"), default=False)
    allowed = context.tests(names.child(item, "allowedValues"), f"the allowedValues of {named(item)}")
    components = list(names.children(item, "itemComponent"))
    if components:
        if len(within) > MAX_DEPTH:
            context.problem(item, f"{named(item)} nests types too deeply", f"at most {MAX_DEPTH} levels")
            return ANY_TYPE
        parts = tuple(((part.get("name") or "").strip(), _item(part, elements, context, (*within, ""))) for part in components)
        return Type(name, "context", is_list, allowed, parts)
    reference = _reference(item)
    base = simple(reference) if reference else ANY_TYPE
    if base is None:
        base = _other(reference.rpartition(":")[2], item, elements, context, within)
    if base.is_list and is_list:
        context.warn(item, f"{named(item)} is a list of lists", "the items of its items are taken as they are")
        return Type(name, None, True, allowed)
    return Type(name, base.base, base.is_list or is_list, allowed or base.allowed, base.components)


def _other(name: str, item: Element, elements: dict[str, Element], context: Context, within: tuple[str, ...]) -> Type:
    if name in within:
        context.problem(
            item, f"{named(item)} is defined by itself: {' → '.join(each for each in (*within, name) if each)}", "a type without a circle"
        )
        return ANY_TYPE
    if name in context.types:
        return context.types[name]
    other = elements.get(name)
    if other is None:
        context.warn(item, f"{named(item)} is of the type {name!r}, which is not defined", "values are taken as they are")
        return ANY_TYPE
    if len(within) > MAX_DEPTH:
        context.problem(item, f"{named(item)} nests types too deeply", f"at most {MAX_DEPTH} levels")
        return ANY_TYPE
    found = context.types[name] = _item(other, elements, context, (*within, name))
    return found
