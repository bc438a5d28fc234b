"""Cheap signs of work for who waits for some: whether anything was committed, and when something becomes due by itself.

Neither finds an item, and neither is needed for one to be found: a look follows, and looks go on without a sign, too.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import psycopg

from engine.db.acquire import WORK, Work
from engine.db.session import cursor_of
from engine.db.taken_back import FRONT

_SNAPSHOT = "SELECT pg_current_snapshot()::text"


def seen(conn: psycopg.Connection[Any]) -> str:
    """What this session can see, as a text: as long as it stays the same, no transaction that wrote anything has committed."""
    return str(cursor_of(conn).execute(_SNAPSHOT).fetchone()[0])


def seconds_until_due(
    conn: psycopg.Connection[Any], work: Work, branches: Collection[tuple[str, str]], *, looked_ago: float = 0.0, most: int = 1
) -> list[float]:
    """In how many seconds the next free items of these become due, soonest first, of those that were not due so many seconds ago.

    `branches`: (kind, topic), or (kind, "") of deliveries. `most`: how many are told.
    """
    params = {"a": [a for a, _ in branches], "b": [b for _, b in branches], "ago": looked_ago, "most": most}
    return [row[0] for row in cursor_of(conn).execute(_NEXT[work.table], params).fetchall()]


_NEXT = {
    work.table: f"""
SELECT extract(epoch FROM f.available_at - baton_clock())::float8
FROM (SELECT * FROM {work.branches}) AS b CROSS JOIN generate_series(0, {FRONT}) AS l (level)
CROSS JOIN LATERAL (
  SELECT j.available_at FROM {work.table} j
  WHERE {work.match} AND j.level = l.level AND j.status = 'available' AND j.held = '{{}}'
    AND j.available_at > baton_now() - make_interval(secs => %(ago)s)
  ORDER BY j.available_at LIMIT %(most)s) f
ORDER BY f.available_at LIMIT %(most)s
"""
    for work in WORK.values()
}
