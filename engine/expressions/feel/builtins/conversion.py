"""Functions that make a value of another kind (DMN 1.3, 10.3.4.1, table 67)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from engine.expressions import limits
from engine.expressions.errors import LimitExceeded
from engine.expressions.feel import temporal, timeline
from engine.expressions.feel.builtins.define import Group, NoResult
from engine.expressions.feel.ranges import Range
from engine.expressions.feel.temporal import MonthsDuration
from engine.expressions.values import NUMBERS, Scope, bounded, text

CONVERSION = Group()
MAX_NUMBER = 1_000  # characters of a number in a text
_NUMBER = re.compile(r"-?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,4})?", re.ASCII)
_PLAIN_KEY = re.compile(r"[^\W\d]\w*(?: \w+)*")
_GROUPING, _POINTS = (" ", ",", "."), (".", ",")


@CONVERSION.function("date", "from: string|date|date and time", "year: whole, month: whole, day: whole")
def _date(scope: Scope, first: Any, month: int = 0, day: int = 0) -> date:
    match first:
        case str():
            return temporal.parse_date(first)
        case datetime():
            return first.date()
        case date():
            return first
    return temporal.make_date(first, month, day)


_PARTS = "year: whole, month: whole, day: whole, hour: whole, minute: whole, second: number"


@CONVERSION.function(
    "date and time",
    "from: string|date and time|date",
    "date: date|date and time, time: time",
    "date: date|date and time, timezone: string",
    f"{_PARTS}, offset?: days|null",
    f"{_PARTS}, timezone: string",
)
def _date_and_time(scope: Scope, first: Any, second: Any = None, *parts: Any) -> datetime:
    if parts:
        day, hour, minute, *rest = parts
        return temporal.make_date_time(temporal.make_date(first, second, day), _time_of(scope, hour, minute, *rest))
    if isinstance(first, str):
        return temporal.parse_date_time(first)
    match second:
        case time():
            return temporal.make_date_time(first.date() if isinstance(first, datetime) else first, second)
        case str() if isinstance(first, datetime) and first.tzinfo is not None:
            return temporal.in_zone(first, temporal.named_zone(second))
        case str():
            at = first.time() if isinstance(first, datetime) else time()
            return temporal.make_date_time(first, at.replace(tzinfo=temporal.named_zone(second)))
    return first if isinstance(first, datetime) else datetime.combine(first, time())


@CONVERSION.function("time", "from: string|time|date and time|date", "hour: whole, minute: whole, second: number, offset?: days|null")
def _time(scope: Scope, first: Any, minute: int = 0, second: Decimal = Decimal(0), offset: timedelta | None = None) -> time:
    match first:
        case str():
            return temporal.parse_time(first)
        case datetime():
            return first.timetz()
        case date():
            return time(tzinfo=UTC)
        case time():
            return first
    return _time_of(scope, first, minute, second, offset)


def _time_of(scope: Scope, hour: int, minute: int, second: Decimal, zone: timedelta | str | None = None) -> time:
    if not 0 <= second < 60:
        raise NoResult(f"expected seconds from 0 to 59.999999, found {text(second, scope)}")
    whole = int(second)
    where = temporal.named_zone(zone) if isinstance(zone, str) else timeline.offset_zone(zone)
    return temporal.make_time(hour, minute, whole, int((second - whole) * 1_000_000), where)


@CONVERSION.function("number", "from: string|number, grouping separator?: string|null, decimal separator?: string|null")
def _number(scope: Scope, value: str | Decimal, grouping: str | None = None, point: str | None = None) -> Decimal:
    if isinstance(value, Decimal):
        return value
    if grouping is not None and grouping not in _GROUPING:
        raise NoResult(f"expected a space, a comma or a dot between groups of digits, found {grouping[:20]!r}")
    if point is not None and point not in _POINTS:
        raise NoResult(f"expected a dot or a comma before decimals, found {point[:20]!r}")
    if grouping is not None and grouping == point:
        raise NoResult(f"expected two different separators, found {grouping!r} twice")
    whole, decimal, fraction = value.partition(point or ".")
    plain = (whole if grouping is None else whole.replace(grouping, "")) + ("." if decimal else "") + fraction
    if len(value) > MAX_NUMBER or not _NUMBER.fullmatch(plain):
        raise NoResult(f"expected the text of a number, found {value[:40]!r}")
    return NUMBERS.create_decimal(plain)


@CONVERSION.function("string", "from: any")
def _string(scope: Scope, value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return bounded(shown(value, scope, 1), scope)


def shown(value: Any, scope: Scope, depth: int) -> str:
    """A value within a text, as FEEL would write it. What it costs bounds its length."""
    scope.spend(1)
    if depth > limits.VALUE_DEPTH:
        raise LimitExceeded(f"expected values nested at most {limits.VALUE_DEPTH} deep")
    match value:
        case None:
            return "null"
        case str():
            scope.spend(len(value) // 64)
            return _quoted(value)
        case bool() | int() | Decimal() | float():
            return text(value, scope)
        case date() | time() | timedelta() | MonthsDuration():
            return temporal.show(value)
        case list() | tuple():
            return f"[{', '.join(shown(item, scope, depth + 1) for item in value)}]"
        case Mapping():
            return "{" + ", ".join(f"{_key(str(key))}: {shown(item, scope, depth + 1)}" for key, item in value.items()) + "}"
        case Range(low, high, low_closed, high_closed):
            ends = [shown(end, scope, depth + 1) if end is not None else "" for end in (low, high)]
            return f"{'[' if low_closed else '('}{ends[0]}..{ends[1]}{']' if high_closed else ')'}"
    raise NoResult("expected a value that has a text, found a function")


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _key(key: str) -> str:
    return key if _PLAIN_KEY.fullmatch(key) else _quoted(key)


@CONVERSION.function("duration", "from: string|days|months")
def _duration(scope: Scope, value: Any) -> timedelta | MonthsDuration:
    return temporal.parse_duration(value) if isinstance(value, str) else value


@CONVERSION.function("years and months duration", "from: date|date and time, to: date|date and time")
def _years_and_months_duration(scope: Scope, start: date, end: date) -> MonthsDuration:
    return timeline.months_between(start, end)
