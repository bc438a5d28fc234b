"""Times as Camunda 7 writes them: `2024-01-31T10:00:00.000+0000`."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone

EXPECTED = "a time like 2024-01-31T10:00:00.000+0000"

_TIME = re.compile(
    r"(?P<to>\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:[.,](?P<part>\d{1,9}))?(?:(?P<utc>Z)|(?P<sign>[+-])(?P<hours>\d{2}):?(?P<minutes>\d{2}))",
    re.ASCII,
)


def written(at: datetime | None) -> str | None:
    """A time in UTC, cut to milliseconds."""
    if at is None:
        return None
    utc = at.astimezone(UTC)
    return f"{utc.year:04d}-{utc:%m-%dT%H:%M:%S}.{utc.microsecond // 1000:03d}+0000"


def written_date(day: date) -> str:
    """A day has no time here: its midnight in UTC."""
    return f"{day.year:04d}-{day:%m-%d}T00:00:00.000+0000"


def read(text: str) -> datetime:
    """A time with its zone, which it keeps. Raises ValueError with what was expected."""
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError(f"expected {EXPECTED}, found {text[:60]!r}")
    try:
        zone: timezone = UTC
        if found["sign"]:
            ahead = timedelta(hours=int(found["hours"]), minutes=int(found["minutes"]))
            zone = timezone(ahead if found["sign"] == "+" else -ahead)
        at = datetime.fromisoformat(found["to"]).replace(microsecond=int((found["part"] or "0")[:6].ljust(6, "0")), tzinfo=zone)
        at.astimezone(UTC)  # the first hours of year 1 have no time in UTC
    except (ValueError, OverflowError) as error:
        raise ValueError(f"expected {EXPECTED}, found {text[:60]!r} ({error})") from error
    return at
