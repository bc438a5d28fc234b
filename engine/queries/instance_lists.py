"""What stands in one instance, list by list and page by page, for programs; its page reads the first of each (queries.instance).

Nobody's permission is asked here: who asks has looked at the instance before.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection

from engine.queries.rows import Page, page_of, rows, time_cursor
from engine.queries.sort import Key, keyed_page


@dataclass(frozen=True, slots=True)
class StandingToken:
    """`calls`: the instance that it has called and waits for."""

    id: UUID
    scope_id: UUID
    element_id: str
    flow_id: str | None
    status: str
    arrived_at: datetime
    calls: UUID | None


@dataclass(frozen=True, slots=True)
class ScopedVariable:
    """A variable of the process scope (`scope_element` None) or of a subprocess."""

    name: str
    type: str
    value: Any
    revision: int
    scope_id: UUID
    scope_element: str | None
    depth: int


@dataclass(frozen=True, slots=True)
class Awaited:
    """What it waits for. `kind`: message | signal."""

    id: UUID
    kind: str
    token_id: UUID | None
    element_id: str
    message_name: str
    correlation_key: str
    created_at: datetime


def tokens_of(conn: Connection, instance_id: UUID, *, cursor: str | None = None, limit: int = 50) -> Page[StandingToken]:
    """Where it stands, oldest first. Raises BadCursor."""
    found = rows(conn, StandingToken, TOKENS, _by_time(instance_id, cursor, limit))
    return page_of(found, limit=limit, position=lambda token: (token.arrived_at, token.id))


def subscriptions_of(conn: Connection, instance_id: UUID, *, cursor: str | None = None, limit: int = 50) -> Page[Awaited]:
    """The messages and signals that it waits for, oldest first. Raises BadCursor."""
    found = rows(conn, Awaited, SUBSCRIPTIONS, _by_time(instance_id, cursor, limit))
    return page_of(found, limit=limit, position=lambda awaited: (awaited.created_at, awaited.id))


def variables_of(conn: Connection, instance_id: UUID, *, cursor: str | None = None, limit: int = 50) -> Page[ScopedVariable]:
    """What it knows now: the process scope first, each scope by name. Raises BadCursor."""
    return keyed_page(
        conn, ScopedVariable, VARIABLES, {"id": instance_id}, keys=BY_SCOPE, place=_scoped, after=cursor, limit=limit
    )  # fmt: skip


def _scoped(found: ScopedVariable) -> dict[str, Any]:
    return {"depth": found.depth, "scope": found.scope_id, "name": found.name}


def _by_time(instance_id: UUID, cursor: str | None, limit: int) -> dict[str, Any]:
    after = time_cursor(cursor)
    return {"id": instance_id, "limit": limit + 1, "after_at": after and after[0], "after_id": after and after[1]}


BY_SCOPE = (
    Key("depth", "cardinality(s.path)", "integer"),
    Key("scope", "s.id", "uuid"),
    Key("name", 'v.name COLLATE "C"', "text"),
)

TOKENS = """
SELECT t.id, t.scope_id, t.element_id, t.flow_id, t.status, t.arrived_at,
       (SELECT scope.instance_id FROM scope WHERE scope.token_id = t.id AND scope.instance_id <> t.instance_id) AS calls
  FROM token AS t
 WHERE t.instance_id = :id AND (CAST(:after_at AS timestamptz) IS NULL OR (t.arrived_at, t.id) > (:after_at, :after_id))
 ORDER BY t.arrived_at, t.id LIMIT :limit
"""

SUBSCRIPTIONS = """
SELECT s.id, CASE WHEN s.kind = 'signal' THEN 'signal' ELSE 'message' END AS kind, s.token_id, s.element_id, s.message_name,
       s.correlation_key, s.created_at
  FROM subscription AS s
 WHERE s.instance_id = :id AND (CAST(:after_at AS timestamptz) IS NULL OR (s.created_at, s.id) > (:after_at, :after_id))
 ORDER BY s.created_at, s.id LIMIT :limit
"""

VARIABLES = """
SELECT v.name, v.type, v.value, v.revision, s.id AS scope_id, s.element_id AS scope_element, cardinality(s.path) AS depth
  FROM scope AS s JOIN variable AS v ON v.scope_id = s.id
 WHERE s.instance_id = :id AND NOT s.counters ? 'kept' -- the results of a loop become a variable when it ends
   AND {behind}
 ORDER BY {order} LIMIT :limit
"""
