"""Types of FEEL as `instance of` and parameters name them (DMN 1.3, 10.3.1.2 rule 58 and 10.3.2.9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from engine.expressions import limits
from engine.expressions.errors import LimitExceeded
from engine.expressions.feel.function import Function
from engine.expressions.feel.ranges import Range
from engine.expressions.feel.temporal import MonthsDuration
from engine.expressions.tree import Type
from engine.expressions.values import Scope

SIMPLE = {
    "Any": "Any",
    "Null": "Null",
    "number": "number",
    "string": "string",
    "boolean": "boolean",
    "date": "date",
    "time": "time",
    "date and time": "date and time",
    "dateTime": "date and time",
    "days and time duration": "days and time duration",
    "day-time duration": "days and time duration",
    "dayTimeDuration": "days and time duration",
    "years and months duration": "years and months duration",
    "year-month duration": "years and months duration",
    "yearMonthDuration": "years and months duration",
}
COMPOSED = ("list", "range", "context", "function")


def kind(value: Any) -> str:
    """The name of the type that a value has. What no expression can hold is told by its Python name."""
    match value:
        case None:
            return "Null"
        case bool():
            return "boolean"
        case int() | Decimal() | float():
            return "number"
        case str():
            return "string"
        case datetime():
            return "date and time"
        case date():
            return "date"
        case time():
            return "time"
        case timedelta():
            return "days and time duration"
        case MonthsDuration():
            return "years and months duration"
        case list() | tuple():
            return "list"
        case Mapping():
            return "context"
        case Range():
            return "range"
        case Function():
            return "function"
    return type(value).__name__


def is_instance(value: Any, wanted: Type, scope: Scope, depth: int = 1) -> bool:
    """Whether a value conforms to a type. Null conforms to Null alone."""
    scope.spend(1)
    if depth > limits.VALUE_DEPTH:
        raise LimitExceeded(f"expected values nested at most {limits.VALUE_DEPTH} deep")
    if value is None:
        return wanted.name == "Null"
    if wanted.name == "Any":
        return True
    if kind(value) != wanted.name:
        return False
    parts = wanted.parts
    match value:
        case list() | tuple() if parts:
            return _all(value, parts[0][1], scope, depth)
        case Mapping() if parts:
            return all(name in value and is_instance(value[name], part, scope, depth + 1) for name, part in parts)
        case Range(low, high) if parts:
            return _all([end for end in (low, high) if end is not None], parts[0][1], scope, depth)
    return True


def _all(items: Sequence[Any], wanted: Type, scope: Scope, depth: int) -> bool:
    return all(is_instance(item, wanted, scope, depth + 1) or (item is None and wanted.name == "Any") for item in items)
