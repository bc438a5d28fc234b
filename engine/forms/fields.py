"""The components of form-js that take a value, as fields of ours."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

import re2

from engine.bpmn.context import MAX_NAME
from engine.bpmn.definition import FormField
from engine.expressions import constant
from engine.forms.component import Component

FieldReader = Callable[[Component, FormField], FormField]
EMAIL, PHONE = r"^[^@\s]+@[^@\s.]+(\.[^@\s.]+)+$", r"^\+?[0-9()/. -]{3,}$"
MAX_VALUES = 1_000
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def read_field(component: Component) -> FormField | None:
    """The field, if it has a name of its own. Whatever is wrong with it is a problem of the form."""
    key = component.text("key")
    if not key or len(key) > MAX_NAME:
        component.problem("has no key", f"a key of 1 to {MAX_NAME} characters: it is the name of a variable")
        return None
    if re.search(r"[.\[\]]", key):
        component.problem(f"has the key {key!r}, which is a path", "the name of a variable, without dots and brackets")
        return None
    if key in component.reading.keys:
        component.problem(f"has the key {key!r}, as another component has", "each key once: it is the name of a variable")
        return None
    component.reading.keys.add(key)
    readonly = component.flag("readonly") | component.flag("disabled")
    label = component.text("label") or component.text("dateLabel") or key
    blank = FormField(key, label, "string", readonly=readonly, description=component.text("description"))
    rules = component.part("validate")
    required = rules.flag("required")
    found = _READERS[component.kind](component, replace(blank, required=required))
    found = _rules(rules, found)
    rules.report()
    return found


def _textfield(component: Component, field: FormField) -> FormField:
    return _with_default(component, replace(field, lines=component.kind == "textarea"), _a_text)


def _number(component: Component, field: FormField) -> FormField:
    if component.flag("serializeToString"):
        component.problem("makes its number a text (serializeToString)", "a number")
    if component.get("increment") is not None:
        component.warn("has the property 'increment', which is not checked", "validate.min and validate.max")
    decimals = component.whole("decimalDigits")
    kind = "long" if decimals == 0 else "double"
    return _with_default(component, replace(field, type=kind, decimals=decimals or None), _a_whole if decimals == 0 else _a_number)


def _checkbox(component: Component, field: FormField) -> FormField:
    """One that must be ticked, where it is required: as form-js has it."""
    return _with_default(component, replace(field, type="boolean", ticked=field.required), _a_flag)


def _choice(component: Component, field: FormField) -> FormField:
    for name in ("valuesKey", "valuesExpression"):
        if component.get(name) is not None:
            component.problem(f"takes its values from elsewhere ({name})", "values that stand in the form")
            return field
    values = _values(component)
    if component.flag("searchable"):
        component.warn("has the property 'searchable', which is not done", "a list without a search")
    return _with_default(component, replace(field, type="enum", values=tuple(values.items())), _one_of(values))


def _values(component: Component) -> dict[str, str]:
    found: dict[str, str] = {}
    given = component.get("values")
    if not isinstance(given, list) or not given or len(given) > MAX_VALUES:
        component.problem("has no values", f"1 to {MAX_VALUES:,} values, each with a label and a value")
        return found
    for each in given:
        value, label = (each.get("value"), each.get("label")) if isinstance(each, dict) else (None, None)
        if not isinstance(value, str) or not value.strip() or value in found or not isinstance(label, str | None):
            component.problem(f"has the value {str(value)[:80]!r}", "texts, each once, each with a label that is text")
            continue
        found[value] = (label or value).strip()
        for name in sorted(each.keys() - {"value", "label"}):
            component.warn(f"has the property {f'values.{name}'[:80]!r}, which is not read", "label and value")
    return found


def _datetime(component: Component, field: FormField) -> FormField:
    subtype = component.get("subtype") or "date"
    if subtype != "date":
        component.problem(f"has the subtype {str(subtype)[:80]!r}", "date")
    if component.flag("disallowPassedDates"):
        component.problem("allows no days of the past (disallowPassedDates)", "any day, or a gateway that looks at it")
    for name in ("timeLabel", "use24h", "timeInterval", "timeSerializingFormat"):
        component.get(name)  # they say something to the subtypes with a time alone
    return _with_default(component, replace(field, type="date"), _a_day)


_READERS: Mapping[str, FieldReader] = {
    "textfield": _textfield,
    "textarea": _textfield,
    "number": _number,
    "checkbox": _checkbox,
    "select": _choice,
    "radio": _choice,
    "datetime": _datetime,
}
TYPES = tuple(_READERS)


# ---- what may be written


def _rules(rules: Component, field: FormField) -> FormField:
    match field.type:
        case "string":
            field = replace(field, min_length=rules.whole("minLength"), max_length=rules.whole("maxLength"), pattern=_pattern(rules))
        case "long" | "double":
            low, high = rules.number("min"), rules.number("max")
            field = replace(field, minimum=None if low is None else f"{low:f}", maximum=None if high is None else f"{high:f}")
    return field


def _pattern(rules: Component) -> str | None:
    named = {"email": EMAIL, "phone": PHONE, "custom": None, None: None}
    kind = rules.get("validationType")
    if kind not in named:
        rules.problem(f"has the validationType {str(kind)[:80]!r}", "email, phone or custom")
        return None
    pattern = rules.get("pattern")
    if named[kind] is not None or pattern is None or pattern == "":
        return named[kind]
    try:
        re2.compile(pattern if isinstance(pattern, str) else None)
    except (re2.error, TypeError):
        rules.problem(f"has the pattern {str(pattern)[:80]!r}", "a regular expression of RE2: no look-around, no references back")
        return None
    return str(pattern)


# ---- what stands in it at first


def _with_default(component: Component, field: FormField, reads: Callable[[Any], str | None]) -> FormField:
    value = component.get("defaultValue")
    if value is None or value == "":
        return field
    text = reads(value)
    if text is None:
        component.problem(f"has the defaultValue {str(value)[:80]!r} for the type {field.type}", "a value of its type")
        return field
    return replace(field, default=constant(text))


def _a_text(value: Any) -> str | None:
    return value if isinstance(value, str) and not value.lstrip().startswith("=") else None


def _a_number(value: Any) -> str | None:
    text = str(value).strip()
    good = isinstance(value, int | float | str) and not isinstance(value, bool) and re.fullmatch(r"-?\d{1,18}(\.\d{1,18})?", text, re.ASCII)
    return text if good else None


def _a_whole(value: Any) -> str | None:
    text = _a_number(value)
    return None if text is None or Decimal(text) != int(Decimal(text)) else str(int(Decimal(text)))


def _a_flag(value: Any) -> str | None:
    return {True: "true", False: "false"}.get(value) if isinstance(value, bool) else None


def _a_day(value: Any) -> str | None:
    try:
        return value if isinstance(value, str) and _DATE.fullmatch(value) and date.fromisoformat(value) else None
    except ValueError:
        return None


def _one_of(values: Mapping[str, str]) -> Callable[[Any], str | None]:
    return lambda value: value if isinstance(value, str) and value in values else None
