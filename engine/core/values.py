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

import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from math import isfinite
from typing import Any

from engine.frozen import dataclass

# Limits of what a form, a worker or the API may send in one command. Refused by name before anything runs (S34).
MAX_NAME = 255  # characters
MAX_VARIABLES = 1_000
MAX_BYTES = 4_000_000  # of all values of one command, as JSON in UTF-8
MAX_DEPTH = 50  # of objects and lists in one another
MAX_MADE_DEPTH = 150  # of what an expression makes: more than FEEL may, less than JSON can be written with
MAX_INTEGER = 2**63 - 1

# A dotted or hyphenated name is one name, not a path; expressions reach it in backticks: `dinner.meal` (S36).
_NAME = re.compile(r"[^\x00-\x1f\x7f`]+")

TYPES = ("string", "integer", "double", "boolean", "date", "datetime", "json", "null")


@dataclass(frozen=True, slots=True)
class Variable:
    """One typed value, as stored: `value` is plain JSON."""

    type: str
    value: Any


class Later(Variable):
    """A large variable that was left in the database. Whoever asks for its value is told to read it."""

    __slots__ = ()

    def __init__(self, type: str) -> None:
        object.__setattr__(self, "type", type)

    def __repr__(self) -> str:
        return f"Later({self.type!r})"

    @property
    def value(self) -> Any:
        raise NeedsVariables(f"a variable of type {self.type} was left in the database")


class NeedsVariables(Exception):
    """The value of a variable is needed that was not read with the others. The command reads all of them and asks again."""


def typed(value: Any) -> Variable:
    """A plain Python or JSON value with the type that it shows. Raises TypeError for what cannot be stored: no JSON, a number too large."""
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
            return Variable("integer", _within_64_bits(value))
        case float() | Decimal():
            return Variable("double", _finite(value))
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


def accept(values: Mapping[str, Any]) -> tuple[dict[str, Variable], list[tuple[str, str]]]:
    """Values from outside as variables, and what is wrong with them: (name, expected and found). All problems at once."""
    accepted: dict[str, Variable] = {}
    problems: list[tuple[str, str]] = []
    if len(values) > MAX_VARIABLES:
        problems.append(("", f"expected at most {MAX_VARIABLES:,} variables, found {len(values):,}"))
    size = 0
    for name, value in values.items():
        wrong = _wrong_name(name)
        if wrong is None:
            try:
                size += sum(_sizes(value.value if isinstance(value, Variable) else value, 0))
                accepted[name] = typed(value)
            except (TypeError, ValueError) as error:
                wrong = str(error)
        if wrong is not None:
            problems.append((str(name), wrong))
    if size > MAX_BYTES:
        problems.append(("", f"expected at most {MAX_BYTES:,} bytes in all values together, found {size:,}"))
    return accepted, problems


def _wrong_name(name: Any) -> str | None:
    if not isinstance(name, str) or not name.strip():
        return "expected a name, found none"
    if len(name) > MAX_NAME:
        return f"expected a name of at most {MAX_NAME} characters, found {len(name)}"
    if not _NAME.fullmatch(name):
        return "expected a name without control characters and backticks"
    return None


def _sizes(value: Any, depth: int) -> Iterator[int]:
    """Bytes of a value and of what lies in it. Raises ValueError for what cannot be stored."""
    if depth > MAX_DEPTH:
        raise ValueError(f"expected at most {MAX_DEPTH} levels of objects and lists, found more")
    match value:
        case str():
            yield _text_size(value)
        case bool() | None:
            yield 5
        case int():
            if abs(value) > MAX_INTEGER:
                raise ValueError(f"expected a whole number within 64 bits, found one of {value.bit_length()} bits")
            yield 20
        case float() | Decimal():
            if not isfinite(value):
                raise ValueError(f"expected a finite number, found {value}")
            yield 20
        case Mapping():
            for key, item in value.items():
                yield _text_size(str(key)) + 2
                yield from _sizes(item, depth + 1)
        case list() | tuple():
            yield 2 + len(value)
            for item in value:
                yield from _sizes(item, depth + 1)
        case _:
            yield 30


def _text_size(text: str) -> int:
    if "\x00" in text:
        raise ValueError("expected text without the character NUL, found one")
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        raise ValueError("expected text in Unicode, found half of a surrogate pair") from None


def _plain(value: Any, depth: int = 1) -> Any:
    if depth > MAX_MADE_DEPTH:
        raise TypeError(f"expected at most {MAX_MADE_DEPTH} levels of objects and lists, found more")
    match value:
        case dict():
            return {str(key): _plain(item, depth + 1) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item, depth + 1) for item in value]
        case Variable():
            return value.value
        case None | bool() | str():
            return value
        case int():
            return _within_64_bits(value)
    return typed(value).value


def _finite(value: float | Decimal) -> float:
    """JSON has no infinity: it would be stored as null."""
    number = float(value)
    if not isfinite(number):
        raise TypeError(f"expected a number that a double can carry, found {value}")
    return number


def _within_64_bits(value: int) -> int:
    if -MAX_INTEGER <= value <= MAX_INTEGER:
        return value
    raise TypeError(f"expected a whole number within 64 bits, found one of {value.bit_length()} bits")


def _inside(value: Any) -> Any:
    match value:
        case dict():
            return {key: _inside(item) for key, item in value.items()}
        case list():
            return [_inside(item) for item in value]
        case float():
            return Decimal(repr(value))
    return value
