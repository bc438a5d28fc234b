"""The low watermarks of durable work: times below which acquisition does not look, for it would wade there through what was consumed."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import psycopg

from engine.db.acquire import MARGIN, WORK, Work
from engine.db.taken_back import FRONT


def move_watermarks(conn: psycopg.Connection[Any], work: Work, branches: Collection[tuple[str, str]], *, sweep: bool) -> None:
    """Move the marks below which acquisition does not look: it would wade there through what was consumed.

    `branches`: (kind, topic), (tenant, topic) or (kind, ""). A mark stays `MARGIN` behind the oldest free item and
    behind now, so that a transaction that wrote an item has that long to commit. A sweep looks from the beginning and
    may move a mark back, for what stayed open longer or was let go of with an older time. Run the sweep every few
    minutes, the other more often.
    """
    params = {"a": [a for a, _ in branches], "b": [b for _, b in branches], "sweep": sweep}
    conn.execute(_WATERMARKS[work.table], params)


_WATERMARKS = {
    work.table: f"""
WITH branch AS MATERIALIZED (
  SELECT c.a, c.b, '{work.table} ' || c.a || ' ' || c.b AS name, w.at,
    CASE WHEN %(sweep)s OR w.at IS NULL THEN '-infinity' ELSE w.at END AS low
  FROM {work.branches}
  LEFT JOIN watermark w ON w.name = '{work.table} ' || c.a || ' ' || c.b
), found AS MATERIALIZED (
  SELECT b.name, b.at AS before, least(baton_now(), min(f.available_at)) - {MARGIN} AS at
  FROM branch b CROSS JOIN generate_series(0, {FRONT}) AS l (level) LEFT JOIN LATERAL (
    SELECT j.available_at FROM {work.table} j
    WHERE {work.match} AND j.level = l.level AND j.status = 'available' AND j.held = '{{}}' AND j.available_at >= b.low
    ORDER BY j.available_at LIMIT 1) f ON true
  GROUP BY b.name, b.at
)
INSERT INTO watermark AS w (name, at, swept_at) SELECT name, at, baton_clock() FROM found
ON CONFLICT ON CONSTRAINT pk_watermark DO UPDATE
SET at = excluded.at, swept_at = CASE WHEN %(sweep)s THEN excluded.swept_at ELSE w.swept_at END
WHERE (%(sweep)s OR w.at < excluded.at) AND w.at IS NOT DISTINCT FROM (SELECT before FROM found WHERE found.name = w.name)
"""
    for work in WORK.values()
}
