"""External tasks as they stand: for operators, and for workers that choose for themselves what to lock."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from engine.queries.rest.listing import (
    MOST,
    Filter,
    Listing,
    Wanted,
    after,
    before,
    equals,
    is_id,
    is_id_in,
    is_in,
    tenants,
    variables_of,
)


@dataclass(frozen=True, slots=True)
class RestExternalTask:
    """`locked_until`: until when nobody else can have it, be it leased or waiting after a failure.

    `retries`: what is left, None while nothing has failed and nobody has set them. `suspended`: it, its case or its topic rests.
    """

    id: UUID
    topic: str
    element_id: str
    token_id: UUID
    instance_id: UUID
    business_key: str | None
    definition_id: UUID
    definition_key: str
    version_tag: str | None
    tenant_id: str
    worker_id: str | None
    locked_until: datetime | None
    retries: int | None
    suspended: bool
    priority: int
    last_error: str | None
    error_detail: str | None
    created_at: datetime


_LOCKED = (
    "(CASE e.status WHEN 'leased' THEN e.lease_expires_at"
    " WHEN 'available' THEN CASE WHEN e.available_at > baton_now() THEN e.available_at END END)"
)
_RESTS = "('suspended' = ANY (e.held) OR 'paused' = ANY (e.held) OR coalesce(r.mark IN ('suspending', 'suspended'), false))"
EXTERNAL_TASKS = Listing(
    columns=f"""e.id, e.topic, e.element_id, e.token_id, e.instance_id, i.business_key, e.definition_id, d.key AS definition_key,
      d.version_tag, e.tenant_id, e.lease_owner AS worker_id, {_LOCKED} AS locked_until,
      CASE WHEN e.status = 'failed' THEN 0 WHEN e.retries_set OR e.last_error IS NOT NULL
        THEN e.max_attempts - e.attempts + (e.status = 'leased')::int END AS retries,
      {_RESTS} AS suspended, e.priority::int AS priority, e.last_error, e.error_detail, e.created_at""",
    source=(
        "external_task e JOIN process_instance i ON i.id = e.instance_id JOIN process_instance r ON r.id = e.root_id"
        " JOIN process_definition d ON d.id = e.definition_id"
    ),
    always="e.tenant_id = :tenant AND e.status IN ('available', 'leased', 'failed')",
    filters={
        **tenants("e.tenant_id"),
        "externalTaskId": is_id("e.id"),
        "externalTaskIdIn": is_id_in("e.id"),
        "topicName": equals("e.topic"),
        "workerId": equals("e.lease_owner"),
        "locked": Filter("truth", f"{_LOCKED} > baton_now()"),
        # What could be locked now: not what is held until others of its case have had their turn.
        "notLocked": Filter("truth", f"cardinality(e.held) = 0 AND coalesce({_LOCKED}, '-infinity') <= baton_now()"),
        "withRetriesLeft": Filter("truth", "e.status <> 'failed'"),
        "noRetriesLeft": Filter("truth", "e.status = 'failed'"),
        "lockExpirationAfter": after(_LOCKED),
        "lockExpirationBefore": before(_LOCKED),
        "activityId": equals("e.element_id"),
        "activityIdIn": is_in("e.element_id"),
        "executionId": is_id("e.token_id"),
        "processInstanceId": is_id("e.instance_id"),
        "processInstanceIdIn": is_id_in("e.instance_id"),
        "processInstanceBusinessKey": equals("i.business_key"),
        "processDefinitionId": is_id("e.definition_id"),
        "processDefinitionKey": equals("d.key"),
        "processVariables": variables_of("s.instance_id = e.instance_id AND s.parent_id IS NULL"),
        "active": Filter("truth", f"NOT {_RESTS}"),
        "suspended": Filter("truth", _RESTS),
        "priorityHigherThanOrEquals": Filter("whole", "e.priority >= {}"),
        "priorityLowerThanOrEquals": Filter("whole", "e.priority <= {}"),
    },
    sorts={
        "id": "e.id",
        "createTime": "e.created_at",
        "lockExpirationTime": _LOCKED,
        "processInstanceId": "e.instance_id",
        "processDefinitionId": "e.definition_id",
        "processDefinitionKey": "d.key",
        "tenantId": "e.tenant_id",
        "taskPriority": "e.priority",
    },
    unique="e.id",
)


def rest_external_tasks(conn: Connection, wanted: Wanted, *, tenant_id: str) -> list[RestExternalTask]:
    """At most MOST: a worker that chooses from the list finds the others when these are done."""
    paged = wanted if wanted.most is not None else replace(wanted, most=MOST)
    return EXTERNAL_TASKS.rows(conn, RestExternalTask, paged, {"tenant": tenant_id})


def count_external_tasks(conn: Connection, wanted: Wanted, *, tenant_id: str) -> int:
    return EXTERNAL_TASKS.count(conn, wanted, {"tenant": tenant_id})


def rest_external_task(conn: Connection, task_id: UUID, *, tenant_id: str) -> RestExternalTask | None:
    return EXTERNAL_TASKS.one(conn, RestExternalTask, "e.id = :id", {"tenant": tenant_id, "id": task_id})


def topic_names(conn: Connection, wanted: Wanted, *, tenant_id: str) -> list[str]:
    """Of the tasks that there are, in the order of their letters. `wanted`: truths alone."""
    where = " AND ".join([EXTERNAL_TASKS.always, *(EXTERNAL_TASKS.filters[name].sql.format("") for name in wanted.given)])
    params: dict[str, Any] = {"tenant": tenant_id}
    sql = f"SELECT DISTINCT e.topic FROM {EXTERNAL_TASKS.source} WHERE {where} ORDER BY 1 LIMIT {MOST}"
    return list(conn.execute(text(sql), params).scalars())
