"""Destinations of deliveries, each with its lag, what it is being sent, and who paused it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from engine.db.taken_back import FRONT
from engine.queries.rows import CAP, rows

MOST = 500  # destinations on a page


@dataclass(frozen=True, slots=True)
class DestinationRow:
    """`due`, `in_line`: counted up to CAP + 1. `lag_seconds`: how long the oldest that is due, or waits in line, has been so, if any is.

    `secrets`: how many sign now. `retry` None: the engine's back-off, and `max_attempts` of it.
    """

    name: str
    kind: str
    address: str
    concurrency: int | None
    retry: str | None
    max_attempts: int
    redirects: int
    seconds: float | None
    max_bytes: int | None
    secrets: int
    changed_by: str
    changed_by_name: str
    changed_at: datetime
    paused_by: str | None
    paused_by_name: str | None
    paused_at: datetime | None
    pause_reason: str | None
    due: int
    in_line: int
    sending: int
    lag_seconds: float | None

    @property
    def shown_address(self) -> str:
        """For people: `all mail`, `mail to shop.example`."""
        if self.kind == "http":
            return self.address
        return f"mail to {self.address[6:]}" if len(self.address) > 6 else "all mail"

    @property
    def wanted_address(self) -> str:
        """As it is given to whoever changes it."""
        return self.address if self.kind == "http" else self.address[6:] or "*"


def destinations(conn: Connection, *, tenant_id: str = "", name: str | None = None) -> list[DestinationRow]:
    """Those that are registered, or that of the name; the ones behind come first."""
    return rows(conn, DestinationRow, DESTINATIONS, {"tenant": tenant_id, "name": name, "cap": CAP + 1, "limit": MOST})


@dataclass(frozen=True, slots=True)
class Lag:
    tenant_id: str
    name: str
    kind: str
    seconds: float


def lags(conn: Connection) -> list[Lag]:
    """Of every destination of every tenant; name "": what belongs to no registered one, of all tenants."""
    return rows(conn, Lag, LAGS, {"limit": MOST})


# By the indexes of what is due (of each level the first) and of what waits in line.
_DUE = f"""
  SELECT v.available_at FROM generate_series(0, {FRONT}) AS l (level) CROSS JOIN LATERAL (
    SELECT d.available_at FROM delivery d
    WHERE d.kind = {{kind}} AND d.route = {{route}} AND d.level = l.level AND d.status = 'available' AND d.held = '{{{{}}}}'
      AND d.available_at <= baton_now() ORDER BY d.available_at LIMIT {{limit}}) v"""
_IN_LINE = """
  SELECT d.created_at FROM delivery d WHERE d.tenant_id = {tenant} AND d.route = {route} AND d.line IS NOT NULL AND d.ended_at IS NULL
    AND d.held @> '{{ordered}}' LIMIT {limit}"""
_OF_ROW = {"kind": "t.kind", "route": "t.id::text", "tenant": "t.tenant_id"}

DESTINATIONS = f"""
SELECT t.name, t.kind, t.address, t.concurrency, t.retry, t.max_attempts, t.redirects::int, t.seconds, t.max_bytes,
  (SELECT count(*) FROM jsonb_array_elements(t.salts) s WHERE s->>'until' IS NULL OR CAST(s->>'until' AS timestamptz) > baton_now())::int
    AS secrets,
  t.changed_by, coalesce(c.display_name, t.changed_by) AS changed_by_name, t.changed_at,
  p.paused_by, coalesce(o.display_name, p.paused_by) AS paused_by_name, p.paused_at, p.reason AS pause_reason,
  due.n::int AS due, line.n::int AS in_line,
  (SELECT count(*) FROM delivery d WHERE d.route = t.id::text AND d.route <> '' AND d.status = 'leased')::int AS sending,
  extract(epoch FROM baton_now() - least(due.oldest_at, line.oldest_at))::float AS lag_seconds
FROM destination t
LEFT JOIN person c ON c.tenant_id = t.tenant_id AND c.username = t.changed_by
LEFT JOIN pause p ON p.tenant_id = t.tenant_id AND p.kind = t.kind AND p.topic = t.name
LEFT JOIN person o ON o.tenant_id = t.tenant_id AND o.username = p.paused_by
CROSS JOIN LATERAL (SELECT count(*) AS n, min(available_at) AS oldest_at FROM ({_DUE.format(**_OF_ROW, limit=":cap")} LIMIT :cap) d) due
CROSS JOIN LATERAL (SELECT count(*) AS n, min(created_at) AS oldest_at FROM ({_IN_LINE.format(**_OF_ROW, limit=":cap")}) d) line
WHERE t.tenant_id = :tenant AND t.removed_at IS NULL AND (CAST(:name AS text) IS NULL OR t.name = :name)
ORDER BY least(due.oldest_at, line.oldest_at) NULLS LAST, t.name LIMIT :limit
"""

LAGS = f"""
SELECT t.tenant_id, t.name, t.kind, coalesce(extract(epoch FROM baton_now() - least(
    (SELECT min(available_at) FROM ({_DUE.format(**_OF_ROW, limit="1")}) d),
    (SELECT min(created_at) FROM ({_IN_LINE.format(**_OF_ROW, limit="1000")}) d))), 0)::float AS seconds
FROM (
  SELECT tenant_id, name, kind, id::text AS id FROM destination WHERE removed_at IS NULL
  UNION ALL SELECT '', '', kind, '' FROM (VALUES ('http'), ('mail')) AS k (kind)) t
ORDER BY tenant_id, kind, name LIMIT :limit
"""
