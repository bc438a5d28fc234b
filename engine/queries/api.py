"""Lists and single things as the API gives them: tasks, instances, definitions, for the eyes of one actor (R13)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection

from engine.commands.may import instance_visible, is_operator, may_params, task_visible
from engine.commands.outcome import Actor
from engine.core.lifecycle import USER_TASK
from engine.queries.instance import Event
from engine.queries.instances import InstanceFilter, conditions
from engine.queries.rows import Page, capped, cursor_of, number_cursor, page_of, row, rows, scalar, time_cursor


def bind(name: str) -> str:
    """A placeholder of SQLAlchemy's text()."""
    return f":{name}"


TASK_VISIBLE = task_visible("t", bind=bind)
INSTANCE_VISIBLE = instance_visible("i", bind=bind)

# Whose open tasks an actor may see, from the indexes that begin with the actor; not by wading through everybody's.
OWN = """
    SELECT task_id FROM inbox_entry WHERE tenant_id = :may_tenant AND kind = 'group' AND name = ANY (CAST(:may_groups AS text[]))
    UNION SELECT task_id FROM inbox_entry WHERE tenant_id = :may_tenant AND kind = 'user' AND name = :may_user
    UNION SELECT id FROM user_task WHERE tenant_id = :may_tenant AND assignee = :may_user AND status = 'claimed'
"""


@dataclass(frozen=True, slots=True)
class ApiTask:
    id: UUID
    name: str
    element_id: str
    status: str
    assignee: str | None
    candidate_groups: list[str]
    process_instance_id: UUID
    root_instance_id: UUID
    business_key: str | None
    priority: int
    due_at: datetime | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class TaskFilter:
    """`status` "" means what is not over: open and claimed."""

    status: str = ""
    assignee: str | None = None
    candidate_group: str | None = None
    process_definition_key: str | None = None
    process_instance_id: UUID | None = None
    business_key: str | None = None


def api_task(conn: Connection, actor: Actor, task_id: UUID) -> ApiTask | None:
    """One task, or None if it is not there or not for this actor's eyes."""
    sql = f"SELECT {TASK} FROM user_task AS t WHERE t.id = :id AND {TASK_VISIBLE}"
    return row(conn, ApiTask, sql, {**may_params(actor), "id": task_id})


def api_tasks(conn: Connection, actor: Actor, wanted: TaskFilter, *, cursor: str | None = None, limit: int = 50) -> Page[ApiTask]:
    """One page, oldest first. Raises BadCursor."""
    where = [TASK_VISIBLE]
    if wanted.status in USER_TASK:
        where.append(f"t.status = '{wanted.status}'")
    else:
        where.append("t.status IN ('open', 'claimed')")
        if not is_operator(actor):
            where.append(f"t.id IN ({OWN})")
    if wanted.assignee is not None:
        where.append("t.assignee = :assignee")
    if wanted.candidate_group is not None:
        where.append(":candidate_group = ANY (t.candidate_groups)")
    if wanted.process_definition_key is not None:
        where.append("d.key = :key")
    if wanted.process_instance_id is not None:
        where.append("t.instance_id = :instance")
    if wanted.business_key is not None:
        where.append("t.business_key = :business_key")
    after = time_cursor(cursor)
    if after is not None:
        where.append("(t.created_at, t.id) > (:after_at, :after_id)")
    sql = f"""
        SELECT {TASK} FROM user_task AS t JOIN process_definition AS d ON d.id = t.definition_id
         WHERE {" AND ".join(where)} ORDER BY t.created_at, t.id LIMIT :limit
    """
    params = {
        **may_params(actor), "assignee": wanted.assignee, "candidate_group": wanted.candidate_group,
        "key": wanted.process_definition_key, "instance": wanted.process_instance_id, "business_key": wanted.business_key,
        "after_at": after and after[0], "after_id": after and after[1], "limit": limit + 1,
    }  # fmt: skip
    return page_of(rows(conn, ApiTask, sql, params), limit=limit, position=lambda task: (task.created_at, task.id))


@dataclass(frozen=True, slots=True)
class ApiInstance:
    """Without its tokens, variables, incidents and called instances, which only the single one carries."""

    id: UUID
    root_id: UUID
    parent_id: UUID | None
    definition_key: str
    version: int
    status: str
    business_key: str | None
    started_at: datetime
    ended_at: datetime | None
    final_variables: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class ApiDetails:
    """The rest of one instance. `variables`: of the process scope, plain values by name."""

    variables: dict[str, Any]
    tokens: list[dict[str, Any]]
    incidents: list[dict[str, Any]]
    called: list[UUID]


@dataclass(frozen=True, slots=True)
class InstanceListFilter:
    """`business_key` as a whole, `parent_id`: who called it; the rest as the page of operations filters (queries.instances)."""

    status: str = ""
    process_definition_key: str | None = None
    business_key: str | None = None
    version: int | None = None
    q: str = ""
    incidents: bool = False
    element_id: str = ""
    parent_id: UUID | None = None


def api_instance(conn: Connection, actor: Actor, instance_id: UUID) -> ApiInstance | None:
    """One instance, or None if it is not there or not for this actor's eyes."""
    sql = f"SELECT {ONE} WHERE i.id = :id AND {INSTANCE_VISIBLE}"
    return row(conn, ApiInstance, sql, {**may_params(actor), "id": instance_id})


def api_details(conn: Connection, instance_id: UUID) -> ApiDetails:
    """What stands in an instance now. Ask `api_instance` first: this one asks nobody's permission."""
    found = row(conn, ApiDetails, DETAILS, {"id": instance_id})
    assert found is not None, "a SELECT of scalars has one row"
    return found


def api_instances(
    conn: Connection, actor: Actor, wanted: InstanceListFilter, *, cursor: str | None = None, limit: int = 50
) -> Page[ApiInstance]:
    """One page of those that the actor may see, newest first. Raises BadCursor."""
    where, params = _instances(actor, wanted)
    after = time_cursor(cursor)
    if after is not None:
        where.append("(i.started_at, i.id) < (:after_at, :after_id)")
    sql = f"SELECT {ONE} WHERE {' AND '.join(where)} ORDER BY i.started_at DESC, i.id DESC LIMIT :limit"
    params |= {"after_at": after and after[0], "after_id": after and after[1], "limit": limit + 1}
    return page_of(rows(conn, ApiInstance, sql, params), limit=limit, position=lambda one: (one.started_at, one.id))


def count_api_instances(conn: Connection, actor: Actor, wanted: InstanceListFilter, *, cap: int = 1_000) -> int:
    """How many there are of those, at most cap + 1."""
    where, params = _instances(actor, wanted)
    found = f"SELECT 1 FROM process_instance AS i JOIN process_definition AS d ON d.id = i.definition_id WHERE {' AND '.join(where)}"
    return int(scalar(conn, f"SELECT {capped(found, cap=cap)}", params))


def _instances(actor: Actor, wanted: InstanceListFilter) -> tuple[list[str], dict[str, Any]]:
    same = InstanceFilter(
        q=wanted.q, key=wanted.process_definition_key or "", version=wanted.version, status=wanted.status, incidents=wanted.incidents,
        element_id=wanted.element_id,
    )  # fmt: skip
    narrowed, values = conditions(same)
    where = [INSTANCE_VISIBLE, *narrowed]
    if wanted.business_key is not None:
        where.append("i.business_key = :business_key")
    if wanted.parent_id is not None:
        where.append("i.root_id = (SELECT root_id FROM process_instance WHERE id = :parent) AND i.parent_id = :parent")
    more = {"tenant": actor.tenant_id, "business_key": wanted.business_key, "parent": wanted.parent_id}
    return where, {**values, **may_params(actor), **more}


def api_history(conn: Connection, instance_id: UUID, *, tenant_id: str = "", cursor: str | None = None, limit: int = 200) -> Page[Event]:
    """What happened to one instance, oldest first. Raises BadCursor."""
    params = {"id": instance_id, "tenant": tenant_id, "after": number_cursor(cursor) or 0, "limit": limit + 1}
    found = rows(conn, Event, HISTORY, params)
    if len(found) <= limit:
        return Page(tuple(found))
    return Page(tuple(found[:limit]), cursor_of(found[limit - 1].id))


TASK = """t.id, t.name, t.element_id, t.status, t.assignee, t.candidate_groups, t.instance_id AS process_instance_id,
               t.root_id AS root_instance_id, t.business_key, t.priority::int AS priority, t.due_at, t.created_at"""

ONE = """i.id, i.root_id, i.parent_id, d.key AS definition_key, d.version, i.status, i.business_key, i.started_at, i.ended_at,
               i.final_variables
          FROM process_instance AS i JOIN process_definition AS d ON d.id = i.definition_id"""

DETAILS = """
SELECT coalesce((SELECT jsonb_object_agg(v.name, v.value) FROM scope AS s JOIN variable AS v ON v.scope_id = s.id
                  WHERE s.instance_id = :id AND s.parent_id IS NULL), '{}') AS variables,
       coalesce((SELECT jsonb_agg(jsonb_build_object('element_id', t.element_id, 'status', t.status) ORDER BY t.arrived_at, t.id)
                   FROM (SELECT * FROM token WHERE instance_id = :id ORDER BY arrived_at, id LIMIT 1000) AS t), '[]') AS tokens,
       coalesce((SELECT jsonb_agg(jsonb_build_object('id', n.id, 'kind', n.kind, 'element_id', n.element_id, 'message', n.message,
                                                     'created_at', n.created_at) ORDER BY n.created_at, n.id)
                   FROM (SELECT * FROM incident WHERE instance_id = :id ORDER BY created_at, id LIMIT 200) AS n), '[]') AS incidents,
       ARRAY(SELECT c.id FROM process_instance AS c
              WHERE c.root_id = (SELECT root_id FROM process_instance WHERE id = :id) AND c.parent_id = :id
              ORDER BY c.started_at, c.id LIMIT 1000) AS called
"""

HISTORY = """
SELECT h.id, h.at, h.kind, h.definition_id, h.element_id, h.actor, coalesce(person.display_name, h.actor) AS actor_name,
       coalesce(person.kind = 'service', false) AS by_service, h.via, h.item_id, h.data
  FROM history AS h LEFT JOIN person ON person.tenant_id = :tenant AND person.username = h.actor
 WHERE h.instance_id = :id AND h.tenant_id = :tenant AND h.id > :after
 ORDER BY h.id LIMIT :limit
"""
