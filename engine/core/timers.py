"""Timer event definitions (10.5.5): when a timer is due, and when a cycle is due again.

date      a date, a date with time, or either as ISO 8601 text, without a zone in the timer's own; a past one is due at once
duration  ISO 8601 (PT15M, P1DT12H); years and months follow the calendar from now
cycle     R3/PT10M, R/PT10M, R5/2026-07-01T00:00:00+02:00/PT15M, or cron, with or without seconds: "0 0 9 ? * MON-FRI"

A cycle keeps its grid: the next occurrence is counted from when the last one was due, not from when it was served. What was
missed meanwhile is served once; what lies before the first start is skipped. Only occurrences served count against R3.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from croniter import CroniterError, croniter
from isoduration import parse_duration
from isoduration.types import Duration

from engine.bpmn.definition import TimerConfig
from engine.core.run import CannotGoOn

CALENDAR_STEPS = 10_000
"""Occurrences of a cycle in months or years that may be skipped to reach the present."""


@dataclass(frozen=True, slots=True)
class Due:
    """When a timer job is due: at an instant, or this long after the database writes it. `payload` makes a cycle go on."""

    at: datetime | None
    in_seconds: float | None
    payload: Mapping[str, Any]


def due(timer: TimerConfig, value: Any, now: datetime) -> Due:
    """The first time that a timer is due whose expression has this value. Raises CannotGoOn."""
    match timer.type:
        case "date":
            return Due(instant(value, now, timer.zone), None, {})
        case "duration":
            return Due(None, _seconds(_duration(value), now), {})
        case "cycle":
            return _first(timer, value, now)
    raise CannotGoOn("unsupported", f"expected a timer of type date, duration or cycle, found {timer.type!r}")


def due_again(timer: TimerConfig, payload: Mapping[str, Any], was_due: datetime | None, now: datetime) -> Due | None:
    """The next occurrence of a cycle whose job carried `payload` and was due at `was_due`; None when it is over."""
    text, remaining = payload.get("cycle"), payload.get("remaining")
    if text is None or (remaining is not None and remaining <= 1):
        return None
    later = {"cycle": text, "remaining": None if remaining is None else remaining - 1}
    if not _is_iso(text):
        return Due(_by_cron(text, now, timer.zone), None, later)
    _, _, interval = _parts(text, now, timer.zone)
    return Due(_on_grid(was_due or now, interval, now, skip_first=True), None, later)


def instant(value: Any, now: datetime, zone: str = "UTC") -> datetime:
    """A date, a date with time, ISO text of either, or a duration from now. Raises CannotGoOn."""
    match value:
        case datetime():
            return value if value.tzinfo is not None else value.replace(tzinfo=ZoneInfo(zone))
        case date():
            return datetime(value.year, value.month, value.day, tzinfo=ZoneInfo(zone))
        case str() if value.strip().startswith("P"):
            return _after(now, _duration(value))
        case str():
            try:
                return instant(datetime.fromisoformat(value.strip()), now, zone)
            except ValueError as error:
                raise CannotGoOn("expression", f"expected a date such as 2026-07-01T09:00:00+02:00, found {value!r}") from error
    raise CannotGoOn("expression", f"expected a date or a date and time, found {value!r}")


def _first(timer: TimerConfig, value: Any, now: datetime) -> Due:
    text = _text(value, "a cycle such as R3/PT10M")
    if not _is_iso(text):
        return Due(_by_cron(text, now, timer.zone), None, {"cycle": text, "remaining": None})
    repeats, start, interval = _parts(text, now, timer.zone)
    payload = {"cycle": text, "remaining": repeats}
    if start is None:
        return Due(None, _seconds(interval, now), payload)
    return Due(_on_grid(start, interval, now), None, payload)


def _is_iso(text: str) -> bool:
    return text.startswith("R") and "/" in text


def _parts(text: str, now: datetime, zone: str) -> tuple[int | None, datetime | None, Duration]:
    """R[n]/[start/]interval -> (n or None for ever, start, interval)."""
    head, *rest = text.split("/")
    count = head[1:]
    if len(rest) not in (1, 2) or (count and not (count.isdecimal() and int(count[:9]) > 0)):
        raise CannotGoOn("expression", f"expected a cycle such as R3/PT10M, found {text!r}")
    interval = _duration(rest[-1])
    if _seconds(interval, now) < 1:
        raise CannotGoOn("expression", f"expected a cycle of at least one second, found {text!r}")
    start = instant(rest[0], now, zone) if len(rest) == 2 else None
    return int(count[:9]) if count else None, start, interval


def _on_grid(start: datetime, interval: Duration, now: datetime, *, skip_first: bool = False) -> datetime:
    """The first of start, start + interval, … that is not past."""
    if interval.date.years or interval.date.months:
        return _on_calendar(start, interval, now, first=int(skip_first))
    step = timedelta(seconds=_seconds(interval, start))
    missed = max(math.ceil((now - start) / step), int(skip_first))
    return start + missed * step


def _on_calendar(start: datetime, interval: Duration, now: datetime, *, first: int) -> datetime:
    """Months are counted from the start, so that a cycle from the 31st comes back to the 31st."""
    for number in range(first, CALENDAR_STEPS):
        found = _after(start, interval, times=number)
        if found >= now:
            return found
    raise CannotGoOn("expression", f"expected a cycle within {CALENDAR_STEPS:,} occurrences of the present, found {start.isoformat()}")


def _by_cron(text: str, now: datetime, zone: str) -> datetime:
    try:
        found: datetime = croniter(text, now.astimezone(ZoneInfo(zone)), second_at_beginning=True).get_next(datetime)
    except (CroniterError, ValueError) as error:
        raise CannotGoOn("expression", f"expected a cycle such as R3/PT10M, or cron, found {text!r}: {error}") from error
    return found


def _duration(value: Any) -> Duration:
    text = _text(value, "a duration such as PT15M")
    try:
        return parse_duration(text)
    except ValueError as error:  # isoduration's own errors are among them
        raise CannotGoOn("expression", f"expected a duration such as PT15M, found {text!r}") from error


def _seconds(length: Duration, now: datetime) -> float:
    """A duration in seconds; years and months as the calendar has them from `now` on. Negative is none."""
    return max((_after(now, length) - now).total_seconds(), 0.0)


def _after(start: datetime, length: Duration, *, times: int = 1) -> datetime:
    try:
        months = (length.date.years * 12 + length.date.months) * times
        whole = Duration(type(length.date)(months=months), type(length.time)())
        exact = timedelta(
            weeks=float(length.date.weeks),
            days=float(length.date.days),
            hours=float(length.time.hours),
            minutes=float(length.time.minutes),
            seconds=float(length.time.seconds),
        )
        return (start + whole if months else start) + exact * times
    except (ValueError, OverflowError) as error:
        raise CannotGoOn("expression", f"expected a duration that ends before the year 10000, found {length}: {error}") from error


def _text(value: Any, what: str) -> str:
    if isinstance(value, str) and value.strip():
        return value.strip()
    raise CannotGoOn("expression", f"expected {what}, found {value!r}")
