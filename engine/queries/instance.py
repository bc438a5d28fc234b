"""One instance, whole: where it stands, what it waits for, its variables, its past."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection

from engine.queries.rows import Page, cursor_of, number_cursor, row, rows


@dataclass(frozen=True, slots=True)
class Instance:
    id: UUID
    root_id: UUID
    parent_id: UUID | None
    parent_name: str | None  # of the process that called it
    definition_id: UUID
    definition_key: str
    definition_name: str
    version: int
    business_key: str | None
    status: str
    mark: str | None
    revision: int
    started_by: str
    started_by_name: str
    started_at: datetime
    ended_at: datetime | None
    ended_by: str | None
    ended_by_name: str | None
    final_variables: dict[str, Any] | None
    now: datetime


@dataclass(frozen=True, slots=True)
class Token:
    """`owns_scope`: it stands for a subprocess whose own tokens are listed too. `joined`: distinct flows that arrived here.

    `memory`: what its conditions were last (engine.core.conditions). `compensates`: it stands for what is being undone.
    """

    id: UUID
    scope_id: UUID
    element_id: str
    flow_id: str | None
    status: str
    arrived_at: datetime
    owns_scope: bool
    joined: int
    memory: dict[str, Any] | None = None
    compensates: bool = False
    calls: UUID | None = None  # the instance that it has called and waits for


@dataclass(frozen=True, slots=True)
class VariableRow:
    """A variable of the process scope (`scope_element` None) or of a subprocess."""

    name: str
    type: str
    value: Any
    revision: int
    scope_element: str | None
    changed_by: str | None
    changed_by_name: str | None
    changed_at: datetime | None


@dataclass(frozen=True, slots=True)
class TaskRow:
    id: UUID
    token_id: UUID | None
    element_id: str
    name: str
    status: str
    assignee: str | None
    assignee_name: str | None
    assigned_at: datetime | None
    candidate_users: list[str]
    candidate_groups: list[str]
    due_at: datetime | None
    created_at: datetime
    ended_at: datetime | None
    ended_by: str | None
    ended_by_name: str | None


@dataclass(frozen=True, slots=True)
class WorkRow:
    """A job or an external task, or a delivery. `work` says which."""

    work: str
    id: UUID
    token_id: UUID | None
    kind: str
    topic: str
    element_id: str | None
    status: str
    held: list[str]
    due_at: datetime
    available_at: datetime
    wait_seconds: float
    attempts: int
    max_attempts: int
    lease_number: int
    lease_owner: str | None
    lease_expires_at: datetime | None
    leased_at: datetime | None
    lease_left_seconds: float | None
    host: str | None
    pid: int | None
    last_error: str | None
    created_at: datetime
    ended_at: datetime | None
    missed: int = 0  # of a cycle: how many occurrences passed without a firing before this one


@dataclass(frozen=True, slots=True)
class IncidentRow:
    """`work` and `item_id`: what a retry is asked for."""

    id: UUID
    kind: str
    message: str
    detail: str
    element_id: str | None
    token_id: UUID | None
    work: str
    item_id: UUID
    created_at: datetime


@dataclass(frozen=True, slots=True)
class SubscriptionRow:
    """`same_name`: stored messages of this name that have another key; `near_misses.py` says which of them nearly fit."""

    id: UUID
    kind: str  # catch: a message | signal
    token_id: UUID | None
    element_id: str
    message_name: str
    correlation_key: str
    created_at: datetime
    same_name: int


@dataclass(frozen=True, slots=True)
class Called:
    """`incidents`: those of the called instance itself, not of what that one calls."""

    id: UUID
    definition_key: str
    definition_name: str
    version: int
    status: str
    business_key: str | None
    incidents: int


@dataclass(frozen=True, slots=True)
class Event:
    """`by_service`: the actor is a service account. `via`: the program that wrote it, by the name of its connection."""

    id: int
    at: datetime
    kind: str
    definition_id: UUID | None
    element_id: str | None
    actor: str
    actor_name: str
    by_service: bool
    via: str
    item_id: UUID | None
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Flow:
    id: str | None
    taken: int


def instance(conn: Connection, instance_id: UUID, *, tenant_id: str = "") -> Instance | None:
    return row(conn, Instance, INSTANCE, {"id": instance_id, "tenant": tenant_id})


def tokens(conn: Connection, instance_id: UUID) -> list[Token]:
    """Where it stands, oldest first; at most 500."""
    return rows(conn, Token, TOKENS, {"id": instance_id})


def variables(conn: Connection, instance_id: UUID) -> list[VariableRow]:
    """What it knows now, the process scope first; at most 1,000."""
    return rows(conn, VariableRow, VARIABLES, {"id": instance_id})


def tasks(conn: Connection, instance_id: UUID) -> list[TaskRow]:
    """Its user tasks, the open ones first; at most 200."""
    return rows(conn, TaskRow, TASKS, {"id": instance_id})


def work(conn: Connection, instance_id: UUID) -> list[WorkRow]:
    """Its jobs and external tasks that are not over, and its deliveries; at most 200 of each."""
    return rows(conn, WorkRow, WORK, {"id": instance_id})


def incidents(conn: Connection, instance_id: UUID) -> list[IncidentRow]:
    """Its open incidents, oldest first; at most 200."""
    return rows(conn, IncidentRow, INCIDENTS, {"id": instance_id})


def subscriptions(conn: Connection, instance_id: UUID, *, tenant_id: str = "") -> list[SubscriptionRow]:
    """The messages and signals that it waits for; at most 200."""
    return rows(conn, SubscriptionRow, SUBSCRIPTIONS, {"id": instance_id, "tenant": tenant_id})


def called(conn: Connection, instance_id: UUID) -> list[Called]:
    """The instances that it called, those that run first, the newest first; at most 200."""
    return rows(conn, Called, CALLED, {"id": instance_id})


def flows_taken(conn: Connection, instance_id: UUID) -> dict[str, int]:
    """How often each sequence flow was taken, from the last 5,000 events."""
    return {flow.id: flow.taken for flow in rows(conn, _Flow, FLOWS, {"id": instance_id}) if flow.id}


def timeline(
    conn: Connection, instance_id: UUID, *, tenant_id: str = "", cursor: str | None = None, limit: int = 30, everything: bool = False
) -> Page[Event]:
    """Its past, newest first. Without `everything` the walk along flows and elements is left out. Raises BadCursor."""
    params = {
        "id": instance_id,
        "tenant": tenant_id,
        "before": number_cursor(cursor),
        "limit": limit + 1,
        "left_out": [] if everything else list(STEPS),
    }
    return _newest_first(rows(conn, Event, TIMELINE, params), limit)


def item_history(conn: Connection, item_id: UUID, *, tenant_id: str = "", limit: int = 50) -> list[Event]:
    """Everything that happened to one job, external task, delivery or user task, newest first."""
    return rows(conn, Event, ITEM, {"item": item_id, "tenant": tenant_id, "limit": limit})


def _newest_first(found: list[Event], limit: int) -> Page[Event]:
    if len(found) <= limit:
        return Page(tuple(found))
    return Page(tuple(found[:limit]), cursor_of(found[limit - 1].id))


STEPS = ("element_entered", "element_left", "flow_taken", "job_created", "external_task_created", "join_passed")

INSTANCE = """
SELECT i.id, i.root_id, i.parent_id,
       (SELECT coalesce(nullif(c.name, ''), c.key) FROM process_instance p JOIN process_definition c ON c.id = p.definition_id
         WHERE p.id = i.parent_id) AS parent_name,
       i.definition_id, d.key AS definition_key, coalesce(nullif(d.name, ''), d.key) AS definition_name,
       d.version, i.business_key, i.status, i.mark, i.revision, i.started_by,
       coalesce(starter.display_name, i.started_by) AS started_by_name,
       i.started_at, i.ended_at, i.ended_by, coalesce(ender.display_name, i.ended_by) AS ended_by_name, i.final_variables,
       baton_now() AS now
  FROM process_instance AS i
  JOIN process_definition AS d ON d.id = i.definition_id
  LEFT JOIN person AS starter ON starter.tenant_id = i.tenant_id AND starter.username = i.started_by
  LEFT JOIN person AS ender ON ender.tenant_id = i.tenant_id AND ender.username = i.ended_by
 WHERE i.id = :id AND i.tenant_id = :tenant
"""

TOKENS = """
SELECT t.id, t.scope_id, t.element_id, t.flow_id, t.status, t.arrived_at,
       EXISTS (SELECT 1 FROM scope WHERE scope.token_id = t.id AND scope.instance_id = t.instance_id) AS owns_scope,
       (SELECT count(DISTINCT other.flow_id)::int FROM token AS other
         WHERE other.scope_id = t.scope_id AND other.element_id = t.element_id AND other.status = 'joining') AS joined,
       t.memory,
       EXISTS (SELECT 1 FROM scope WHERE scope.id = t.scope_id AND scope.counters ? 'compensating') AS compensates,
       (SELECT scope.instance_id FROM scope WHERE scope.token_id = t.id AND scope.instance_id <> t.instance_id) AS calls
  FROM token AS t WHERE t.instance_id = :id
 ORDER BY t.arrived_at, t.id LIMIT 500
"""

VARIABLES = """
WITH changed AS (
  SELECT DISTINCT ON (name) name, actor, at
    FROM (SELECT id, actor, at, data FROM history WHERE instance_id = :id AND kind IN ('variables_set', 'instance_started')
           ORDER BY id DESC LIMIT 1000) AS latest
    CROSS JOIN LATERAL jsonb_object_keys(
      CASE WHEN jsonb_typeof(data -> 'variables') = 'object' THEN data -> 'variables' ELSE '{}' END
    ) AS name
   ORDER BY name, id DESC
)
SELECT v.name, v.type, v.value, v.revision, s.element_id AS scope_element,
       changed.actor AS changed_by, coalesce(person.display_name, changed.actor) AS changed_by_name, changed.at AS changed_at
  FROM scope AS s JOIN variable AS v ON v.scope_id = s.id
  LEFT JOIN changed ON changed.name = v.name
  LEFT JOIN process_instance AS i ON i.id = s.instance_id
  LEFT JOIN person ON person.tenant_id = i.tenant_id AND person.username = changed.actor
 WHERE s.instance_id = :id AND NOT s.counters ? 'kept' -- the results of a loop become a variable when it ends
 ORDER BY cardinality(s.path), s.element_id NULLS FIRST, s.id, v.name LIMIT 1000
"""

TASKS = """
SELECT t.id, t.token_id, t.element_id, t.name, t.status, t.assignee, coalesce(holder.display_name, t.assignee) AS assignee_name,
       t.assigned_at, t.candidate_users, t.candidate_groups, t.due_at, t.created_at, t.ended_at, t.ended_by,
       coalesce(ender.display_name, t.ended_by) AS ended_by_name
  FROM user_task AS t
  LEFT JOIN person AS holder ON holder.tenant_id = t.tenant_id AND holder.username = t.assignee
  LEFT JOIN person AS ender ON ender.tenant_id = t.tenant_id AND ender.username = t.ended_by
 WHERE t.instance_id = :id
 ORDER BY (t.status IN ('open', 'claimed')) DESC, t.created_at DESC, t.id LIMIT 200
"""

_WORK_COLUMNS = """w.element_id, w.status, w.held, w.due_at, w.available_at,
       extract(epoch FROM w.available_at - baton_now())::float AS wait_seconds,
       w.attempts, w.max_attempts, w.lease_number, w.lease_owner, w.lease_expires_at, w.leased_at,
       extract(epoch FROM w.lease_expires_at - baton_now())::float AS lease_left_seconds,
       worker.host, worker.pid, w.last_error, w.created_at, w.ended_at"""
_MISSED = "coalesce((w.payload ->> 'missed')::int, 0) AS missed"

WORK = f"""
(SELECT 'job' AS work, w.id, w.token_id, w.kind, w.topic, {_WORK_COLUMNS}, {_MISSED}
   FROM job AS w LEFT JOIN worker ON worker.id::text = w.lease_owner
  WHERE w.instance_id = :id ORDER BY w.created_at, w.id LIMIT 200)
UNION ALL
(SELECT 'external_task', w.id, w.token_id, 'external', w.topic, {_WORK_COLUMNS}, 0
   FROM external_task AS w LEFT JOIN worker ON worker.id::text = w.lease_owner
  WHERE w.instance_id = :id ORDER BY w.created_at, w.id LIMIT 200)
UNION ALL
(SELECT 'delivery', w.id, NULL, w.kind, w.destination, {_WORK_COLUMNS}, 0
   FROM delivery AS w LEFT JOIN worker ON worker.id::text = w.lease_owner
  WHERE w.instance_id = :id ORDER BY w.created_at DESC, w.id LIMIT 200)
"""

INCIDENTS = """
SELECT id, kind, message, detail, element_id, token_id,
       CASE WHEN job_id IS NOT NULL THEN 'job' WHEN external_task_id IS NOT NULL THEN 'external_task'
            WHEN delivery_id IS NOT NULL THEN 'delivery' ELSE 'token' END AS work,
       coalesce(job_id, external_task_id, delivery_id, token_id) AS item_id, created_at
  FROM incident WHERE instance_id = :id ORDER BY created_at, id LIMIT 200
"""

SUBSCRIPTIONS = """
SELECT s.id, s.kind, s.token_id, s.element_id, s.message_name, s.correlation_key, s.created_at,
       (SELECT count(*)::int FROM (SELECT 1 FROM message AS m
         WHERE m.tenant_id = :tenant AND s.kind = 'catch' AND m.name = s.message_name AND m.correlation_key <> s.correlation_key
           AND m.expires_at > baton_now() LIMIT 100) AS others) AS same_name
  FROM subscription AS s WHERE s.instance_id = :id ORDER BY s.created_at, s.id LIMIT 200
"""

CALLED = """
SELECT i.id, d.key AS definition_key, coalesce(nullif(d.name, ''), d.key) AS definition_name, d.version, i.status, i.business_key,
       (SELECT count(*)::int FROM incident AS n WHERE n.instance_id = i.id) AS incidents
  FROM process_instance AS i JOIN process_definition AS d ON d.id = i.definition_id
 WHERE i.root_id = (SELECT root_id FROM process_instance WHERE id = :id) AND i.parent_id = :id
 ORDER BY i.status <> 'running', i.started_at DESC, i.id DESC LIMIT 200
"""

FLOWS = """
SELECT coalesce(data ->> 'flow_id', data ->> 'flow', element_id) AS id, count(*)::int AS taken FROM
  (SELECT data, element_id FROM history WHERE instance_id = :id AND kind = 'flow_taken' ORDER BY id DESC LIMIT 5000) AS latest
 GROUP BY 1
"""

_EVENT = """
SELECT h.id, h.at, h.kind, h.definition_id, h.element_id, h.actor, coalesce(person.display_name, h.actor) AS actor_name,
       coalesce(person.kind = 'service', false) AS by_service, h.via, h.item_id, h.data
  FROM history AS h LEFT JOIN person ON person.tenant_id = :tenant AND person.username = h.actor
"""

TIMELINE = f"""{_EVENT}
 WHERE h.instance_id = :id AND h.tenant_id = :tenant AND h.kind <> ALL(CAST(:left_out AS text[]))
   AND (CAST(:before AS bigint) IS NULL OR h.id < :before)
 ORDER BY h.id DESC LIMIT :limit
"""

ITEM = f"""{_EVENT}
 WHERE h.item_id = :item AND h.tenant_id = :tenant
 ORDER BY h.id DESC LIMIT :limit
"""
