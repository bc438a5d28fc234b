"""camunda:formData: the fields of a start form or of a user task."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from decimal import Decimal, InvalidOperation

from engine.bpmn import form_properties, names
from engine.bpmn.context import MAX_NAME, Context, named
from engine.bpmn.definition import FormField
from engine.bpmn.names import CAMUNDA_LIKE, Element
from engine.bpmn.noted import note

TYPES = ("string", "long", "double", "boolean", "date", "enum")
CONSTRAINTS = ("required", "readonly", "min", "max", "minlength", "maxlength")
_TAGS = {
    what: frozenset(f"{{{space}}}{what}" for space in (names.BATON, *CAMUNDA_LIKE))
    for what in ("formField", "value", "validation", "constraint")
}
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def fields(element: Element, context: Context) -> tuple[FormField, ...]:
    """The fields in document order. A form kept elsewhere: `form_references.py`."""
    data = context.extension(element, "formData")
    if data is None:
        return form_properties.fields(element, context)
    found: dict[str, FormField] = {}
    for child in names.elements(data):
        note(child)
        if child.tag not in _TAGS["formField"]:
            context.warn(child, f"the form of {named(element)} holds a {names.shown(str(child.tag))}, which is not read", "a formField")
            continue
        field = _field(child, element, context)
        if field is None:
            continue
        if field.id in found:
            context.problem(
                child, f"the form of {named(element)} has two fields {field.id!r}", "each id once: it is the name of a variable"
            )
        found[field.id] = field
    return tuple(found.values())


def _field(child: Element, element: Element, context: Context) -> FormField | None:
    key = (child.get("id") or "").strip()
    if not key or len(key) > MAX_NAME:
        context.problem(child, f"a field in the form of {named(element)} has no id", f"an id of 1 to {MAX_NAME} characters")
        return None
    where = f"the field {key!r} of {named(element)}"
    kind = (child.get("type") or "string").strip()
    if kind not in TYPES:
        context.problem(child, f"{where} has the type {kind!r}", f"one of {', '.join(TYPES)}")
        return None
    values = tuple(_values(child, where, context))
    if kind == "enum" and not values:
        context.problem(child, f"{where} is an enum without values", "one value or more, each with an id")
    rules = _rules(child, where, context)
    default = context.expression(child, child.get("defaultValue"), f"the default of {where}")
    if default is not None and default.is_constant:
        _check_default(child, str(default.evaluate({})), kind, values, where, context)
    return FormField(
        id=key,
        label=(child.get("label") or key).strip(),
        type=kind,
        default=default,
        values=values,
        required=names.flag(rules.get("required"), default="required" in rules),
        readonly=names.flag(rules.get("readonly"), default="readonly" in rules),
        minimum=_number_rule(child, rules, "min", kind, where, context),
        maximum=_number_rule(child, rules, "max", kind, where, context),
        min_length=_length_rule(child, rules, "minlength", where, context),
        max_length=_length_rule(child, rules, "maxlength", where, context),
        date_pattern=child.get("datePattern"),
    )


def _values(child: Element, where: str, context: Context) -> list[tuple[str, str]]:
    found: dict[str, str] = {}
    for value in names.children(child, _TAGS["value"]):
        key = value.get("id")
        if not key or key in found:
            context.problem(value, f"{where} has a value {'twice' if key else 'without id'}", "an id for each value, each once")
            continue
        found[key] = value.get("name") or key
    return list(found.items())


def _rules(child: Element, where: str, context: Context) -> dict[str, str]:
    rules: dict[str, str] = {}
    for part in names.children(child, _TAGS["validation"]):
        for constraint in names.elements(part):
            name, config = constraint.get("name") or "", (constraint.get("config") or "").strip()
            if constraint.tag in _TAGS["constraint"] and name in CONSTRAINTS:
                rules[name] = config
            else:
                context.warn(constraint, f"{where} has the constraint {name!r}, which is not checked", f"one of {', '.join(CONSTRAINTS)}")
    return rules


def _number_rule(child: Element, rules: Mapping[str, str], name: str, kind: str, where: str, context: Context) -> str | None:
    text = rules.get(name)
    if text is None:
        return None
    if kind not in ("date", "long", "double"):
        why = "a field of type long, double or date; for the length of a text minlength and maxlength"
        context.warn(child, f"{where} has the constraint {name} {text!r} on the type {kind}, which is not checked", why)
        return None
    good = _is_date(text) if kind == "date" else _number(text) is not None
    if not good:
        wanted = "a date such as 2026-11-29" if kind == "date" else "a number"
        context.problem(child, f"{where} has the constraint {name} {text!r} on the type {kind}", wanted)
        return None
    return text


def _length_rule(child: Element, rules: Mapping[str, str], name: str, where: str, context: Context) -> int | None:
    text = rules.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 9):
        context.problem(child, f"{where} has the constraint {name} {text!r}", "a whole number")
        return None
    return int(text)


def _check_default(child: Element, text: str, kind: str, values: tuple[tuple[str, str], ...], where: str, context: Context) -> None:
    """A default in plain text must be a value of the field's type, or people would meet it as an error of theirs."""
    match kind:
        case "long":
            good, wanted = (number := _number(text)) is not None and number == number.to_integral_value(), "a whole number"
        case "double":
            good, wanted = _number(text) is not None, "a number such as 12.5"
        case "boolean":
            good, wanted = text in ("true", "false"), "true or false"
        case "enum":
            good, wanted = text in dict(values), f"one of {', '.join(key for key, _ in values)}"
        case "date":
            # A pattern says how the author wrote it; without one it is ISO 8601.
            good, wanted = child.get("datePattern") is not None or _is_date(text), "a date such as 2026-11-29"
        case _:
            return
    if not good:
        context.problem(child, f"{where} has the default {text!r} for the type {kind}", wanted)


def _number(text: str) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() and abs(number.adjusted()) < 308 else None


def _is_date(text: str) -> bool:
    try:
        return _ISO_DATE.fullmatch(text) is not None and bool(date.fromisoformat(text))
    except ValueError:
        return False
