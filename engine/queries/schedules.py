"""When a version of a process starts by itself: its start timers, what they did last and what was missed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection

from engine.queries.rows import Page, page_of, rows, time_cursor


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


@dataclass(frozen=True, slots=True)
class ProcessSchedule(ScheduleRow):
    """The same, with the version that it starts."""

    key: str
    version: int
    held: list[str]


def schedules_of_all(
    conn: Connection, *, tenant_id: str = "", key: str | None = None, cursor: str | None = None, limit: int = 50
) -> Page[ProcessSchedule]:
    """One page of every start timer that is to come, the next first. Raises BadCursor."""
    after = time_cursor(cursor)
    params = {"tenant": tenant_id, "key": key, "limit": limit + 1, "after_at": after and after[0], "after_id": after and after[1]}
    found = rows(conn, ProcessSchedule, SCHEDULES_OF_ALL, params)
    return page_of(found, limit=limit, position=lambda schedule: (schedule.due_at, schedule.job_id))


def schedules(conn: Connection, definition_id: UUID) -> list[ScheduleRow]:
    """Those of one version, the next first; at most 100. None: nothing starts it by time, or nothing will any more."""
    return rows(conn, ScheduleRow, SCHEDULES, {"definition": definition_id})


_SCHEDULE = """
SELECT j.id AS job_id, j.element_id, j.status, j.due_at, extract(epoch FROM j.due_at - baton_now())::float AS wait_seconds,
       coalesce((j.payload ->> 'missed')::int, 0) AS missed,
       f.due_at AS last_due_at, f.fired_at AS last_fired_at, f.instance_id AS last_instance_id{more}
  FROM job AS j LEFT JOIN LATERAL (
    SELECT due_at, fired_at, instance_id FROM timer_firing
     WHERE tenant_id = j.tenant_id AND schedule_id = CAST(j.payload ->> 'schedule' AS uuid) ORDER BY due_at DESC LIMIT 1) AS f ON true
"""

SCHEDULES = f"""{_SCHEDULE.format(more="")}
 WHERE j.definition_id = :definition AND j.kind = 'start_timer'
 ORDER BY j.due_at, j.id LIMIT 100
"""

_ALL = _SCHEDULE.format(more=", d.key, d.version, j.held")
SCHEDULES_OF_ALL = f"""{_ALL}
  JOIN process_definition AS d ON d.id = j.definition_id
 WHERE j.tenant_id = :tenant AND j.kind = 'start_timer' AND (CAST(:key AS text) IS NULL OR d.key = :key)
   AND (CAST(:after_at AS timestamptz) IS NULL OR (j.due_at, j.id) > (:after_at, :after_id))
 ORDER BY j.due_at, j.id LIMIT :limit
"""
