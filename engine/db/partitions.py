"""Monthly partitions of `history`, made two months ahead. No default partition: a missing month is an alarm.

CREATE … PARTITION OF locks the parent exclusively, so a partition is made apart, given a CHECK that spares the scan,
and attached (SHARE UPDATE EXCLUSIVE only).
"""

from __future__ import annotations

from datetime import date
from typing import Any

MONTHS_AHEAD = 2


def make_partitions(cursor: Any) -> list[str]:
    """Make what is missing of this month and the next two; returns the names made. The caller commits."""
    cursor.execute("SELECT baton_now()::date")
    today: date = cursor.fetchone()[0]
    made = []
    for offset in range(MONTHS_AHEAD + 1):
        first, following = _month(today, offset), _month(today, offset + 1)
        name = f"history_{first:%Y_%m}"
        cursor.execute("SELECT to_regclass(%s) IS NOT NULL", (name,))
        if cursor.fetchone()[0]:
            continue
        _make(cursor, name, first, following)
        made.append(name)
    return made


def _make(cursor: Any, name: str, first: date, following: date) -> None:
    # Names and bounds are made here from a date; nothing of it comes from outside.
    within = f"at >= '{first}+00' AND at < '{following}+00'"
    cursor.execute(f"CREATE TABLE {name} (LIKE history INCLUDING ALL EXCLUDING IDENTITY, CONSTRAINT ck_{name} CHECK ({within}))")
    cursor.execute(f"ALTER TABLE history ATTACH PARTITION {name} FOR VALUES FROM ('{first}+00') TO ('{following}+00')")
    cursor.execute(f"ALTER TABLE {name} DROP CONSTRAINT ck_{name}")


def _month(day: date, offset: int) -> date:
    months = day.year * 12 + day.month - 1 + offset
    return date(months // 12, months % 12 + 1, 1)
