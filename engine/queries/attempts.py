"""The attempts of one item: when each ran, who ran it, how it ended, and what it said meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection

from engine.queries.rows import rows


@dataclass(frozen=True, slots=True)
class Line:
    lease_number: int
    at: datetime
    level: str
    text: str


@dataclass(frozen=True, slots=True)
class _Attempt:
    number: int
    attempt: int | None
    owner: str | None
    began_at: datetime | None
    ended_at: datetime | None
    outcome: str
    error: str | None
    progress: float | None
    doing: str
    said: int
    reported_at: datetime | None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One lease of an item. `number` is the lease's, `attempt` counts those that were begun.

    `outcome`: running | completed | failed | recovered | released | cancelled | "" (its end is not known: it was reported, no more).
    `not_kept`: lines that were said after the last that is kept.
    """

    number: int
    attempt: int | None
    owner: str | None
    began_at: datetime | None
    ended_at: datetime | None
    outcome: str
    error: str | None
    progress: float | None
    doing: str
    reported_at: datetime | None
    lines: tuple[Line, ...]
    not_kept: int


def attempts(conn: Connection, item_id: UUID, *, tenant_id: str = "", limit: int = 20) -> list[Attempt]:
    """The last attempts of a job, external task or delivery, newest first."""
    found = rows(conn, _Attempt, ATTEMPTS, {"item": item_id, "tenant": tenant_id, "limit": limit})
    numbers = [each.number for each in found if each.said]
    lines = rows(conn, Line, LINES, {"item": item_id, "tenant": tenant_id, "numbers": numbers}) if numbers else []
    return [_with(each, tuple(line for line in lines if line.lease_number == each.number)) for each in found]


def _with(found: _Attempt, lines: tuple[Line, ...]) -> Attempt:
    return Attempt(
        found.number, found.attempt, found.owner, found.began_at, found.ended_at, found.outcome, found.error,
        found.progress, found.doing, found.reported_at, lines, max(0, found.said - len(lines)),
    )  # fmt: skip


# The event that ends an attempt carries who had it and since when; one that runs stands in its row. A retry by an operator ends none.
_RUNNING = " UNION ALL ".join(
    f"SELECT lease_number, attempts, lease_owner, leased_at FROM {table} WHERE id = :item AND tenant_id = :tenant AND status = 'leased'"
    for table in ("job", "external_task", "delivery")
)
ATTEMPTS = f"""
WITH ended AS (
  SELECT DISTINCT ON (number) number, attempt, owner, began_at, at, outcome, error FROM (
    SELECT (h.data->>'lease_number')::bigint AS number, (h.data->>'attempt')::int AS attempt, h.data->>'owner' AS owner,
           (h.data->>'leased_at')::timestamptz AS began_at, h.at, h.id,
           replace(substring(h.kind FROM '(completed|fired|failed|recovered|released|cancelled)$'), 'fired', 'completed') AS outcome,
           h.data->>'error' AS error
      FROM history h WHERE h.item_id = :item AND h.tenant_id = :tenant AND h.kind !~ '_retried$' AND h.data ? 'lease_number'
  ) AS told WHERE outcome IS NOT NULL ORDER BY number, id DESC
), running AS ({_RUNNING}), numbers AS (
  SELECT number FROM ended UNION SELECT lease_number FROM running
  UNION SELECT lease_number FROM attempt_report WHERE item_id = :item AND tenant_id = :tenant
)
SELECT n.number, coalesce(e.attempt, r.attempts) AS attempt, coalesce(e.owner, r.lease_owner) AS owner,
       coalesce(e.began_at, r.leased_at) AS began_at, e.at AS ended_at,
       CASE WHEN e.number IS NOT NULL THEN e.outcome WHEN r.lease_number IS NOT NULL THEN 'running' ELSE '' END AS outcome, e.error,
       s.progress::float AS progress, coalesce(s.doing, '') AS doing, coalesce(s.lines, 0) AS said, s.reported_at
  FROM numbers n
  LEFT JOIN ended e ON e.number = n.number
  LEFT JOIN running r ON r.lease_number = n.number
  LEFT JOIN attempt_report s ON s.item_id = :item AND s.lease_number = n.number AND s.tenant_id = :tenant
 ORDER BY n.number DESC LIMIT :limit
"""
LINES = """
SELECT lease_number, at, level, text FROM attempt_line
 WHERE item_id = :item AND tenant_id = :tenant AND lease_number = ANY (CAST(:numbers AS bigint[]))
 ORDER BY lease_number DESC, id
"""
