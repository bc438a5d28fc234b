"""`camunda:field` and its like: what a class, or a built-in task such as mail or http, is given (field injection). Here it is inputs."""

from __future__ import annotations

from engine.bpmn import names, stand_ins
from engine.bpmn.context import MAX_NAME, Context, named
from engine.bpmn.mappings import Mappings
from engine.bpmn.names import CAMUNDA_LIKE, Element
from engine.expressions import Expression, constant

TEXT, EXPRESSION = ("stringValue", "string"), ("expression", "expression")  # as an attribute, as an element


def fields(element: Element, context: Context) -> Mappings:
    """The fields of a task, each as an input of its name."""
    found: dict[str, Expression] = {}
    for child in context.extensions(element, "field", *CAMUNDA_LIKE):
        name = (child.get("name") or "").strip()
        if not name or len(name) > MAX_NAME or name in found:
            context.problem(child, f"{named(element)} has a field {name[:80]!r}", f"a name of its own, of 1 to {MAX_NAME} characters")
            continue
        text, expression = _given(child, TEXT), _given(child, EXPRESSION)
        if expression is None:
            found[name] = constant(text)
            continue
        where, instead = f"the field {name!r} of {named(element)}", stand_ins.name_of(element, name)
        if (value := context.expression(child, expression, where, instead=instead)) is not None:
            found[name] = value
    return tuple(found.items())


def _given(field: Element, ways: tuple[str, str]) -> str | None:
    attribute, tag = ways
    if (text := field.get(attribute)) is not None:
        return text
    inside = next(names.children(field, {f"{{{space}}}{tag}" for space in CAMUNDA_LIKE}), None)
    return None if inside is None else names.text(inside).strip()
