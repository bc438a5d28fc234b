"""Jobs: for operators."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection

from engine.queries.rest.listing import Filter, Listing, Wanted, after, before, equals, is_id, is_id_in, tenants


@dataclass(frozen=True, slots=True)
class RestJob:
    """`retries`: attempts that are left. `suspended`: held for it. What was thrown has left its process: no instance, no definition."""

    id: UUID
    instance_id: UUID | None
    token_id: UUID | None
    definition_id: UUID | None
    definition_key: str | None
    element_id: str
    suspended: bool
    due_at: datetime
    priority: int
    retries: int
    last_error: str | None
    created_at: datetime
    tenant_id: str


_SUSPENDED = "'suspended' = ANY (j.held)"
# The running attempt is one that is left; what rests beside an incident has none, however many its maximum would allow.
_LEFT = "(CASE j.status WHEN 'failed' THEN 0 ELSE greatest(0, j.max_attempts - j.attempts + (j.status = 'leased')::int) END)"
JOBS = Listing(
    columns=f"""j.id, j.instance_id, j.token_id, j.definition_id, d.key AS definition_key, j.element_id,
      {_SUSPENDED} AS suspended, j.due_at,
      j.priority::int AS priority, {_LEFT} AS retries, j.last_error, j.created_at, j.tenant_id""",
    source="job j LEFT JOIN process_definition d ON d.id = j.definition_id",
    always="j.tenant_id = :tenant",
    filters={
        **tenants("j.tenant_id"),
        "includeJobsWithoutTenantId": Filter("truth", "true"),
        "jobId": is_id("j.id"),
        "jobIds": is_id_in("j.id"),
        "processInstanceId": is_id("j.instance_id"),
        "processInstanceIds": is_id_in("j.instance_id"),
        "executionId": is_id("j.token_id"),
        "processDefinitionId": is_id("j.definition_id"),
        "processDefinitionKey": equals("d.key"),
        "activityId": equals("j.element_id"),
        "failedActivityId": Filter("text", "j.last_error IS NOT NULL AND j.element_id = {}"),
        "withRetriesLeft": Filter("truth", f"{_LEFT} > 0"),
        "noRetriesLeft": Filter("truth", f"{_LEFT} <= 0"),
        "withException": Filter("truth", "j.last_error IS NOT NULL"),
        "exceptionMessage": equals("j.last_error"),
        "executable": Filter("truth", f"j.status = 'available' AND j.held = '{{{{}}}}' AND j.available_at <= baton_now() AND {_LEFT} > 0"),
        "timers": Filter("truth", "j.kind IN ('timer', 'start_timer')"),
        "messages": Filter("truth", "j.kind NOT IN ('timer', 'start_timer')"),
        "priorityLowerThanOrEquals": Filter("whole", "j.priority <= {}"),
        "priorityHigherThanOrEquals": Filter("whole", "j.priority >= {}"),
        "active": Filter("truth", f"NOT {_SUSPENDED}"),
        "suspended": Filter("truth", _SUSPENDED),
        "dueBefore": before("j.due_at"),
        "dueAfter": after("j.due_at"),
    },
    sorts={
        "jobId": "j.id",
        "jobDueDate": "j.due_at",
        "jobRetries": _LEFT,
        "jobPriority": "j.priority",
        "processInstanceId": "j.instance_id",
        "processDefinitionId": "j.definition_id",
        "processDefinitionKey": "d.key",
        "executionId": "j.token_id",
        "tenantId": "j.tenant_id",
    },
    unique="j.id",
)


def rest_jobs(conn: Connection, wanted: Wanted, *, tenant_id: str) -> list[RestJob]:
    """Raises TooMany."""
    return JOBS.rows(conn, RestJob, wanted, {"tenant": tenant_id})


def count_jobs(conn: Connection, wanted: Wanted, *, tenant_id: str) -> int:
    return JOBS.count(conn, wanted, {"tenant": tenant_id})


def rest_job(conn: Connection, job_id: UUID, *, tenant_id: str) -> RestJob | None:
    return JOBS.one(conn, RestJob, "j.id = :id", {"tenant": tenant_id, "id": job_id})
