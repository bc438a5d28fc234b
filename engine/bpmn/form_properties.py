"""camunda:formProperty: the fields of a form as Activiti first wrote them. One that cannot be a field here is not read, and so reported."""

from __future__ import annotations

from engine.bpmn import names
from engine.bpmn.context import MAX_NAME, Context, named
from engine.bpmn.definition import FormField
from engine.bpmn.names import BATON, CAMUNDA_LIKE, Element
from engine.bpmn.noted import note

TYPES = ("string", "long", "double", "boolean", "date", "enum")
VALUES = frozenset(f"{{{space}}}value" for space in (BATON, *CAMUNDA_LIKE))
TAGS = frozenset(f"{{{space}}}formProperty" for space in (BATON, *CAMUNDA_LIKE))


def fields(element: Element, context: Context) -> tuple[FormField, ...]:
    """In document order. Each is the variable that it names, else that of its id."""
    found: dict[str, FormField] = {}
    for child in names.extensions(element):
        if child.tag in TAGS and (key := _key(child)) and key not in found and _kind(child) in TYPES:
            note(child)
            found[key] = _field(child, key, element, context)
    return tuple(found.values())


def _key(child: Element) -> str | None:
    key = str(child.attrib.get("variable") or child.attrib.get("id") or "").strip()
    return key if 0 < len(key) <= MAX_NAME else None


def _kind(child: Element) -> str:
    kind = str(child.attrib.get("type") or "string").strip()
    return kind if kind != "enum" or any(each.tag in VALUES and each.attrib.get("id") for each in child) else ""


def _field(child: Element, key: str, element: Element, context: Context) -> FormField:
    child.get("variable")
    values = {
        str(each.get("id")): each.get("name") or str(each.get("id")) for each in names.children(child, VALUES) if each.attrib.get("id")
    }
    return FormField(
        id=key,
        label=(child.get("name") or child.get("id") or key).strip(),
        type=(child.get("type") or "string").strip(),
        default=context.expression(child, child.get("default"), f"the default of the field {key!r} of {named(element)}"),
        values=tuple(values.items()),
        required=names.flag(child.get("required"), default=False),
        readonly=not names.flag(child.get("writable"), default=True),
        date_pattern=child.get("datePattern"),
    )
