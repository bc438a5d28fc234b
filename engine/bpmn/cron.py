"""Cron: five fields, six or seven as Quartz has them, and when they are due, over changes of the clocks too.

Two rules, by the field of the hour (docs/timers.md has examples):
- It names hours (`30 2 * * *`): a time on the wall. One that the clocks skip comes as much later as they skip; one that
  comes twice comes the first time only.
- It begins with `*` (`*/30 * * * *`, `0 * * * *`): a rhythm. It is due whenever the clock shows such a time: what is skipped is not there,
  what the clock shows twice is due twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

from croniter import croniter

from engine.bpmn.timer_error import TimerError, zone_of

_FIELD = re.compile(r"[0-9A-Z*/,\-?#]+", re.ASCII)
_ZONE = re.compile(r"(?:CRON_TZ|TZ)=(\S+)\s+(.+)", re.ASCII)
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_WORDS = frozenset((*_MONTHS, *_DAYS, "L", "W"))
_NAMES = frozenset({"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"})
_LAST = re.compile(rf"({'|'.join(_DAYS)})L")
_ANY = ("*", "?")
_YEAR = re.compile(r"(\d{4})(?:-(\d{4}))?(?:/([1-9]\d?))?", re.ASCII)
LAST_YEAR = 2099  # of Quartz's field of the year
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class CronTimer:
    """Five fields; six with seconds first; seven with the year last; or a name such as @daily."""

    text: str
    zone: str = "UTC"

    @property
    def fields(self) -> list[str]:
        return self.text.split()

    @property
    def is_rhythm(self) -> bool:
        """Whether it is due whenever the clock shows such a time, rather than at times on the wall."""
        fields = self.fields
        return self.text == "@hourly" if len(fields) == 1 else fields[1 if len(fields) == 5 else 2].startswith("*")


def read_cron(text: str, zone: str) -> CronTimer:
    """The schedule that a text stands for. `CRON_TZ=Europe/Berlin` before the fields names its zone. Raises TimerError."""
    if (zoned := _ZONE.fullmatch(text)) is not None:
        zone, text = zoned[1], zoned[2]
    shown = " ".join(text.split())
    timer = CronTimer(shown.lower() if shown.lower() in _NAMES else " ".join(_fields(shown)), zone)
    if next_by_cron(timer, datetime(2026, 1, 1, tzinfo=UTC)) is None:
        raise TimerError(f"expected a cron text with a next time, found {shown!r}")
    return timer


def _fields(text: str) -> list[str]:
    fields = text.upper().split(" ")
    if len(fields) == 7 and fields[6] in _ANY:
        fields.pop()
    words = {word for field in fields for word in re.findall(r"[A-Z]+", _LAST.sub(r"\1", field))}
    if len(fields) == 7:
        _years(fields[6])
    if not 5 <= len(fields) <= 7 or not all(_FIELD.fullmatch(field) for field in fields) or words - _WORDS:
        what = "cron of five fields (six with seconds first, seven with the year last)"
        raise TimerError(f"expected a cycle R…/…, or {what}, found {text!r}")
    if len(fields) == 5:
        return fields
    if re.search(r"(?<![#\dA-Z])\d", re.sub(r"/\d+", "", fields[5])):
        # 1 is Sunday to Quartz and Monday to others: a silent day's difference.
        raise TimerError(f"expected days of the week by name (MON to SUN) in cron with seconds, found {text!r}")
    if fields[3] not in _ANY and fields[5] not in _ANY:
        # Quartz refuses both, Spring wants both to hold, others one of them.
        raise TimerError(f"expected ? for the day of the month or for the day of the week in cron with seconds, found {text!r}")
    fields[5] = _LAST.sub(lambda found: f"L{_DAYS.index(found[1])}", fields[5])
    return fields


# ---- when


def next_by_cron(timer: CronTimer, after: datetime) -> datetime | None:
    """The first time after `after`; None where the years that it names are over. Raises TimerError if there is none at all."""
    zone = zone_of(timer.zone)
    try:
        found = next(_times(timer, after.astimezone(zone)), None) if timer.is_rhythm else _on_the_wall(timer, after, zone)
    except (ValueError, KeyError, OverflowError) as error:
        raise TimerError(f"expected a cron text with a next time, found {timer.text!r}: {error}") from error
    return None if found is None else datetime.fromtimestamp(found.timestamp(), zone)


def _times(timer: CronTimer, after: datetime) -> Iterator[datetime]:
    """All times after this one; without a zone if it has none. They end with the years that the text names."""
    fields = timer.fields
    text, years = " ".join(fields[:6]), sorted(_years(fields[6])) if len(fields) == 7 else None
    cron = croniter(text, after, second_at_beginning=len(fields) > 5)
    while True:
        found = cron.get_next(datetime)
        if years is None or found.year in years:
            yield found
            continue
        later = next((year for year in years if year > found.year), None)
        if later is None:
            return
        cron = croniter(text, found.replace(year=later - 1, month=12, day=31, hour=23, minute=59, second=59), second_at_beginning=True)


def _years(field: str) -> frozenset[int]:
    """`2027`, `2027-2030`, `2027/2`, and several of them. Raises TimerError."""
    found: set[int] = set()
    for part in field.split(","):
        read = _YEAR.fullmatch(part)
        if read is None:
            raise TimerError(f"expected years such as 2027, 2027-2030 or 2027/2, found {field!r}")
        first = int(read[1])
        last = int(read[2]) if read[2] else LAST_YEAR if read[3] else first
        found.update(range(first, last + 1, int(read[3] or 1)))
    return frozenset(found)


def _on_the_wall(timer: CronTimer, after: datetime, zone: tzinfo) -> datetime | None:
    """The earliest instant after `after` that one of the times on the wall stands for.

    Around a change of the clocks their order is not that of the instants: 2:45 is skipped and comes at 3:45, after 3:00.
    """
    shift = _shift(after, zone)
    best: datetime | None = None
    until: datetime | None = None
    for wall in _times(timer, after.astimezone(zone).replace(tzinfo=None) - shift):
        if until is not None and wall > until:
            break
        instant = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)  # skipped: by the offset of before; twice: the first
        if instant > after and (best is None or instant < best):
            best = instant
            until = until or wall + _shift(instant, zone)
    return best


def _shift(moment: datetime, zone: tzinfo) -> timedelta:
    """By how much the clocks change within a day of a moment; nothing on nearly all days."""
    before, later = ((moment + days).astimezone(zone).utcoffset() for days in (-_DAY, _DAY))
    return abs((later or timedelta()) - (before or timedelta()))
