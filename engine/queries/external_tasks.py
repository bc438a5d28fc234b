"""External tasks for programs that ask in Camunda's words: is there something for those who wait, and lists by many filters."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import Connection, text

from engine.db.taken_back import FRONT

Branch = tuple[str, str]  # (tenant, topic)


def free_tasks(conn: Connection, branches: Collection[Branch], *, limit: int) -> dict[Branch, int]:
    """How many tasks of each (tenant, topic) could be acquired now, at most `limit` of each level; none where it is not named.

    The same probes of the index as acquisition makes, so a backlog that is held or due later costs nothing.
    """
    if not branches:
        return {}
    asked = sorted(branches)
    params: dict[str, Any] = {"tenants": [a for a, _ in asked], "topics": [b for _, b in asked], "limit": limit}
    return {(tenant, topic): many for tenant, topic, many in conn.execute(text(FREE), params)}


FREE = f"""
WITH branch AS MATERIALIZED (
  SELECT c.a, c.b, l.level, coalesce(w.at, '-infinity') AS low
  FROM unnest(CAST(:tenants AS text[]), CAST(:topics AS text[])) AS c (a, b)
  CROSS JOIN generate_series(0, {FRONT}) AS l (level)
  LEFT JOIN watermark w ON w.name = 'external_task ' || c.a || ' ' || c.b
  WHERE NOT EXISTS (SELECT FROM pause p WHERE p.tenant_id = c.a AND p.kind = 'external_task' AND p.topic IN (c.b, '*'))
)
SELECT b.a, b.b, count(*)::int FROM branch b CROSS JOIN LATERAL (
  SELECT FROM external_task j WHERE j.tenant_id = b.a AND j.topic = b.b AND j.level = b.level
    AND j.status = 'available' AND j.held = '{{}}' AND j.available_at <= baton_now() AND j.available_at >= b.low LIMIT :limit) f
GROUP BY b.a, b.b
"""
