"""When a version of a process starts by itself: its start timers, what they did last and what was missed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection

from engine.queries.rows import rows


@dataclass(frozen=True, slots=True)
class ScheduleRow:
    """A start timer that is to come. `missed`: occurrences that passed without a start, after the last one and before this one."""

    job_id: UUID
    element_id: str
    status: str
    due_at: datetime
    wait_seconds: float
    missed: int
    last_due_at: datetime | None
    last_fired_at: datetime | None
    last_instance_id: UUID | None


def schedules(conn: Connection, definition_id: UUID) -> list[ScheduleRow]:
    """Those of one version, the next first; at most 100. None: nothing starts it by time, or nothing will any more."""
    return rows(conn, ScheduleRow, SCHEDULES, {"definition": definition_id})


SCHEDULES = """
SELECT j.id AS job_id, j.element_id, j.status, j.due_at, extract(epoch FROM j.due_at - baton_now())::float AS wait_seconds,
       coalesce((j.payload ->> 'missed')::int, 0) AS missed,
       f.due_at AS last_due_at, f.fired_at AS last_fired_at, f.instance_id AS last_instance_id
  FROM job AS j LEFT JOIN LATERAL (
    SELECT due_at, fired_at, instance_id FROM timer_firing
     WHERE tenant_id = j.tenant_id AND schedule_id = CAST(j.payload ->> 'schedule' AS uuid) ORDER BY due_at DESC LIMIT 1) AS f ON true
 WHERE j.definition_id = :definition AND j.kind = 'start_timer'
 ORDER BY j.due_at, j.id LIMIT 100
"""
