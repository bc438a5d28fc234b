"""The page of one user task: the task, what its case knows, who did what before, and what a winner stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import text

from engine.commands.may import may_params, task_visible
from engine.commands.outcome import Actor
from engine.core.lifecycle import SUSPENDED
from engine.core.values import Variable
from engine.queries.inbox import ASSIGNEE, COLUMNS, DEFINITION, MAY_CLAIM, MINE, bind
from engine.queries.rows import Connection, rows
from engine.queries.rows import row as one_row


@dataclass(frozen=True, slots=True)
class TaskDetail:
    """One task for whoever may see it. `mark`: what is being done to its case (suspended, cancelling)."""

    id: UUID
    name: str
    about: str
    process_name: str
    business_key: str | None
    status: str
    assignee: str | None
    assignee_name: str | None
    assigned_at: datetime | None
    assigned_by: str | None
    assigned_by_name: str | None
    priority: int
    due_at: datetime | None
    follow_up_at: datetime | None
    created_at: datetime
    ended_at: datetime | None
    ended_by: str | None
    ended_by_name: str | None
    version: int
    instance_id: UUID
    root_id: UUID
    definition_id: UUID
    definition_key: str
    element_id: str
    token_id: UUID | None
    candidate_users: tuple[str, ...]
    candidate_groups: tuple[str, ...]
    candidate_names: tuple[str, ...]
    mark: str | None
    suspended_by_name: str | None
    suspended_at: datetime | None
    suspended_because: str | None
    may_claim: bool
    mine: bool

    @property
    def is_over(self) -> bool:
        return self.ended_at is not None

    @property
    def rests(self) -> bool:
        """Its case is suspended: it can be seen, not claimed or completed."""
        return self.mark in SUSPENDED and not self.is_over


@dataclass(frozen=True, slots=True)
class CaseEvent:
    """Something that a person, or the engine for the first time, did to this case."""

    kind: str
    at: datetime
    actor: str
    actor_name: str
    item_id: UUID | None
    task_name: str | None
    data: Mapping[str, Any]
    assignee_name: str | None


@dataclass(frozen=True, slots=True)
class Named:
    """Somebody who can be given a task."""

    username: str
    display_name: str


TASK = f"""
    SELECT {COLUMNS}, {MAY_CLAIM}, {MINE}, t.assigned_by, giver.display_name AS assigned_by_name, t.follow_up_at, t.ended_by,
      coalesce(ender.display_name, t.ended_by) AS ended_by_name, t.root_id, t.definition_id, d.key AS definition_key, t.element_id,
      t.token_id, t.candidate_users, t.candidate_groups, root.mark,
      coalesce(stopper.display_name, stop.suspended_by) AS suspended_by_name, stop.suspended_at, stop.reason AS suspended_because,
      ARRAY(SELECT coalesce(c.display_name, u) FROM unnest(t.candidate_users) u
        LEFT JOIN person c ON c.tenant_id = t.tenant_id AND c.username = u ORDER BY 1) AS candidate_names
    FROM user_task t {DEFINITION} {ASSIGNEE}
    LEFT JOIN process_instance root ON root.id = t.root_id
    LEFT JOIN suspension stop ON stop.object_id = t.root_id AND root.mark IS NOT NULL
    LEFT JOIN person stopper ON stopper.tenant_id = stop.tenant_id AND stopper.username = stop.suspended_by
    LEFT JOIN person giver ON giver.tenant_id = t.tenant_id AND giver.username = t.assigned_by
    LEFT JOIN person ender ON ender.tenant_id = t.tenant_id AND ender.username = t.ended_by
    WHERE t.id = :id AND {task_visible("t", bind=bind)}
"""

# A live task sees what its inputs gave it, its scope and those around it, the nearest first; an ended one what its case knew when it ended,
# with what its completion set and without what the same step set further on.
LIVE_VARIABLES = """
    SELECT DISTINCT ON (seen.name) seen.name, seen.type, seen.value
    FROM (
      SELECT v.name, v.type, v.value, array_position(s.path, v.scope_id) AS depth
      FROM token k JOIN scope s ON s.id = k.scope_id JOIN variable v ON v.scope_id = ANY (s.path)
      WHERE k.id = :token
      UNION ALL
      SELECT given.key, given.value ->> 'type', given.value -> 'value', 1000000
      FROM token k CROSS JOIN LATERAL jsonb_each(k.memory -> 'inputs') given
      WHERE k.id = :token
    ) seen ORDER BY seen.name, seen.depth DESC
"""
STORED_VARIABLES = """
    WITH ended AS (SELECT id, xid FROM history WHERE item_id = :task AND kind = 'task_completed' ORDER BY id DESC LIMIT 1),
    next_step AS (SELECT min(h.id) AS id FROM history h JOIN ended ON h.xid = ended.xid AND h.id > ended.id
      WHERE h.instance_id = :instance AND h.kind <> 'variables_set'),
    told AS (
      SELECT h.id, h.data -> 'variables' AS variables FROM history h
      WHERE h.instance_id = :instance AND h.kind IN ('variables_set', 'instance_started') AND h.xid <= (SELECT xid FROM ended)
        AND (h.xid < (SELECT xid FROM ended) OR h.id < coalesce((SELECT id FROM next_step), h.id + 1))
      ORDER BY h.id DESC LIMIT 1000),
    known AS (
      SELECT id, variables FROM told UNION ALL
      SELECT 9223372036854775807, h.data -> 'inputs' FROM history h WHERE h.item_id = :task AND h.kind = 'task_created')
    SELECT DISTINCT ON (e.key) e.key AS name, e.value ->> 'type' AS type, e.value -> 'value' AS value
    FROM known CROSS JOIN LATERAL jsonb_each(CASE WHEN jsonb_typeof(variables) = 'object' THEN variables ELSE '{}' END) e
    ORDER BY e.key, known.id DESC
"""

EVENTS = """
    SELECT h.kind, h.at, h.actor, coalesce(p.display_name, h.actor) AS actor_name, h.item_id, t.name AS task_name, h.data,
      a.display_name AS assignee_name
    FROM history h
    LEFT JOIN person p ON p.tenant_id = h.tenant_id AND p.username = h.actor
    LEFT JOIN user_task t ON t.id = h.item_id AND h.kind LIKE 'task!_%' ESCAPE '!'
    LEFT JOIN person a ON a.tenant_id = h.tenant_id AND a.username = h.data ->> 'to'
    WHERE h.instance_id IN (SELECT i.id FROM process_instance i WHERE i.root_id = :root)
      AND h.kind IN ('instance_started', 'task_claimed', 'task_unclaimed', 'task_assigned', 'task_completed')
      AND (h.kind <> 'instance_started' OR h.instance_id = h.root_id)
    ORDER BY h.id DESC LIMIT 30
"""

CANDIDATES = """
    SELECT p.username, p.display_name FROM person p
    WHERE p.tenant_id = :may_tenant AND p.disabled_at IS NULL AND (CAST(:anybody AS boolean)
      OR p.username = ANY (CAST(:users AS text[]))
      OR EXISTS (SELECT FROM person_group g WHERE g.person_id = p.id AND g.group_key = ANY (CAST(:groups AS text[]))))
    ORDER BY p.sort_key COLLATE "C", p.username LIMIT 500
"""


def task_detail(conn: Connection, actor: Actor, task_id: UUID) -> TaskDetail | None:
    """The task, or None if it is not there or not for this actor's eyes (S61)."""
    return one_row(conn, TaskDetail, TASK, {**may_params(actor), "id": task_id})


def task_variables(conn: Connection, task: TaskDetail) -> dict[str, Variable]:
    """What the task's form may read, by name."""
    if task.token_id is not None and not task.is_over:
        found = conn.execute(text(LIVE_VARIABLES), {"token": task.token_id})
    else:
        found = conn.execute(text(STORED_VARIABLES), {"task": task.id, "instance": task.instance_id})
    return {name: Variable(kind, value) for name, kind, value in found}


def case_events(conn: Connection, task: TaskDetail) -> list[CaseEvent]:
    """Who did what in the whole case, newest first."""
    return rows(conn, CaseEvent, EVENTS, {"root": task.root_id})


def possible_assignees(conn: Connection, actor: Actor, task: TaskDetail, *, anybody: bool) -> list[Named]:
    """Who may be given the task: its candidates; `anybody`: everybody who can sign in."""
    params = {"anybody": anybody, "users": list(task.candidate_users), "groups": list(task.candidate_groups)}
    return rows(conn, Named, CANDIDATES, {**may_params(actor), **params})


def definition_xml(conn: Connection, task: TaskDetail) -> bytes:
    """The model as it was deployed, for its drawing; or with the one that was laid out for it."""
    sql = "SELECT coalesce(g.xml, d.xml) FROM process_definition d LEFT JOIN drawing g ON g.definition_id = d.id WHERE d.id = :id"
    return bytes(conn.execute(text(sql), {"id": task.definition_id}).scalar_one())


def display_name(conn: Connection, actor: Actor, username: str) -> str:
    """What people call `username`; the name itself for whoever is not (or no longer) known."""
    sql = "SELECT display_name FROM person WHERE tenant_id = :tenant AND username = :username"
    return conn.execute(text(sql), {"tenant": actor.tenant_id, "username": username}).scalar_one_or_none() or username
