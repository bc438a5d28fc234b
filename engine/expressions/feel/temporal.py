"""Dates, times and durations of FEEL as texts: read and printed (DMN 1.3, 10.3.2.3 and 10.3.4.1). Their arithmetic is `timeline`.

kind                        value
date                        datetime.date
time                        datetime.time, with an offset, a named zone, or neither
date and time               datetime.datetime, likewise
days and time duration      datetime.timedelta
years and months duration   MonthsDuration

Limits, each told by name: years from 1 to 9999, microseconds (further digits are cut off), zones that the IANA database names,
offsets up to 18 hours, 999,999,999 days.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from engine.expressions.errors import ExpressionError
from engine.zones import UnknownZone, zone_named

MAX_TEXT = 200  # characters of a date, time or duration
MAX_MONTHS = 12 * 999_999_999
MAX_OFFSET = timedelta(hours=18)
MICROSECOND = timedelta(microseconds=1)

_DATE = r"(?P<year>-?(?:[1-9]\d{4,8}|\d{4}))-(?P<month>\d\d)-(?P<day>\d\d)"
_TIME = (
    r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?:\.(?P<fraction>\d+))?"
    r"(?:(?P<utc>[Zz])|(?P<offset>[+-]\d\d:\d\d(?::\d\d)?)|@(?P<zone>[A-Za-z][\w+\-/]*))?"
)
_NO_ZONES = ("localtime", "posix", "right", "Factory")  # of the machine, not of the database

DATE = re.compile(_DATE, re.ASCII)
TIME = re.compile("T?" + _TIME, re.ASCII)
DATE_TIME = re.compile(f"{_DATE}(?:T{_TIME})?", re.ASCII)
MONTHS = re.compile(r"(?P<sign>-)?P(?=\d)(?:(?P<years>\d{1,12})Y)?(?:(?P<months>\d{1,12})M)?", re.ASCII)
DAYS = re.compile(
    r"(?P<sign>-)?P(?=\d|T\d)(?:(?P<days>\d{1,12})D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d{1,12})H)?(?:(?P<minutes>\d{1,12})M)?(?:(?P<seconds>\d{1,18})(?:\.(?P<fraction>\d+))?S)?)?",
    re.ASCII,
)


class TemporalError(ExpressionError):
    """A text is no date, time or duration, or a result is beyond the calendar. In FEEL that is null."""


@dataclass(frozen=True, slots=True)
class MonthsDuration:
    """A years and months duration: a whole number of months, negative ones too."""

    months: int

    def __post_init__(self) -> None:
        if abs(self.months) > MAX_MONTHS:
            raise TemporalError(f"expected a duration of at most {MAX_MONTHS} months, found more")


Temporal = date | time | datetime | timedelta | MonthsDuration


# ---- reading


def parse_temporal(text: str) -> Temporal:
    """What `@"text"` stands for: a date, time, date and time or duration (DMN 1.3, 10.3.1.2 rule 62). Raises TemporalError."""
    if text.lstrip("-").startswith("P"):
        return parse_duration(text)
    if text[2:3] == ":" or text.startswith("T"):
        return parse_time(text)
    return parse_date_time(text) if "T" in text else parse_date(text)


def parse_date(text: str) -> date:
    """The date of `2017-08-30`. Raises TemporalError."""
    found = _match(DATE, text, "a date such as 2017-08-30")
    return _date(found)


def parse_time(text: str) -> time:
    """The time of `23:59:00`, with fractions of a second, `Z`, `+01:00` or `@Europe/Paris` behind it or not. Raises TemporalError."""
    return _time(_match(TIME, text, "a time such as 23:59:00, 23:59:00Z or 23:59:00@Europe/Paris"))


def parse_date_time(text: str) -> datetime:
    """The date and time of `2017-08-30T23:59:00`, ended as a time is; a date alone is its midnight. Raises TemporalError."""
    found = _match(DATE_TIME, text, "a date and time such as 2017-08-30T23:59:00")
    return make_date_time(_date(found), time() if found["hour"] is None else _time(found))


def parse_duration(text: str) -> timedelta | MonthsDuration:
    """The duration of `P1Y2M` or of `P1DT2H3M4.5S`, a sign before it or not. Raises TemporalError."""
    if len(text) <= MAX_TEXT and (found := MONTHS.fullmatch(text)):
        months = int(found["years"] or 0) * 12 + int(found["months"] or 0)
        return MonthsDuration(-months if found["sign"] else months)
    found = _match(DAYS, text, "a duration such as P1Y2M or P1DT2H3M4S")
    days, hours, minutes, seconds = (int(found[part] or 0) for part in ("days", "hours", "minutes", "seconds"))
    try:
        length = timedelta(days, seconds, _microseconds(found["fraction"]), minutes=minutes, hours=hours)
        return -length if found["sign"] else length
    except OverflowError as error:
        raise TemporalError(f"expected a duration of at most 999999999 days, found {text!r}") from error


def make_date(year: int, month: int, day: int) -> date:
    """Raises TemporalError if the calendar does not have it."""
    try:
        return date(year, month, day)
    except (ValueError, OverflowError) as error:
        wanted = "a year from 1 to 9999" if not 1 <= year <= 9999 else "a date of the calendar"
        raise TemporalError(f"expected {wanted}, found {year}-{month:02}-{day:02}") from error


def make_time(hour: int, minute: int, second: int, microsecond: int, zone: tzinfo | None) -> time:
    """Raises TemporalError if the day does not have it."""
    try:
        return time(hour, minute, second, microsecond, zone)
    except (ValueError, OverflowError) as error:
        raise TemporalError(f"expected a time from 00:00:00 to 23:59:59, found {hour:02}:{minute:02}:{second:02}") from error


def make_date_time(day: date, at: time) -> datetime:
    """A time on the wall that the clocks of its zone skip comes as much later as they skip. Raises TemporalError."""
    found = datetime.combine(day, at)
    if not isinstance(at.tzinfo, ZoneInfo):
        return found
    return in_zone(found, at.tzinfo)


def in_zone(moment: datetime, zone: tzinfo) -> datetime:
    """The same moment in another zone. Raises TemporalError if that is beyond the calendar."""
    try:
        return moment.astimezone(UTC).astimezone(zone)
    except (ValueError, OverflowError) as error:
        raise TemporalError(f"expected a year from 1 to 9999 in every zone, found {moment.isoformat()}") from error


def make_offset(offset: timedelta) -> tzinfo:
    """The zone that is always `offset` ahead of UTC. Raises TemporalError beyond 18 hours."""
    if abs(offset) > MAX_OFFSET:
        raise TemporalError(f"expected an offset of at most 18 hours, found {show(offset)}")
    return timezone(offset) if offset else UTC


@lru_cache(maxsize=64)
def named_zone(name: str) -> ZoneInfo:
    """The zone of the IANA database. Raises TemporalError for a name that it does not have."""
    try:
        if not name.startswith(_NO_ZONES):
            found = zone_named(name)
            return found if isinstance(found, ZoneInfo) else ZoneInfo(name)
    except UnknownZone:
        pass
    raise TemporalError(f"expected a time zone such as Europe/Paris, found {name[:60]!r}")


def _match(pattern: re.Pattern[str], text: str, wanted: str) -> re.Match[str]:
    found = pattern.fullmatch(text) if len(text) <= MAX_TEXT else None
    if found is None:
        raise TemporalError(f"expected {wanted}, found {text[:60]!r}")
    return found


def _date(found: re.Match[str]) -> date:
    return make_date(int(found["year"]), int(found["month"]), int(found["day"]))


def _time(found: re.Match[str]) -> time:
    parts = (int(found["hour"]), int(found["minute"]), int(found["second"]), _microseconds(found["fraction"]))
    return make_time(*parts, _zone(found))


def _zone(found: re.Match[str]) -> tzinfo | None:
    if found["utc"]:
        return UTC
    if found["zone"]:
        return named_zone(found["zone"])
    if found["offset"] is None:
        return None
    hours, minutes, *seconds = (int(part) for part in found["offset"][1:].split(":"))
    if minutes > 59 or any(second > 59 for second in seconds):
        raise TemporalError(f"expected an offset such as +01:00, found {found['offset']}")
    offset = timedelta(hours=hours, minutes=minutes, seconds=sum(seconds))
    return make_offset(-offset if found["offset"].startswith("-") else offset)


def _microseconds(fraction: str | None) -> int:
    return int(fraction[:6].ljust(6, "0")) if fraction else 0


# ---- printing (DMN 1.3, 10.3.4.1: `string` makes what `@` reads)


def show(value: Temporal) -> str:
    """The text that reads back as the value."""
    match value:
        case datetime():
            return f"{value.date().isoformat()}T{show(value.timetz())}" if _same_zone(value) else _show_moment(value)
        case date():
            return value.isoformat()
        case time():
            return _clock(value) + _zone_text(value.tzinfo)
        case timedelta():
            return _show_days(value)
        case MonthsDuration(months):
            years, rest = divmod(abs(months), 12)
            parts = (f"{years}Y" if years else "") + (f"{rest}M" if rest or not years else "")
            return f"{'-' if months < 0 else ''}P{parts}"


def _same_zone(value: datetime) -> bool:
    """Whether the text without an offset reads back as this moment: no second hour after the clocks went back."""
    return not value.fold or not isinstance(value.tzinfo, ZoneInfo) or value.utcoffset() == value.replace(fold=0).utcoffset()


def _show_moment(value: datetime) -> str:
    return f"{value.date().isoformat()}T{_clock(value)}{_offset_text(value.utcoffset() or timedelta())}"


def _clock(value: time | datetime) -> str:
    fraction = f".{value.microsecond:06}".rstrip("0") if value.microsecond else ""
    return f"{value.hour:02}:{value.minute:02}:{value.second:02}{fraction}"


def _zone_text(zone: tzinfo | None) -> str:
    match zone:
        case None:
            return ""
        case ZoneInfo(key=str() as key):
            return f"@{key}"
    return _offset_text(zone.utcoffset(None) or timedelta())


def _offset_text(offset: timedelta) -> str:
    if not offset:
        return "Z"
    minutes, seconds = divmod(abs(offset) // timedelta(seconds=1), 60)
    return f"{'-' if offset < timedelta() else '+'}{minutes // 60:02}:{minutes % 60:02}" + (f":{seconds:02}" if seconds else "")


def _show_days(value: timedelta) -> str:
    whole = abs(value)
    minutes, seconds = divmod(whole.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    fraction = f".{whole.microseconds:06}".rstrip("0") if whole.microseconds else ""
    clock = (f"{hours}H" if hours else "") + (f"{minutes}M" if minutes else "") + (f"{seconds}{fraction}S" if seconds or fraction else "")
    day = f"{whole.days}D" if whole.days else ""
    text = day + (f"T{clock}" if clock else "") or "T0S"
    return f"{'-' if value < timedelta() else ''}P{text}"
