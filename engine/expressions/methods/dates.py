"""Methods of dates, and of dates with times. Sums follow the calendar; the last day of a month stands for one that it has not."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

from engine.expressions.errors import ExpressionError
from engine.expressions.methods.method import Method, whole_number
from engine.expressions.values import Scope, ordered, shown

_less = ordered("<")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _before(scope: Scope, target: date, other: Any) -> bool:
    return _less(target, other)


def _after(scope: Scope, target: date, other: Any) -> bool:
    return _less(other, target)


def _compare_to(scope: Scope, target: date, other: Any) -> int:
    """-1, 0 or 1."""
    return _less(other, target) - _less(target, other)


def _is_equal(scope: Scope, target: date, other: Any) -> bool:
    return _compare_to(scope, target, other) == 0


def _months(method: str, each: int) -> Method:
    def moved(scope: Scope, target: date, amount: Any) -> date:
        months = target.year * 12 + target.month - 1 + each * whole_number(amount, method)
        year, month = divmod(months, 12)
        if not 1 <= year <= 9999:
            raise _beyond(target, amount, method)
        return target.replace(year=year, month=month + 1, day=min(target.day, monthrange(year, month + 1)[1]))

    return Method(moved, 1, 1)


def _span(method: str, each: timedelta) -> Method:
    def moved(scope: Scope, target: date, amount: Any) -> date:
        count = whole_number(amount, method)
        try:
            return target + each * count
        except OverflowError:
            raise _beyond(target, amount, method) from None

    return Method(moved, 1, 1)


def _beyond(target: date, amount: Any, method: str) -> ExpressionError:
    return ExpressionError(f"expected a date between the years 1 and 9999, found {shown(amount)} with .{method}() of {target.isoformat()}")


def _part(read: Callable[[Any], int]) -> Method:
    return Method(lambda scope, target: read(target))


def _milliseconds(scope: Scope, target: datetime) -> int:
    """Since 1970, as java.util.Date counts."""
    if target.tzinfo is None:
        raise ExpressionError(f"expected a date and time with a zone, found {target.isoformat()}")
    return (target - _EPOCH) // timedelta(milliseconds=1)


_BOTH: Mapping[str, Method] = {
    "after": Method(_after, 1, 1),
    "before": Method(_before, 1, 1),
    "compareTo": Method(_compare_to, 1, 1),
    "getDayOfMonth": _part(lambda day: day.day),
    "getDayOfWeek": _part(lambda day: day.isoweekday()),  # 1 is Monday, as Joda counts
    "getMonthOfYear": _part(lambda day: day.month),
    "getMonthValue": _part(lambda day: day.month),
    "getYear": _part(lambda day: day.year),
    "isAfter": Method(_after, 1, 1),
    "isBefore": Method(_before, 1, 1),
    "isEqual": Method(_is_equal, 1, 1),
    "minusDays": _span("minusDays", timedelta(days=-1)),
    "minusMonths": _months("minusMonths", -1),
    "minusWeeks": _span("minusWeeks", timedelta(weeks=-1)),
    "minusYears": _months("minusYears", -12),
    "plusDays": _span("plusDays", timedelta(days=1)),
    "plusMonths": _months("plusMonths", 1),
    "plusWeeks": _span("plusWeeks", timedelta(weeks=1)),
    "plusYears": _months("plusYears", 12),
    "toDate": Method(lambda scope, target: target),
}
OF_DATES: Mapping[str, Method] = {**_BOTH, "toLocalDate": Method(lambda scope, target: target)}
OF_TIMES: Mapping[str, Method] = {
    **_BOTH,
    "getHour": _part(lambda time: time.hour),
    "getHourOfDay": _part(lambda time: time.hour),
    "getMillis": Method(_milliseconds),
    "getMinute": _part(lambda time: time.minute),
    "getMinuteOfHour": _part(lambda time: time.minute),
    "getSecond": _part(lambda time: time.second),
    "getSecondOfMinute": _part(lambda time: time.second),
    "getTime": Method(_milliseconds),
    "minusHours": _span("minusHours", timedelta(hours=-1)),
    "minusMinutes": _span("minusMinutes", timedelta(minutes=-1)),
    "minusSeconds": _span("minusSeconds", timedelta(seconds=-1)),
    "plusHours": _span("plusHours", timedelta(hours=1)),
    "plusMinutes": _span("plusMinutes", timedelta(minutes=1)),
    "plusSeconds": _span("plusSeconds", timedelta(seconds=1)),
    "toLocalDate": Method(lambda scope, target: target.date()),
    "withTimeAtStartOfDay": Method(lambda scope, target: target.replace(hour=0, minute=0, second=0, microsecond=0)),
}
