"""What rests, and by whom: suspended cases and versions, paused work, with how much each holds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection

from engine.queries.instance import WorkRow
from engine.queries.rows import rows

MOST = 1_000
"""Items that are counted for one pause, cases for one version; a screen says "1,000+"."""
LISTED = 200


@dataclass(frozen=True, slots=True)
class Suspension:
    """Why a case or version rests. `along`: it went along with its version."""

    object_id: UUID
    kind: str  # instance | definition
    suspended_by: str
    suspended_by_name: str
    suspended_at: datetime
    reason: str
    along: bool


@dataclass(frozen=True, slots=True)
class Suspended:
    """A suspended case, or a suspended version with how many cases went along. `business_key`: of a case."""

    object_id: UUID
    kind: str
    suspended_by_name: str
    suspended_at: datetime
    reason: str
    key: str
    name: str
    version: int
    business_key: str | None
    mark: str | None
    cases: int


@dataclass(frozen=True, slots=True)
class PauseRow:
    """`waits`: items that rest because of it and others like it, counted up to `MOST`; None: not counted."""

    kind: str
    topic: str
    paused_by: str
    paused_by_name: str
    paused_at: datetime
    reason: str
    waits: int | None

    def covers(self, item: WorkRow, process: str) -> bool:
        """Whether this item of an instance of `process` rests because of it."""
        match self.kind:
            case "definition":
                return self.topic == process
            case "element":
                return self.topic == f"{process}/{item.element_id}"
            case "service" | "external_task":
                return item.kind == self.kind.removesuffix("_task") and self.topic in (item.topic, "*")
        return item.kind == self.kind


def suspension(conn: Connection, object_id: UUID) -> Suspension | None:
    """Of a root instance, or of a version."""
    return next(iter(rows(conn, Suspension, SUSPENSION, {"id": object_id})), None)


def suspended(conn: Connection, *, tenant_id: str) -> list[Suspended]:
    """What people suspended, newest first; cases that went along with a version are counted with it."""
    return rows(conn, Suspended, SUSPENDED, {"tenant": tenant_id, "limit": LISTED, "most": MOST + 1})


def pauses(conn: Connection, *, tenant_id: str) -> list[PauseRow]:
    """All pauses, newest first."""
    return rows(conn, PauseRow, PAUSES, {"tenant": tenant_id, "most": MOST + 1})


def standing(conn: Connection, *, tenant_id: str) -> list[PauseRow]:
    """The same for one item that rests: nothing is counted, which takes as long as much is held."""
    return rows(conn, PauseRow, STANDING, {"tenant": tenant_id})


def pause_of(found: Iterable[PauseRow], item: WorkRow, process: str) -> PauseRow | None:
    """The pause that an item rests by."""
    return next((pause for pause in found if pause.covers(item, process)), None)


SUSPENSION = """
SELECT s.object_id, s.kind, s.suspended_by, coalesce(p.display_name, s.suspended_by) AS suspended_by_name, s.suspended_at, s.reason,
  s.cause_id IS NOT NULL AS along
FROM suspension s LEFT JOIN person p ON p.tenant_id = s.tenant_id AND p.username = s.suspended_by
WHERE s.object_id = :id
"""

SUSPENDED = """
SELECT s.object_id, s.kind, coalesce(p.display_name, s.suspended_by) AS suspended_by_name, s.suspended_at, s.reason,
  d.key, coalesce(nullif(d.name, ''), d.key) AS name, d.version, i.business_key, i.mark,
  (SELECT count(*) FROM (SELECT FROM suspension c WHERE c.cause_id = s.id LIMIT :most) along) AS cases
FROM suspension s
LEFT JOIN person p ON p.tenant_id = s.tenant_id AND p.username = s.suspended_by
LEFT JOIN process_instance i ON i.id = s.object_id
JOIN process_definition d ON d.id = coalesce(i.definition_id, s.object_id)
WHERE s.tenant_id = :tenant AND s.cause_id IS NULL AND (s.kind = 'definition' OR i.mark IN ('suspending', 'suspended'))
ORDER BY s.suspended_at DESC LIMIT :limit
"""

STANDING = """
SELECT p.kind, p.topic, p.paused_by, coalesce(o.display_name, p.paused_by) AS paused_by_name, p.paused_at, p.reason, NULL AS waits
FROM pause p LEFT JOIN person o ON o.tenant_id = p.tenant_id AND o.username = p.paused_by
WHERE p.tenant_id = :tenant ORDER BY p.paused_at DESC, p.kind, p.topic
"""

# By the partial indexes of what is free and of what is held, each only as far as is shown.
PAUSES = """
SELECT p.kind, p.topic, p.paused_by, coalesce(o.display_name, p.paused_by) AS paused_by_name, p.paused_at, p.reason, waiting.waits
FROM pause p LEFT JOIN person o ON o.tenant_id = p.tenant_id AND o.username = p.paused_by
CROSS JOIN LATERAL (SELECT count(*) AS waits FROM (
  SELECT FROM job j WHERE p.kind IN ('service', 'timer', 'start_timer') AND j.tenant_id = p.tenant_id AND j.kind = p.kind
    AND p.topic IN (j.topic, '*') AND j.status = 'available' AND j.held = '{}' AND j.available_at <= baton_now()
  UNION ALL SELECT FROM job j WHERE j.held <> '{}' AND 'paused' = ANY (j.held) AND j.tenant_id = p.tenant_id
    AND (j.kind = p.kind AND p.topic IN (j.topic, '*') OR p.kind IN ('definition', 'element') AND EXISTS (
      SELECT FROM process_definition d WHERE d.id = j.definition_id AND p.topic IN (d.key, d.key || '/' || j.element_id)))
  UNION ALL SELECT FROM external_task e WHERE p.kind = 'external_task' AND e.tenant_id = p.tenant_id AND p.topic IN (e.topic, '*')
    AND e.status = 'available' AND e.held = '{}'
  UNION ALL SELECT FROM external_task e WHERE e.held <> '{}' AND 'paused' = ANY (e.held) AND e.tenant_id = p.tenant_id
    AND (p.kind = 'external_task' AND p.topic IN (e.topic, '*') OR p.kind IN ('definition', 'element') AND EXISTS (
      SELECT FROM process_definition d WHERE d.id = e.definition_id AND p.topic IN (d.key, d.key || '/' || e.element_id)))
  UNION ALL SELECT FROM delivery v WHERE v.kind = p.kind AND v.tenant_id = p.tenant_id AND v.status = 'available' AND v.held = '{}'
    AND v.available_at <= baton_now() AND (p.topic = '' OR v.route IN (
      SELECT t.id::text FROM destination t WHERE t.tenant_id = p.tenant_id AND t.kind = p.kind AND t.name = p.topic))
  UNION ALL SELECT FROM delivery v WHERE v.held <> '{}' AND v.ended_at IS NULL AND 'paused' = ANY (v.held) AND v.tenant_id = p.tenant_id
    AND (v.kind = p.kind AND p.topic = '' OR p.kind IN ('definition', 'element') AND EXISTS (
      SELECT FROM process_definition d WHERE d.id = v.definition_id AND p.topic IN (d.key, d.key || '/' || v.element_id)))
  LIMIT :most) item) waiting
WHERE p.tenant_id = :tenant ORDER BY p.paused_at DESC, p.kind, p.topic
"""
