"""Timers as models write them: dates, durations, cycles and cron (BPMN 2.0.2, 10.5.5; ISO 8601). Pure arithmetic.

Rules, where the standard leaves the choice:
- A time without a zone is in the timer's zone (baton:timeZone), which is UTC unless said otherwise, or in its own: `…[Europe/Berlin]`.
- A date in the past is due at once. Occurrences of a cycle that are past when it begins are skipped, and count.
- A cycle keeps its grid: the k-th occurrence is anchor + k × duration, however late the others were. After an outage one
  occurrence is caught up with, and the next one lies in the future; those between are missed, and counted (`missed`).
- Years, months, weeks and days are those of the calendar in the zone; hours, minutes and seconds are exact.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any

from isoduration import parse_duration

from engine.bpmn.cron import CronTimer, next_by_cron, read_cron
from engine.bpmn.timer_error import TimerError as TimerError
from engine.bpmn.timer_error import zone_of

MAX_TEXT = 200
MAX_SECONDS = 1000 * 366 * 86_400
SHORTEST_CYCLE = 1  # second
MOST_COUNTED = 1000  # occurrences of cron that were missed: counting takes time; so many stand for that many or more
MOST_SHORT, SHORTEST = 1000, 0.001  # so many repetitions, or fewer, may be so many seconds apart: they end soon
FIRST_YEAR, LAST_YEAR = 2, 9998  # a year from both ends of Python's calendar, so that every zone can show a time

_DURATION = re.compile(r"P[\dYMWDTHS.,]+", re.ASCII)
_REPEAT = re.compile(r"R(\d{0,9})", re.ASCII)
_BRACKETS = re.compile(r"\[([^\[\]]+)\]", re.ASCII)


@dataclass(frozen=True, slots=True)
class DateTimer:
    at: datetime


@dataclass(frozen=True, slots=True)
class DurationTimer:
    """A span of time: months and days of the calendar, then exact seconds."""

    months: int
    days: int
    exact: timedelta
    zone: str = "UTC"

    @property
    def seconds(self) -> float | None:
        """The length where it is the same at all times of the year; None for months, and for days in a zone with shifts."""
        if self.months or (self.days and self.zone != "UTC"):
            return None
        return self.days * 86_400 + self.exact.total_seconds()

    def after(self, moment: datetime, *, times: int = 1) -> datetime:
        """`moment` and the span, `times` over, in one step: 31 January and one month, twice, is 31 March."""
        try:
            local = _plus_months(moment, self.months * times) + timedelta(days=self.days * times)
            # A wall time that the clocks skip is moved on by the length of the gap.
            found = (local.astimezone(UTC) + self.exact * times).astimezone(moment.tzinfo)
        except (OverflowError, ValueError) as error:
            raise TimerError(f"expected a time before the year 10000, found {moment.isoformat()} and {times} times the duration") from error
        return _storable(found)


@dataclass(frozen=True, slots=True)
class CycleTimer:
    """`R[n]/[start/]duration`. `anchor` None: when it begins. `repetitions` None: without end."""

    span: DurationTimer
    anchor: datetime | None = None
    repetitions: int | None = None


Timer = DateTimer | DurationTimer | CycleTimer | CronTimer


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One time at which a timer is due. `number` is the place on a cycle's grid from `anchor` on."""

    due_at: datetime
    anchor: datetime | None = None
    number: int = 0

    def payload(self) -> dict[str, Any]:
        """What a job keeps of it besides its due time."""
        return {"anchor": self.anchor.isoformat() if self.anchor else None, "number": self.number}

    @staticmethod
    def from_payload(payload: Mapping[str, Any], due_at: datetime) -> Occurrence:
        anchor = payload.get("anchor")
        return Occurrence(due_at, datetime.fromisoformat(anchor) if anchor else None, int(payload.get("number", 0)))


def parse_timer(kind: str, value: Any, *, zone: str = "UTC") -> Timer:
    """The timer of the type date, duration or cycle that a text, or for dates a date, stands for. Raises TimerError."""
    if kind == "date":
        return DateTimer(parse_moment(value, zone=zone))
    if not isinstance(value, str):
        raise TimerError(f"expected the text of a {kind}, found {type(value).__name__} {str(value)[:60]!r}")
    text = _short(value, kind)
    match kind:
        case "duration":
            return _duration(text, zone)
        case "cycle":
            return _cycle(text, zone) if text.startswith("R") else read_cron(text, zone)
    raise TimerError(f"expected a timer of the type date, duration or cycle, found {kind!r}")


def parse_moment(value: Any, *, zone: str = "UTC") -> datetime:
    """A date and time, always with a zone. A date alone begins its day."""
    if isinstance(value, datetime):
        return _storable(_zoned(value, zone))
    if isinstance(value, date):
        return _storable(datetime.combine(value, time(), zone_of(zone)))
    if not isinstance(value, str):
        raise TimerError(f"expected a date and time, found {type(value).__name__} {str(value)[:60]!r}")
    text, zone = _without_zone(_short(value, "date"), zone)
    try:
        found = _zoned(datetime.fromisoformat(text), zone)
    except (ValueError, OverflowError) as error:
        raise TimerError(f"expected a date and time such as 2026-11-29T10:00:00Z, found {text!r}") from error
    return _storable(found)


def parse_due(value: Any, *, now: datetime, zone: str = "UTC") -> datetime:
    """When a task is due: a date and time, a date (its last second), or a duration from now on. Raises TimerError."""
    if isinstance(value, str) and value.strip().startswith("P"):
        return _duration(_short(value, "duration"), zone).after(now.astimezone(zone_of(zone)))
    whole_day = (isinstance(value, date) and not isinstance(value, datetime)) or (isinstance(value, str) and len(value.strip()) == 10)
    moment = parse_moment(value, zone=zone)
    return moment.replace(hour=23, minute=59, second=59) if whole_day else moment


# ---- when


def first(timer: Timer, *, now: datetime) -> Occurrence | None:
    """The first occurrence of a timer that begins now; None if a finite cycle is over already."""
    match timer:
        case DateTimer(at):
            return Occurrence(at)
        case DurationTimer(zone=zone):
            return Occurrence(timer.after(now.astimezone(zone_of(zone))))
        case CronTimer():
            return _of_cron(timer, now)
        case CycleTimer(span, anchor, _):
            if anchor is None:
                return _on_grid(timer, now.astimezone(zone_of(span.zone)), 1)
            if anchor >= now:
                return _on_grid(timer, anchor, 0)
            return _on_grid(timer, anchor, _number_after(span, anchor, now))


def following(timer: Timer, previous: Occurrence, *, now: datetime) -> Occurrence | None:
    """The occurrence after `previous`, strictly later than both it and now; None if there is none."""
    match timer:
        case DateTimer() | DurationTimer():
            return None
        case CronTimer():
            return _of_cron(timer, max(now, previous.due_at))
        case CycleTimer(span):
            anchor, number = _anchor(timer, previous), previous.number + 1
            if span.after(anchor, times=number) <= now:
                number = max(number, _number_after(span, anchor, now))
            return _on_grid(timer, anchor, number)


def missed(timer: Timer, previous: Occurrence, *, now: datetime) -> int:
    """How many occurrences after `previous` have passed by now: they are not made up for. Of cron at most MOST_COUNTED."""
    match timer:
        case DateTimer() | DurationTimer():
            return 0
        case CronTimer():
            return _counted(timer, previous.due_at, now)
        case CycleTimer(span):
            anchor = _anchor(timer, previous)
            if span.after(anchor, times=previous.number + 1) > now:
                return 0
            passed, last = _number_after(span, anchor, now) - 1, _last(timer)
            return max(0, (passed if last is None else min(passed, last)) - previous.number)


@lru_cache(maxsize=16)
def _counted(timer: CronTimer, after: datetime, now: datetime) -> int:
    """A firing asks twice, for what it tells and for the job of the next one; a thousand take a third of a second and more."""
    found, at = 0, next_by_cron(timer, after)
    while at is not None and at <= now and found < MOST_COUNTED:
        found, at = found + 1, next_by_cron(timer, at)
    return found


def _of_cron(timer: CronTimer, after: datetime) -> Occurrence | None:
    found = next_by_cron(timer, after)
    return None if found is None else Occurrence(found)


def _anchor(timer: CycleTimer, previous: Occurrence) -> datetime:
    """What was stored has an offset and no zone any more: in a zone with shifts the grid would be off by an hour."""
    if previous.anchor is None:
        raise TimerError("expected the anchor of a cycle with its occurrence, found none")
    return timer.anchor or previous.anchor.astimezone(zone_of(timer.span.zone))


def _last(timer: CycleTimer) -> int | None:
    """The number of the last occurrence; None without end."""
    return None if timer.repetitions is None else timer.repetitions - (0 if timer.anchor is None else 1)


def _on_grid(timer: CycleTimer, anchor: datetime, number: int) -> Occurrence | None:
    """A cycle with a start occurs there first (number 0); one without begins after its first duration (number 1)."""
    last = _last(timer)
    if last is not None and number > last:
        return None
    return Occurrence(timer.span.after(anchor, times=number), anchor, number)


def _number_after(span: DurationTimer, anchor: datetime, moment: datetime) -> int:
    """The smallest number whose time is later than `moment`. Estimated from below, then counted up."""
    longest = timedelta(days=31 * span.months + span.days, hours=1 if span.days or span.months else 0) + span.exact
    exact = span.seconds
    length = timedelta(seconds=exact) if exact is not None else longest
    number = max(0, (moment - anchor) // length)
    while span.after(anchor, times=number) <= moment:
        number += 1
    return number


# ---- reading


def _short(text: str, kind: str) -> str:
    stripped = text.strip()
    if not stripped or len(stripped) > MAX_TEXT:
        raise TimerError(f"expected a {kind} of 1 to {MAX_TEXT} characters, found {len(stripped)}")
    return stripped


def _without_zone(text: str, zone: str) -> tuple[str, str]:
    """`2026-07-01T08:00:00[Europe/Berlin]`: the text without the brackets, and the zone in them."""
    named = _BRACKETS.findall(text)
    return (_BRACKETS.sub("", text), named[0]) if len(named) == 1 else (text, zone)


def _zoned(moment: datetime, zone: str) -> datetime:
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=zone_of(zone))


def _storable(moment: datetime) -> datetime:
    """The database holds more years than Python: a time that is year 10000 in UTC is written, and no list reads it again."""
    if not FIRST_YEAR <= moment.year <= LAST_YEAR:
        raise TimerError(f"expected a time from the year {FIRST_YEAR} to the year {LAST_YEAR}, found {moment.isoformat()}")
    return moment


def _duration(text: str, zone: str) -> DurationTimer:
    if not _DURATION.fullmatch(text):
        raise TimerError(f"expected a duration such as PT5M, P2DT12H or P1M, found {text!r}")
    try:
        found = parse_duration(text.replace(",", "."))
    except ValueError as error:
        raise TimerError(f"expected a duration such as PT5M, P2DT12H or P1M, found {text!r}: {error}") from error
    months = found.date.years * 12 + found.date.months
    days = found.date.days + 7 * found.date.weeks
    if any(part != part.to_integral_value() for part in (found.date.years, found.date.months)):
        raise TimerError(f"expected whole years and months, found {text!r}")
    seconds = found.time.hours * 3600 + found.time.minutes * 60 + found.time.seconds
    if months * 31 * 86_400 + days * 86_400 + seconds > MAX_SECONDS:
        raise TimerError(f"expected a duration of at most 1000 years, found {text!r}")
    whole_days = int(days)
    exact = seconds + (days - whole_days) * 86_400
    return DurationTimer(int(months), whole_days, timedelta(microseconds=int(exact * Decimal(1_000_000))), zone)


def _cycle(text: str, zone: str) -> CycleTimer:
    given = text
    text, zone = _without_zone(text, zone)
    parts = text.split("/")
    repeat = _REPEAT.fullmatch(parts[0])
    if repeat is None or len(parts) not in (2, 3) or not parts[-1].startswith("P"):
        raise TimerError(f"expected a cycle such as R3/PT10M or R/2026-07-01T00:00:00+02:00/PT15M, found {given!r}")
    repetitions = int(repeat[1]) if repeat[1] else None
    if repetitions == 0:
        raise TimerError(f"expected at least one repetition, or R alone for no end, found {given!r}")
    span = _duration(parts[-1], zone)
    least = SHORTEST_CYCLE if repetitions is None or repetitions > MOST_SHORT else SHORTEST
    shortest = span.after(datetime(2001, 1, 1, tzinfo=UTC)) - datetime(2001, 1, 1, tzinfo=UTC)
    if shortest < timedelta(seconds=least):
        raise TimerError(f"expected a cycle of {least} second or more, found {given!r}")
    anchor = parse_moment(parts[1], zone=zone) if len(parts) == 3 else None
    # A start with an offset names the instant; a zone that is named besides says what its days are.
    return CycleTimer(span, anchor if anchor is None or zone == "UTC" else anchor.astimezone(zone_of(zone)), repetitions)


def _plus_months(moment: datetime, months: int) -> datetime:
    if not months:
        return moment
    year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    following_month = date(year + (month == 11), (month + 1) % 12 + 1, 1)
    return moment.replace(year=year, month=month + 1, day=min(moment.day, (following_month - timedelta(days=1)).day))
