"""What FEEL does with dates, times and durations: arithmetic, order, properties (DMN 1.3, 10.3.2.3, tables 50 to 57 and 65).

Every function raises TemporalError where FEEL says null. A moment with a zone lies on the time line of UTC, so days of a duration
are 24 hours each; one without a zone can be compared with its like alone. A date beside a date and time is its midnight there.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal, DecimalException
from typing import Any
from zoneinfo import ZoneInfo

from engine.expressions.feel.temporal import (
    MICROSECOND,
    MonthsDuration,
    TemporalError,
    in_zone,
    make_date,
    make_date_time,
    make_offset,
    show,
)
from engine.expressions.values import NUMBERS

_SECONDS_A_DAY = 86_400
_FIXED = date(1970, 1, 1)  # the day on which times are compared and counted
TEMPORAL = (date, time, timedelta, MonthsDuration)  # a datetime is a date


def is_temporal(value: Any) -> bool:
    return isinstance(value, TEMPORAL)


# ---- arithmetic


def add(left: Any, right: Any) -> Any:
    """`left + right`, in either order."""
    match left, right:
        case (timedelta(), timedelta()):
            return _bounded(lambda: left + right, "+", left, right)
        case (MonthsDuration(), MonthsDuration()):
            return MonthsDuration(left.months + right.months)
        case ((date() | time()), (timedelta() | MonthsDuration())):
            return _moved(left, right)
        case ((timedelta() | MonthsDuration()), (date() | time())):
            return _moved(right, left)
    raise _undefined("+", left, right)


def subtract(left: Any, right: Any) -> Any:
    """`left - right`: two moments make a days and time duration."""
    match left, right:
        case (timedelta(), timedelta()):
            return _bounded(lambda: left - right, "-", left, right)
        case (MonthsDuration(), MonthsDuration()):
            return MonthsDuration(left.months - right.months)
        case ((date() | time()), (timedelta() | MonthsDuration())):
            return _moved(left, negative(right))
        case (time(), time()) | (date(), date()):
            first, second = _pair("-", left, right)
            return first - second
    raise _undefined("-", left, right)


def multiply(left: Any, right: Any) -> Any:
    """A duration times a number, in either order."""
    if isinstance(left, (int, Decimal)):
        left, right = right, left
    if isinstance(right, bool) or not isinstance(right, (int, Decimal)):
        raise _undefined("*", left, right)
    match left:
        case timedelta():
            return _from_microseconds(lambda: NUMBERS.multiply(_microseconds(left), Decimal(right)))
        case MonthsDuration(months):
            return _from_months(lambda: NUMBERS.multiply(Decimal(months), Decimal(right)))
    raise _undefined("*", left, right)


def divide(left: Any, right: Any) -> Any:
    """A duration by a number is a duration; by a duration of its kind, a number."""
    match left, right:
        case (timedelta(), timedelta()) if right:
            return NUMBERS.divide(_microseconds(left), _microseconds(right))
        case (MonthsDuration(), MonthsDuration()) if right.months:
            return NUMBERS.divide(Decimal(left.months), Decimal(right.months))
        case (timedelta(), int() | Decimal()) if right and right is not True:
            return _from_microseconds(lambda: NUMBERS.divide(_microseconds(left), Decimal(right)))
        case (MonthsDuration(months), int() | Decimal()) if right and right is not True:
            return _from_months(lambda: NUMBERS.divide(Decimal(months), Decimal(right)))
    raise _undefined("/", left, right)


def negative(value: Any) -> Any:
    """`-value` of a duration."""
    match value:
        case timedelta():
            return _bounded(lambda: -value, "-", timedelta(), value)
        case MonthsDuration(months):
            return MonthsDuration(-months)
    raise TemporalError(f"expected a duration after -, found {show(value) if is_temporal(value) else 'no duration'}")


def _moved(moment: date | time, length: timedelta | MonthsDuration) -> date | time | datetime:
    match moment, length:
        case (datetime(), timedelta()):
            return _later(moment, length)
        case (date(), timedelta()):
            return _later(datetime.combine(moment, time()), length).date()
        case (time(), timedelta()):
            seconds = timedelta(seconds=length.seconds, microseconds=length.microseconds)  # whole days lead back to the same time
            return (datetime.combine(_FIXED, moment.replace(tzinfo=None)) + seconds).time().replace(tzinfo=moment.tzinfo)
        case (datetime(), MonthsDuration(months)):
            return make_date_time(_months_later(moment.date(), months), moment.timetz())
        case (date(), MonthsDuration(months)):
            return _months_later(moment, months)
    raise _undefined("+", moment, length)


def _later(moment: datetime, length: timedelta) -> datetime:
    try:
        if isinstance(moment.tzinfo, ZoneInfo):
            return (moment.astimezone(UTC) + length).astimezone(moment.tzinfo)
        return moment + length
    except (ValueError, OverflowError) as error:
        raise TemporalError(f"expected a year from 1 to 9999, found {show(moment)} and {show(length)}") from error


def _months_later(day: date, months: int) -> date:
    """The same day of the month, or the month's last: 31 January and a month is 28 February."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        raise TemporalError(f"expected a year from 1 to 9999, found {day.isoformat()} and {months} months")
    return make_date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def months_between(first: date, second: date) -> MonthsDuration:
    """The whole months from one date to another (DMN 1.3, 10.3.4.1, years and months duration)."""
    months = (second.year - first.year) * 12 + second.month - first.month
    if months > 0 and second.day < first.day:
        months -= 1
    elif months < 0 and second.day > first.day:
        months += 1
    return MonthsDuration(months)


def _bounded(result: Callable[[], timedelta], sign: str, left: timedelta, right: timedelta) -> timedelta:
    try:
        return result()
    except OverflowError as error:
        raise TemporalError(f"expected a duration of at most 999999999 days of {show(left)} {sign} {show(right)}") from error


def _from_microseconds(result: Callable[[], Decimal]) -> timedelta:
    try:
        return int(result().to_integral_value()) * MICROSECOND
    except (DecimalException, OverflowError, ValueError) as error:
        raise TemporalError("expected a duration of at most 999999999 days, found more") from error


def _from_months(result: Callable[[], Decimal]) -> MonthsDuration:
    """Parts of a month are cut off."""
    try:
        return MonthsDuration(int(result()))
    except (DecimalException, OverflowError, ValueError) as error:
        raise TemporalError("expected a duration of a number of months, found none") from error


def _microseconds(length: timedelta) -> Decimal:
    return Decimal(length // MICROSECOND)


def _undefined(sign: str, left: Any, right: Any) -> TemporalError:
    shown = [show(value) if is_temporal(value) else type(value).__name__ for value in (left, right)]
    return TemporalError(f"expected dates, times and durations that {sign} joins, found {shown[0]} and {shown[1]}")


# ---- order


def equal(left: Any, right: Any) -> bool:
    """Whether two values of one kind are the same moment or length. A moment with a zone equals none without one."""
    match left, right:
        case (time(), time()) | (date(), date()):
            if not _alike(left, right):
                return False
            first, second = _pair("=", left, right)
            return bool(first == second)
        case (timedelta(), timedelta()) | (MonthsDuration(), MonthsDuration()):
            return bool(left == right)
    raise _undefined("=", left, right)


def order(left: Any, right: Any) -> int:
    """Less than, equal to or more than 0, as `left` is before, at or after `right`."""
    match left, right:
        case (time(), time()) | (date(), date()):
            first, second = _pair("<", left, right)
        case (timedelta(), timedelta()):
            first, second = left, right
        case (MonthsDuration(), MonthsDuration()):
            first, second = left.months, right.months
        case _:
            raise _undefined("<", left, right)
    return int(first > second) - int(first < second)


def _alike(left: Any, right: Any) -> bool:
    both_moments = isinstance(left, datetime) and isinstance(right, datetime)
    zoned = (left.tzinfo is None) == (right.tzinfo is None) if both_moments or isinstance(left, time) else True
    return zoned and (isinstance(left, datetime) == isinstance(right, datetime))


def _pair(sign: str, left: Any, right: Any) -> tuple[Any, Any]:
    """Two dates, dates and times, or times as values that Python compares and subtracts on the time line."""
    if isinstance(left, time):
        return _pair_of_times(sign, left, right)
    if not isinstance(left, datetime) and not isinstance(right, datetime):
        return left, right
    zones = [value.tzinfo for value in (left, right) if isinstance(value, datetime)]
    if len(zones) == 2 and (zones[0] is None) != (zones[1] is None):
        raise TemporalError(f"expected two times with zones or two without beside {sign}, found {show(left)} and {show(right)}")
    return _on_the_line(left, zones[0]), _on_the_line(right, zones[0])


def _on_the_line(value: date, zone: tzinfo | None) -> datetime:
    moment = value if isinstance(value, datetime) else datetime.combine(value, time(), UTC if zone is not None else None)
    if moment.tzinfo is None:
        return moment
    return in_zone(moment, UTC)


def _pair_of_times(sign: str, left: time, right: time) -> tuple[timedelta, timedelta]:
    since_midnight = [timedelta(hours=at.hour, minutes=at.minute, seconds=at.second, microseconds=at.microsecond) for at in (left, right)]
    if left.tzinfo is right.tzinfo:
        return since_midnight[0], since_midnight[1]
    offsets = [at.utcoffset() for at in (left, right)]
    if offsets[0] is None or offsets[1] is None:  # a zone with shifts has no offset without a date
        raise TemporalError(f"expected two times of one zone beside {sign}, found {show(left)} and {show(right)}")
    return since_midnight[0] - offsets[0], since_midnight[1] - offsets[1]


# ---- properties


def property_of(value: Any, name: str) -> Any:
    """`value.name`. Null for a part that the value does not have, such as the offset of a time without one."""
    table = next((table for kind, table in PROPERTIES if isinstance(value, kind)), None)
    if table is None or name not in table:
        known = ", ".join(table or ())
        raise TemporalError(f"expected one of the properties {known} of {show(value)}, found {name[:60]!r}")
    return table[name](value)


def _second(value: time | datetime) -> Decimal:
    return Decimal(value.second) + Decimal(value.microsecond) / 1_000_000


def _zone_name(value: time | datetime) -> str | None:
    return value.tzinfo.key if isinstance(value.tzinfo, ZoneInfo) else None


def _part(value: timedelta, over: int, within: int) -> Decimal:
    """Whole units of `over` seconds, within the next larger unit, with the duration's sign."""
    whole = abs(value) // timedelta(seconds=1) % within // over
    return Decimal(-whole if value < timedelta() else whole)


def _seconds(value: timedelta) -> Decimal:
    rest = abs(value) % timedelta(minutes=1) // MICROSECOND
    return Decimal(-rest if value < timedelta() else rest) / 1_000_000


def _years(value: MonthsDuration) -> Decimal:
    years = abs(value.months) // 12
    return Decimal(-years if value.months < 0 else years)


def _months(value: MonthsDuration) -> Decimal:
    months = abs(value.months) % 12
    return Decimal(-months if value.months < 0 else months)


_OF_DATES: dict[str, Callable[[Any], Any]] = {
    "year": lambda value: Decimal(value.year),
    "month": lambda value: Decimal(value.month),
    "day": lambda value: Decimal(value.day),
    "weekday": lambda value: Decimal(value.isoweekday()),
}
_OF_TIMES: dict[str, Callable[[Any], Any]] = {
    "hour": lambda value: Decimal(value.hour),
    "minute": lambda value: Decimal(value.minute),
    "second": _second,
    "time offset": lambda value: value.utcoffset(),
    "timezone": _zone_name,
}
_OF_DAYS: dict[str, Callable[[Any], Any]] = {
    "days": lambda value: Decimal(-(abs(value).days) if value < timedelta() else value.days),
    "hours": lambda value: _part(value, 3_600, _SECONDS_A_DAY),
    "minutes": lambda value: _part(value, 60, 3_600),
    "seconds": _seconds,
}
PROPERTIES: tuple[tuple[type, dict[str, Callable[[Any], Any]]], ...] = (
    (datetime, _OF_DATES | _OF_TIMES),
    (date, _OF_DATES),
    (time, _OF_TIMES),
    (timedelta, _OF_DAYS),
    (MonthsDuration, {"years": _years, "months": _months}),
)


def offset_zone(offset: timedelta | None) -> tzinfo | None:
    """The zone of an offset argument, which may be null."""
    return None if offset is None else make_offset(offset)
