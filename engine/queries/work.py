"""Lists of durable work: jobs and external tasks by status and kind, leases by what is left of them, failed work by incident."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection

from engine.core.lifecycle import WORK as WORK_MAP
from engine.queries.rows import PAGE, Page, capped, page_of, record_cursor, rows, scalar, time_cursor

JOB_KINDS = ("service", "timer", "start_timer", "message", "cancel", "continue", "throw", "signal", "hold")


@dataclass(frozen=True, slots=True)
class WorkItem:
    """`work`: job | external_task. `wait_seconds`: until it may be picked up; negative when it is due.

    What is thrown has left its process behind: it has no definition.
    """

    work: str
    id: UUID
    kind: str
    topic: str
    element_id: str
    status: str
    held: list[str]
    due_at: datetime
    available_at: datetime
    wait_seconds: float
    priority: int
    attempts: int
    max_attempts: int
    lease_number: int
    lease_owner: str | None
    lease_expires_at: datetime | None
    last_error: str | None
    created_at: datetime
    instance_id: UUID | None
    business_key: str | None
    definition_id: UUID | None
    definition_key: str | None
    definition_name: str | None
    version: int | None


def work_items(
    conn: Connection, *, tenant_id: str = "", status: str = "", kind: str = "", topic: str = "", due: bool = False,
    instance_id: UUID | None = None, item_id: UUID | None = None, cursor: str | None = None, limit: int = PAGE,
) -> Page[WorkItem]:  # fmt: skip
    """Jobs and external tasks, newest first. `kind`: a job's kind, or "external". Raises BadCursor.

    By key, whose first part is the time at which it was made (engine.ids): an index on the time of creation would be entered
    by every acquisition.
    """
    after = time_cursor(cursor)
    where = ["w.tenant_id = :tenant"]
    if status in WORK_MAP:
        where.append(f"w.status = '{status}'")  # a literal, so that partial indexes serve
    if due:
        where.append("w.status = 'available' AND w.held = '{}' AND w.available_at <= baton_now()")
    if topic:
        where.append("w.topic = :topic")
    if instance_id is not None:
        where.append("w.instance_id = :instance")
    if item_id is not None:
        where.append("w.id = :item")
    if after is not None:
        where.append("w.id < :after_id")
    condition = " AND ".join(where)
    branches = []
    if kind != "external":
        branches.append(_JOBS.format(where=condition + (" AND w.kind = :kind" if kind in JOB_KINDS else "")))
    if kind not in JOB_KINDS:
        branches.append(_EXTERNAL.format(where=condition))
    sql = f"SELECT * FROM ({' UNION ALL '.join(branches)}) AS item ORDER BY id DESC LIMIT :limit"
    params = {
        "tenant": tenant_id, "kind": kind, "topic": topic, "instance": instance_id, "item": item_id,
        "limit": limit + 1, "after_id": after and after[1],
    }  # fmt: skip
    found = rows(conn, WorkItem, sql, params)
    return page_of(found, limit=limit, position=lambda item: (item.created_at, item.id))


def work_item(conn: Connection, work: str, item_id: UUID, *, tenant_id: str = "") -> WorkItem | None:
    """One job or external task that is not over."""
    sql = {"job": _JOBS, "external_task": _EXTERNAL}[work].format(where="w.id = :item AND w.tenant_id = :tenant")
    return next(iter(rows(conn, WorkItem, sql, {"item": item_id, "tenant": tenant_id, "limit": 1})), None)


def counts_by_status(conn: Connection, *, tenant_id: str = "", cap: int = 1_000) -> dict[str, int]:
    """How many jobs and external tasks there are in each status that is not final, each at most cap + 1."""
    return {
        status: int(scalar(conn, "SELECT " + capped(
            f"(SELECT 1 FROM job WHERE tenant_id = :tenant AND status = '{status}' LIMIT {cap + 1})"
            f" UNION ALL (SELECT 1 FROM external_task WHERE tenant_id = :tenant AND status = '{status}' LIMIT {cap + 1})", cap=cap),
            {"tenant": tenant_id}))
        for status in ("available", "leased", "failed")
    }  # fmt: skip


# ---- leases


@dataclass(frozen=True, slots=True)
class LeaseRow:
    """`left_seconds` is negative once the lease ended. `host` None: the owner is not one of our workers (an API client)."""

    work: str
    id: UUID
    kind: str
    topic: str
    element_id: str | None
    instance_id: UUID | None
    business_key: str | None
    definition_id: UUID | None
    definition_name: str | None
    owner: str
    host: str | None
    pid: int | None
    worker_started_at: datetime | None
    heartbeat_at: datetime | None
    heartbeat_age_seconds: float | None
    number: int
    attempts: int
    max_attempts: int
    leased_at: datetime
    expires_at: datetime
    left_seconds: float
    total_seconds: float


def leases(
    conn: Connection, *, tenant_id: str = "", q: str = "", work: str = "", owner: str = "", expired: bool = False,
    item_id: UUID | None = None, cursor: str | None = None, limit: int = PAGE,
) -> Page[LeaseRow]:  # fmt: skip
    """Everything that is leased, the ended ones first, then those that end soonest. Raises BadCursor."""
    after = time_cursor(cursor)
    where = ["w.tenant_id = :tenant", "w.status = 'leased'"]
    if q:
        where.append(
            "(strpos(lower(coalesce(i.business_key, '')), lower(:q)) > 0 OR strpos(lower(coalesce(worker.host, '')), lower(:q)) > 0"
            " OR starts_with(w.lease_owner, :q) OR w.instance_id::text = :q OR w.element_id = :q)"
        )
    if owner:
        where.append("w.lease_owner = :owner")
    if expired:
        where.append("w.lease_expires_at < baton_now()")
    if item_id is not None:
        where.append("w.id = :item")
    if after is not None:
        where.append("(w.lease_expires_at, w.id) > (:after_at, :after_id)")
    tables = [work] if work in _LEASED else list(_LEASED)
    branches = " UNION ALL ".join(_LEASES.format(where=" AND ".join(where), **_LEASED[table]) for table in tables)
    sql = f"SELECT * FROM ({branches}) AS lease ORDER BY expires_at, id LIMIT :limit"
    params = {
        "tenant": tenant_id, "q": q, "owner": owner, "item": item_id, "limit": limit + 1,
        "after_at": after and after[0], "after_id": after and after[1],
    }  # fmt: skip
    found = rows(conn, LeaseRow, sql, params)
    return page_of(found, limit=limit, position=lambda lease: (lease.expires_at, lease.id))


@dataclass(frozen=True, slots=True)
class LeaseCounts:
    total: int
    ended: int
    soon: int


def lease_counts(conn: Connection, *, tenant_id: str = "", cap: int = 1_000) -> LeaseCounts:
    """All leases, those that ended, those that end within ten seconds; each at most cap + 1."""
    return rows(conn, LeaseCounts, LEASE_COUNTS, {"tenant": tenant_id, "cap": cap + 1})[0]


@dataclass(frozen=True, slots=True)
class LateCompletion:
    """A completion, failure or renewal that came after its lease was gone, and changed nothing."""

    id: int
    at: datetime
    command: str
    item_id: UUID | None
    actor: str
    detail: dict[str, Any]


def late_completions(conn: Connection, *, tenant_id: str = "", cursor: str | None = None, limit: int = 20) -> Page[LateCompletion]:
    """The refused ones of the last 24 hours, newest first. Raises BadCursor."""
    after = record_cursor(cursor)
    params = {"tenant": tenant_id, "limit": limit + 1, "after_at": after and after[0], "after_id": after and after[1]}
    return page_of(rows(conn, LateCompletion, LATE, params), limit=limit, position=lambda late: (late.at, late.id))


# ---- failed work


@dataclass(frozen=True, slots=True)
class FailedItem:
    """An open incident and the leaf it stands beside. `work`: job | external_task | delivery | token."""

    incident_id: UUID
    work: str
    id: UUID
    kind: str
    topic: str
    message: str
    detail: str
    element_id: str | None
    attempts: int | None
    max_attempts: int | None
    lease_number: int | None
    instance_id: UUID | None
    business_key: str | None
    definition_id: UUID | None
    definition_key: str | None
    definition_name: str | None
    version: int | None
    created_at: datetime


def failed_items(
    conn: Connection, *, tenant_id: str = "", q: str = "", key: str = "", work: str = "", item_id: UUID | None = None,
    incident_id: UUID | None = None, instance_id: UUID | None = None, cursor: str | None = None, limit: int = 100,
) -> Page[FailedItem]:  # fmt: skip
    """What waits for a person, newest first. `q`: part of the error, of the business key, or an element. Raises BadCursor."""
    after = time_cursor(cursor)
    where = ["n.tenant_id = :tenant"]
    if q:
        where.append(
            "(strpos(lower(n.message), lower(:q)) > 0 OR strpos(lower(coalesce(i.business_key, '')), lower(:q)) > 0 OR n.element_id = :q)"
        )
    if key:
        where.append("d.key = :key")
    if work in ("job", "external_task", "delivery", "token"):
        where.append(f"n.{work}_id IS NOT NULL")
    if item_id is not None:
        where.append(":item IN (n.job_id, n.external_task_id, n.delivery_id, n.token_id)")
    if incident_id is not None:
        where.append("n.id = :incident")
    if instance_id is not None:
        where.append("n.instance_id = :instance")
    if after is not None:
        where.append("(n.created_at, n.id) < (:after_at, :after_id)")
    params = {
        "tenant": tenant_id, "q": q, "key": key, "item": item_id, "incident": incident_id, "instance": instance_id,
        "limit": limit + 1, "after_at": after and after[0], "after_id": after and after[1],
    }  # fmt: skip
    found = rows(conn, FailedItem, FAILED.format(where=" AND ".join(where)), params)
    return page_of(found, limit=limit, position=lambda item: (item.created_at, item.incident_id))


# What is thrown belongs to no instance; the case that threw it is shown.
_ITEM = """w.element_id, w.status, w.held, w.due_at, w.available_at,
       extract(epoch FROM w.available_at - baton_now())::float AS wait_seconds, w.priority::int, w.attempts, w.max_attempts,
       w.lease_number, w.lease_owner, w.lease_expires_at, w.last_error, w.created_at, i.id AS instance_id, i.business_key,
       d.id AS definition_id, d.key AS definition_key, coalesce(nullif(d.name, ''), d.key) AS definition_name, d.version"""

_JOBS = f"""(SELECT 'job' AS work, w.id, w.kind, w.topic, {_ITEM}
  FROM job AS w LEFT JOIN process_definition AS d ON d.id = w.definition_id
  LEFT JOIN process_instance AS i ON i.id = coalesce(w.instance_id, w.root_id)
 WHERE {{where}} ORDER BY w.id DESC LIMIT :limit)"""

_EXTERNAL = f"""(SELECT 'external_task' AS work, w.id, 'external' AS kind, w.topic, {_ITEM}
  FROM external_task AS w JOIN process_definition AS d ON d.id = w.definition_id LEFT JOIN process_instance AS i ON i.id = w.instance_id
 WHERE {{where}} ORDER BY w.id DESC LIMIT :limit)"""

_LEASED = {
    "job": {"table": "job", "kind": "w.kind", "topic": "w.topic"},
    "external_task": {"table": "external_task", "kind": "'external'", "topic": "w.topic"},
    "delivery": {"table": "delivery", "kind": "w.kind", "topic": "w.destination"},
}

# Total is what this lease was given when it was last extended: it may have been renewed, so never less than what is left.
_LEASES = """(SELECT '{table}' AS work, w.id, {kind} AS kind, {topic} AS topic, w.element_id, w.instance_id, i.business_key,
       d.id AS definition_id, coalesce(nullif(d.name, ''), d.key) AS definition_name,
       w.lease_owner AS owner, worker.host, worker.pid, worker.started_at AS worker_started_at,
       worker.heartbeat_at, extract(epoch FROM baton_now() - worker.heartbeat_at)::float AS heartbeat_age_seconds,
       w.lease_number AS number, w.attempts, w.max_attempts, w.leased_at, w.lease_expires_at AS expires_at,
       extract(epoch FROM w.lease_expires_at - baton_now())::float AS left_seconds,
       extract(epoch FROM w.lease_expires_at - w.leased_at)::float AS total_seconds
  FROM {table} AS w
  LEFT JOIN process_instance AS i ON i.id = w.instance_id
  LEFT JOIN process_definition AS d ON d.id = w.definition_id
  LEFT JOIN worker ON worker.id::text = w.lease_owner
 WHERE {where} ORDER BY w.lease_expires_at, w.id LIMIT :limit)"""

LEASE_COUNTS = """
SELECT count(*)::int AS total, count(*) FILTER (WHERE lease_expires_at < baton_now())::int AS ended,
       count(*) FILTER (WHERE lease_expires_at >= baton_now() AND lease_expires_at < baton_now() + interval '10 seconds')::int AS soon
  FROM ("""
LEASE_COUNTS += " UNION ALL ".join(
    f"(SELECT lease_expires_at FROM {table} WHERE tenant_id = :tenant AND status = 'leased' ORDER BY lease_expires_at LIMIT :cap)"
    for table in _LEASED
)
LEASE_COUNTS += ") AS held"

LATE = """
SELECT id, at, command, item_id, actor, detail FROM refusal
 WHERE tenant_id = :tenant AND at > baton_now() - interval '24 hours' AND reason = 'lease_lost'
   AND (CAST(:after_at AS timestamptz) IS NULL OR (at, id) < (:after_at, :after_id))
 ORDER BY at DESC, id DESC LIMIT :limit
"""

FAILED = """
SELECT n.id AS incident_id,
       CASE WHEN n.job_id IS NOT NULL THEN 'job' WHEN n.external_task_id IS NOT NULL THEN 'external_task'
            WHEN n.delivery_id IS NOT NULL THEN 'delivery' ELSE 'token' END AS work,
       coalesce(n.job_id, n.external_task_id, n.delivery_id, n.token_id) AS id,
       coalesce(j.kind, v.kind, CASE WHEN e.id IS NOT NULL THEN 'external' END, n.kind) AS kind,
       coalesce(j.topic, e.topic, v.destination, '') AS topic, n.message, n.detail, n.element_id,
       coalesce(j.attempts, e.attempts, v.attempts) AS attempts,
       coalesce(j.max_attempts, e.max_attempts, v.max_attempts) AS max_attempts,
       coalesce(j.lease_number, e.lease_number, v.lease_number) AS lease_number,
       i.id AS instance_id, i.business_key, d.id AS definition_id, d.key AS definition_key,
       coalesce(nullif(d.name, ''), d.key) AS definition_name, d.version, n.created_at
  FROM incident AS n
  LEFT JOIN job AS j ON j.id = n.job_id
  LEFT JOIN external_task AS e ON e.id = n.external_task_id
  LEFT JOIN delivery AS v ON v.id = n.delivery_id
  LEFT JOIN process_instance AS i ON i.id = coalesce(n.instance_id, n.root_id)
  LEFT JOIN process_definition AS d ON d.id = n.definition_id
 WHERE {where}
 ORDER BY n.created_at DESC, n.id DESC LIMIT :limit
"""
