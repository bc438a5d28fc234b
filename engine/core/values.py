"""Variables and their types. A value keeps its kind from the form to the condition to the API.

type        JSON value stored           Python value in expressions
string      string                      str
integer     number without a fraction   int
double      number                      Decimal, made from the shortest text of the float
boolean     true, false                 bool
date        "2026-11-29"                datetime.date
datetime    "2026-11-29T10:00:00+00:00" datetime.datetime, always with a zone
json        object or list              dict, list (numbers inside as above)
null        null                        None
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

TYPES = ("string", "integer", "double", "boolean", "date", "datetime", "json", "null")


@dataclass(frozen=True, slots=True)
class Variable:
    """One typed value, as stored: `value` is plain JSON."""

    type: str
    value: Any


def typed(value: Any) -> Variable:
    """A plain Python or JSON value with the type that it shows. Raises TypeError for what JSON cannot carry."""
    match value:
        case Variable():
            return value
        case None:
            return Variable("null", None)
        case bool():
            return Variable("boolean", value)
        case str():
            return Variable("string", value)
        case int():
            return Variable("integer", value)
        case float():
            return Variable("double", value)
        case Decimal():
            return Variable("double", float(value))
        case datetime():
            return Variable("datetime", value.isoformat())
        case date():
            return Variable("date", value.isoformat())
        case dict() | list() | tuple():
            return Variable("json", _plain(value))
    raise TypeError(f"expected a JSON value, found {type(value).__name__}")


def native(variable: Variable) -> Any:
    """The value as expressions and handlers see it."""
    match variable.type:
        case "double":
            return Decimal(repr(float(variable.value)))
        case "date":
            return date.fromisoformat(variable.value)
        case "datetime":
            return datetime.fromisoformat(variable.value)
        case "json":
            return _inside(variable.value)
    return variable.value


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case Variable():
            return value.value
        case None | bool() | str() | int() | float():
            return value
    return typed(value).value


def _inside(value: Any) -> Any:
    match value:
        case dict():
            return {key: _inside(item) for key, item in value.items()}
        case list():
            return [_inside(item) for item in value]
        case float():
            return Decimal(repr(value))
    return value
