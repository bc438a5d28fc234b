"""How a built-in function is written down: its names, its ways of being called, and what each argument must be.

A way is a text such as "string: string, start position: whole, length?: whole". `?` means that it may be left out, `…` behind the
last one that it repeats. An argument that is not of its kind is made one where DMN does so (a list of one item and that item,
10.3.2.9.4); else the function has no result, which is null, and the scope keeps a note.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal, DecimalException, InvalidOperation, Overflow
from typing import Any

from engine.expressions import limits
from engine.expressions.errors import ExpressionError, LimitExceeded
from engine.expressions.feel.function import Builtin, Function, no_result
from engine.expressions.feel.ranges import Range
from engine.expressions.feel.temporal import MonthsDuration, TemporalError
from engine.expressions.values import NUMBERS, Scope

Written = Callable[..., Any]
WRONG = object()
_LARGEST = 10**limits.DIGITS


class NoResult(ExpressionError):
    """The arguments of a function are of the right kinds, and it has no result for them all the same."""


class Group(dict[str, Builtin]):
    """The functions of one module, by name."""

    def function(self, name: str, *ways: str) -> Callable[[Written], Written]:
        """The decorator for a function that takes the scope and the arguments of any of the ways."""
        readings = [reading for way in ways for reading in _readings(way)]
        variadic = any(way.endswith("…") for way in ways)

        def define(written: Written) -> Written:
            self[name] = Builtin(name, tuple(reading.names for reading in readings), variadic, _checked(name, ways, readings, written))
            return written

        return define


@dataclass(frozen=True, slots=True)
class _Reading:
    """One way to call a function: the names of its arguments, and what makes each of its kind."""

    names: tuple[str, ...]
    kinds: tuple[tuple[str, ...], ...]
    repeats: bool
    exact: tuple[Any, ...] | None  # types of arguments that need no making, where every kind has one

    def accept(self, arguments: Sequence[Any]) -> Sequence[Any] | None:
        if self.exact is not None and tuple(map(type, arguments)) == self.exact:
            return arguments
        missing = len(arguments) - len(self.kinds)
        if missing and not (self.repeats and missing >= -1):
            return None
        kinds = self.kinds if not self.repeats else (*self.kinds[:-1], *[self.kinds[-1]] * (missing + 1))
        found = []
        for kind, argument in zip(kinds, arguments, strict=True):
            value = _as_kind(kind, argument)
            if value is WRONG:
                return None
            found.append(value)
        return found


def _readings(way: str) -> list[_Reading]:
    repeats = way.endswith("…")
    pairs = [tuple(part.strip().split(": ")) for part in way.rstrip("…").split(",")] if way else []
    needed = sum(not name.endswith("?") for name, _ in pairs)
    names, kinds = tuple(name.rstrip("?") for name, _ in pairs), tuple(tuple(kind.split("|")) for _, kind in pairs)
    return [_Reading(names[:count], kinds[:count], repeats, _exact(kinds[:count])) for count in range(needed, len(pairs) + 1)]


def _exact(kinds: Sequence[tuple[str, ...]]) -> tuple[Any, ...] | None:
    only = [_KINDS.get(each[0], (None, None)) for each in kinds if len(each) == 1]
    plain = tuple(types for types, make in only if isinstance(types, type) and make is _same)
    return plain if len(plain) == len(kinds) else None


def _checked(name: str, ways: Sequence[str], readings: Sequence[_Reading], written: Written) -> Written:
    def call(scope: Scope, *arguments: Any) -> Any:
        steps = 1
        for argument in arguments:
            if type(argument) is list or type(argument) is tuple:  # which may be copied
                steps += len(argument) // 64
        scope.spend(steps)
        for reading in readings:
            accepted = reading.accept(arguments)
            if accepted is None:
                continue
            try:
                return written(scope, *accepted)
            except (NoResult, TemporalError) as error:
                return no_result(scope, f"{name}: {error}")
            except Overflow as error:
                raise LimitExceeded(f"expected a result of {name} with an exponent up to {limits.EXPONENT}, found a larger one") from error
            except DecimalException:
                return no_result(scope, f"{name}: expected a result of at most {limits.DIGITS} digits, found more")
        found = ", ".join(kind_of(argument) for argument in arguments) or "nothing"
        return no_result(scope, f"{name}: expected {' or '.join(ways)}, found {found}")

    return call


# ---- kinds


def kind_of(value: Any) -> str:
    """What a note calls a value."""
    if value is None:
        return "null"
    return next((name for name, (types, _) in _KINDS.items() if isinstance(value, types) and not _disguised(value, name)), "another value")


def _as_kind(kinds: tuple[str, ...], value: Any) -> Any:
    """The value as the first of the kinds that it is, or WRONG."""
    for each in kinds:
        found = _as_one(each, value)
        if found is not WRONG:
            return found
    return WRONG


def _as_one(kind: str, value: Any) -> Any:
    if kind == "any":
        return value
    if kind == "null":
        return value if value is None else WRONG
    types, make = _KINDS[kind]
    if isinstance(value, types) and not _disguised(value, kind):
        return make(value)
    if kind == "list":
        return WRONG if value is None else [value]
    if isinstance(value, (list, tuple)) and len(value) == 1 and not isinstance(value[0], (list, tuple)):
        return _as_one(kind, value[0])
    return WRONG


def _disguised(value: Any, kind: str) -> bool:
    """For Python a boolean is a number, and a date and time is a date."""
    return (isinstance(value, bool) and kind != "boolean") or (isinstance(value, datetime) and kind == "date")


def number(value: int | Decimal | float) -> Decimal | Any:
    """The number with the digits that FEEL has, or WRONG for none. Raises LimitExceeded for one that it cannot hold."""
    if isinstance(value, int):
        if value.bit_length() > limits.EXPONENT * 4:
            raise LimitExceeded(f"expected a number with an exponent up to {limits.EXPONENT}, found {value.bit_length()} bits")
        return Decimal(value) if abs(value) < _LARGEST else NUMBERS.create_decimal(value)
    found = Decimal(repr(value)) if isinstance(value, float) else value
    if not found.is_finite():
        return WRONG
    if found and abs(found.adjusted()) > 2 * limits.EXPONENT:
        raise LimitExceeded(f"expected a number with an exponent up to {limits.EXPONENT}, found {found:.6E}")
    return found


def _whole(value: int | Decimal | float) -> Any:
    found = number(value)
    if found is WRONG:
        return WRONG
    try:
        whole = found.to_integral_exact(context=NUMBERS)
    except InvalidOperation:
        return WRONG
    return int(whole) if whole == found and whole.adjusted() <= limits.DIGITS else WRONG


def _same(value: Any) -> Any:
    return value


_KINDS: Mapping[str, tuple[type | tuple[type, ...], Callable[[Any], Any]]] = {
    "boolean": (bool, _same),
    "number": ((int, Decimal, float), number),
    "whole": ((int, Decimal, float), _whole),
    "string": (str, _same),
    "date and time": (datetime, _same),
    "date": (date, _same),
    "time": (time, _same),
    "days": (timedelta, _same),
    "months": (MonthsDuration, _same),
    "list": ((list, tuple), list),
    "context": (Mapping, _same),
    "range": (Range, _same),
    "function": (Function, _same),
}


# ---- lists of arguments


def items_of(arguments: Sequence[Any]) -> list[Any]:
    """The items that a function over a list or over its arguments works on: `sum([1, 2])` is `sum(1, 2)`."""
    if len(arguments) != 1:
        return list(arguments)
    (only,) = arguments
    if only is None:
        raise NoResult("expected a list, found null")
    return list(only) if isinstance(only, (list, tuple)) else [only]


def made(scope: Scope, items: list[Any]) -> list[Any]:
    """A list that a function makes, paid for."""
    scope.spend(len(items))
    return items
