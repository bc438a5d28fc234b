"""Executions, as Camunda 7 has them: what carries local variables and where tokens stand.

An execution is a scope or a token, by its id; the process scope has the id of its instance. A token's own variables are the
inputs of what it stands at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Connection

from engine.commands.may import may_params
from engine.commands.outcome import Actor
from engine.core.values import Variable
from engine.queries.api import INSTANCE_VISIBLE
from engine.queries.rest.listing import MOST, TooMany
from engine.queries.rows import row, rows


@dataclass(frozen=True, slots=True)
class Execution:
    """`kind`: instance | scope | token. `scope_id`: whose variables are its own, unless it is a token."""

    id: UUID
    kind: str
    instance_id: UUID
    tenant_id: str
    scope_id: UUID


@dataclass(frozen=True, slots=True)
class Standing:
    """A scope or a token of a running instance. `within`: the scope it is in; None for the process scope.

    `stands_for`: of a scope, the token that stands for it outside. `incidents`: (id, kind) pairs as [{id, kind}].
    """

    id: UUID
    kind: str
    within: UUID | None
    element_id: str | None
    stands_for: UUID | None
    incidents: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class _Named:
    name: str
    type: str
    value: Any


def execution(conn: Connection, actor: Actor, execution_id: UUID) -> Execution | None:
    """A running instance's, a scope's or a token's, if the actor may see its instance."""
    return row(conn, Execution, EXECUTION, {**may_params(actor), "id": execution_id})


def local_variables(conn: Connection, found: Execution) -> dict[str, Variable]:
    """Its own variables. Ask `execution` first: this one asks nobody's permission."""
    sql, key = (INPUTS, found.id) if found.kind == "token" else (OF_SCOPE, found.scope_id)
    return {each.name: Variable(each.type, each.value) for each in rows(conn, _Named, sql, {"id": key})}


def standings(conn: Connection, instance_id: UUID) -> list[Standing]:
    """Scopes and tokens of one instance, the outer ones first. Asks nobody's permission. Raises TooMany."""
    found = rows(conn, Standing, STANDINGS, {"id": instance_id, "limit": MOST + 1})
    if len(found) > MOST:
        raise TooMany(f"the instance has more than {MOST:,} activity instances")
    return found


EXECUTION = f"""
SELECT e.id, e.kind, e.instance_id, i.tenant_id, e.scope_id FROM (
  SELECT s.instance_id AS id, 'instance' AS kind, s.instance_id, s.id AS scope_id FROM scope s
   WHERE s.instance_id = :id AND s.parent_id IS NULL
  UNION ALL SELECT s.id, 'scope', s.instance_id, s.id FROM scope s WHERE s.id = :id
  UNION ALL SELECT t.id, 'token', t.instance_id, t.scope_id FROM token t WHERE t.id = :id) e
JOIN process_instance i ON i.id = e.instance_id
WHERE i.status = 'running' AND {INSTANCE_VISIBLE}
"""

OF_SCOPE = "SELECT v.name, v.type, v.value FROM variable v JOIN scope s ON s.id = v.scope_id WHERE s.id = :id AND NOT s.counters ? 'kept'"

INPUTS = """
SELECT given.key AS name, given.value ->> 'type' AS type, given.value -> 'value' AS value
  FROM (SELECT t.memory AS kept FROM token t WHERE t.id = :id
        UNION ALL SELECT e.payload FROM external_task e WHERE e.token_id = :id
        UNION ALL SELECT j.payload FROM job j WHERE j.token_id = :id AND j.kind = 'service') AS at
  CROSS JOIN LATERAL jsonb_each(CASE WHEN jsonb_typeof(at.kept -> 'inputs') = 'object' THEN at.kept -> 'inputs' ELSE '{}' END) given
"""

_INCIDENTS = """coalesce((SELECT jsonb_agg(jsonb_build_object('id', n.id, 'kind', n.kind, 'element_id', n.element_id) ORDER BY n.id)
    FROM incident n WHERE n.instance_id = :id AND coalesce(n.token_id,
      (SELECT e.token_id FROM external_task e WHERE e.id = n.external_task_id),
      (SELECT j.token_id FROM job j WHERE j.id = n.job_id)) = t.id), '[]')"""

STANDINGS = f"""
SELECT id, kind, within, element_id, stands_for, incidents FROM (
  SELECT s.id, 'scope' AS kind, s.parent_id AS within, s.element_id,
    CASE WHEN EXISTS (SELECT FROM token o WHERE o.id = s.token_id AND o.instance_id = s.instance_id) THEN s.token_id END AS stands_for,
    CAST('[]' AS jsonb) AS incidents, cardinality(s.path) AS depth
  FROM scope s WHERE s.instance_id = :id
  UNION ALL
  SELECT t.id, 'token', t.scope_id, t.element_id, NULL, {_INCIDENTS}, 1000000
  FROM token t WHERE t.instance_id = :id AND t.status <> 'listening') AS found
ORDER BY depth, id LIMIT :limit
"""
