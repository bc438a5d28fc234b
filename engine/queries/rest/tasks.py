"""User tasks that are not over, for the eyes of one actor; and what a task sees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection

from engine.commands.may import may_params
from engine.commands.outcome import Actor
from engine.core.values import Variable
from engine.queries.api import OWN, TASK_VISIBLE
from engine.queries.rest.instances import SUSPENDED
from engine.queries.rest.listing import (
    Filter,
    Listing,
    Wanted,
    after,
    at,
    before,
    equals,
    is_id,
    is_id_in,
    is_in,
    like,
    tenants,
    variables_of,
)
from engine.queries.rows import rows
from engine.queries.task import LIVE_VARIABLES


@dataclass(frozen=True, slots=True)
class RestTask:
    id: UUID
    name: str
    element_id: str
    status: str
    assignee: str | None
    candidate_users: list[str]
    candidate_groups: list[str]
    instance_id: UUID
    token_id: UUID | None
    definition_id: UUID
    suspended: bool
    priority: int
    due_at: datetime | None
    follow_up_at: datetime | None
    created_at: datetime
    tenant_id: str


@dataclass(frozen=True, slots=True)
class _Seen:
    name: str
    type: str
    value: Any


_CANDIDATES = "cardinality(t.candidate_{}) > 0"
TASKS = Listing(
    columns=f"""t.id, t.name, t.element_id, t.status, t.assignee, t.candidate_users, t.candidate_groups, t.instance_id, t.token_id,
      t.definition_id, {SUSPENDED} AS suspended, t.priority::int AS priority, t.due_at, t.follow_up_at, t.created_at, t.tenant_id""",
    source="""user_task t JOIN process_definition d ON d.id = t.definition_id JOIN process_instance i ON i.id = t.instance_id
      JOIN process_instance r ON r.id = t.root_id""",
    always=f"{TASK_VISIBLE} AND t.status IN ('open', 'claimed') AND (:may_all OR t.id IN ({OWN}))",
    filters={
        **tenants("t.tenant_id"),
        "taskId": is_id("t.id"),
        "taskIdIn": is_id_in("t.id"),
        "processInstanceId": is_id("t.instance_id"),
        "processInstanceIdIn": is_id_in("t.instance_id"),
        "processInstanceBusinessKey": equals("t.business_key"),
        "processInstanceBusinessKeyIn": is_in("t.business_key"),
        "processInstanceBusinessKeyLike": like("t.business_key"),
        "processDefinitionId": is_id("t.definition_id"),
        "processDefinitionKey": equals("d.key"),
        "processDefinitionKeyIn": is_in("d.key"),
        "processDefinitionName": equals("d.name"),
        "processDefinitionNameLike": like("d.name"),
        "executionId": is_id("t.token_id"),
        "taskDefinitionKey": equals("t.element_id"),
        "taskDefinitionKeyIn": is_in("t.element_id"),
        "taskDefinitionKeyLike": like("t.element_id"),
        "name": equals("t.name"),
        "nameLike": like("t.name"),
        "nameNotEqual": Filter("text", "t.name <> {}"),
        "nameNotLike": Filter("text", "t.name NOT LIKE {}"),
        "assignee": equals("t.assignee"),
        "assigneeIn": is_in("t.assignee"),
        "assigneeLike": like("t.assignee"),
        "assigned": Filter("truth", "t.assignee IS NOT NULL"),
        "unassigned": Filter("truth", "t.assignee IS NULL"),
        # As there: who asks for candidates means tasks that nobody has yet, unless includeAssignedTasks says otherwise.
        "candidateUser": Filter(
            "text",
            "({0} = ANY (t.candidate_users) OR t.candidate_groups && (SELECT array_agg(m.group_key) FROM person_group m"
            " JOIN person p ON p.id = m.person_id WHERE p.tenant_id = t.tenant_id AND p.username = {0}))",
        ),
        "candidateGroup": Filter("text", "{} = ANY (t.candidate_groups)"),
        "candidateGroups": Filter("names", "t.candidate_groups && CAST({} AS text[])"),
        "withCandidateUsers": Filter("truth", _CANDIDATES.format("users")),
        "withoutCandidateUsers": Filter("truth", f"NOT {_CANDIDATES.format('users')}"),
        "withCandidateGroups": Filter("truth", _CANDIDATES.format("groups")),
        "withoutCandidateGroups": Filter("truth", f"NOT {_CANDIDATES.format('groups')}"),
        "priority": Filter("whole", "t.priority = {}"),
        "maxPriority": Filter("whole", "t.priority <= {}"),
        "minPriority": Filter("whole", "t.priority >= {}"),
        "dueDate": at("t.due_at"),
        "dueAfter": after("t.due_at"),
        "dueBefore": before("t.due_at"),
        "withoutDueDate": Filter("truth", "t.due_at IS NULL"),
        "followUpDate": at("t.follow_up_at"),
        "followUpAfter": after("t.follow_up_at"),
        "followUpBefore": before("t.follow_up_at"),
        "followUpBeforeOrNotExistent": Filter("moment", "(t.follow_up_at IS NULL OR t.follow_up_at < CAST({} AS timestamptz))"),
        "createdOn": at("t.created_at"),
        "createdAfter": after("t.created_at"),
        "createdBefore": before("t.created_at"),
        "active": Filter("truth", f"NOT {SUSPENDED}"),
        "suspended": Filter("truth", SUSPENDED),
        "processVariables": variables_of("s.instance_id = t.instance_id AND s.parent_id IS NULL"),
    },
    sorts={
        "id": "t.id",
        "name": "t.sort_key",
        "nameCaseInsensitive": "t.sort_key",
        "created": "t.created_at",
        "dueDate": "t.due_at",
        "followUpDate": "t.follow_up_at",
        "priority": "t.priority",
        "assignee": "t.assignee",
        "instanceId": "t.instance_id",
        "executionId": "t.token_id",
        "tenantId": "t.tenant_id",
    },
    unique="t.created_at, t.id",
)


def rest_tasks(conn: Connection, actor: Actor, wanted: Wanted) -> list[RestTask]:
    """Raises TooMany."""
    return TASKS.rows(conn, RestTask, wanted, may_params(actor))


def count_tasks(conn: Connection, actor: Actor, wanted: Wanted) -> int:
    return TASKS.count(conn, wanted, may_params(actor))


def rest_task(conn: Connection, actor: Actor, task_id: UUID) -> RestTask | None:
    return TASKS.one(conn, RestTask, "t.id = :id", {**may_params(actor), "id": task_id})


def seen_by(conn: Connection, task: RestTask) -> Mapping[str, Variable]:
    """Its inputs, and the variables of its scope and of those around it, the nearest first."""
    return {each.name: Variable(each.type, each.value) for each in rows(conn, _Seen, LIVE_VARIABLES, {"token": task.token_id})}
