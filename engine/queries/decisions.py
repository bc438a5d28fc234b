"""Decisions and their versions, and how they were made: the evaluations that the history has."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection

from engine.queries.processes import DEPLOYED, DeployedRow
from engine.queries.rows import Page, cursor_of, number_cursor, row, rows
from engine.text import sort_key


@dataclass(frozen=True, slots=True)
class DecisionRow:
    """One version of a decision. `latest`: no newer one of its key. `evaluated_at`: when it was made last."""

    id: UUID
    key: str
    version: int
    version_tag: str | None
    name: str
    resource_name: str
    documentation: str
    deployed_by_name: str
    created_at: datetime
    latest: bool
    versions: int
    evaluated_at: datetime | None


def decisions(conn: Connection, *, tenant_id: str = "", q: str = "", key: str | None = None) -> list[DecisionRow]:
    """The latest version of every decision (matching `q`), or every version of `key`, newest first."""
    return rows(conn, DecisionRow, DECISIONS, {"tenant": tenant_id, "q": q, "folded": sort_key(q), "key": key})


@dataclass(frozen=True, slots=True)
class DecisionSource:
    """The file as it was deployed."""

    id: UUID
    key: str
    version: int
    resource_name: str
    content_hash: bytes
    xml: bytes


def decision_source(conn: Connection, decision_id: UUID) -> DecisionSource | None:
    """The XML of one version."""
    sql = "SELECT id, key, version, resource_name, content_hash, xml FROM decision_definition WHERE id = :id"
    return row(conn, DecisionSource, sql, {"id": decision_id})


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One time that a version was made. `data`: inputs, rules, result, as engine.core.decisions tells them."""

    id: int
    at: datetime
    instance_id: UUID | None
    definition_id: UUID | None
    element_id: str | None
    business_key: str | None
    data: Mapping[str, Any]


def evaluations(conn: Connection, decision_id: UUID, *, tenant_id: str = "", limit: int = 20) -> list[Evaluation]:
    """The latest evaluations of a version, newest first."""
    return rows(conn, Evaluation, f"{EVALUATIONS} ORDER BY h.id DESC LIMIT :limit", _of(decision_id, tenant_id, limit=limit))


def evaluation_page(
    conn: Connection, decision_id: UUID, *, tenant_id: str = "", cursor: str | None = None, limit: int = 50
) -> Page[Evaluation]:
    """One page of all evaluations of a version that the history has, newest first. Raises BadCursor."""
    before = number_cursor(cursor)
    behind = "" if before is None else "AND h.id < :before"
    params = _of(decision_id, tenant_id, limit=limit + 1, **({} if before is None else {"before": before}))
    found = rows(conn, Evaluation, f"{EVALUATIONS} {behind} ORDER BY h.id DESC LIMIT :limit", params)
    return Page(tuple(found[:limit]), cursor_of(found[limit - 1].id) if len(found) > limit else None)


def evaluation(conn: Connection, decision_id: UUID, event_id: int, *, tenant_id: str = "") -> Evaluation | None:
    """One of them, by the id of its event."""
    return row(conn, Evaluation, f"{EVALUATIONS} AND h.id = :event", _of(decision_id, tenant_id, event=event_id))


def _of(decision_id: UUID, tenant_id: str, **more: int) -> dict[str, Any]:
    return {"decision": decision_id, "tenant": tenant_id, **more}


def decisions_deployed_in(conn: Connection, deployment_id: UUID, *, tenant_id: str = "") -> list[DeployedRow]:
    """What a deployment brought, by name."""
    return rows(conn, DeployedRow, DEPLOYED.format(table="decision_definition"), {"deployment": deployment_id, "tenant": tenant_id})


@dataclass(frozen=True, slots=True)
class _Key:
    key: str


def decision_keys(conn: Connection, keys: Collection[str], *, tenant_id: str = "") -> frozenset[str]:
    """Those of the keys of which a version is there."""
    sql = "SELECT DISTINCT key FROM decision_definition WHERE tenant_id = :tenant AND key = ANY (:keys)"
    return frozenset(each.key for each in rows(conn, _Key, sql, {"keys": sorted(keys), "tenant": tenant_id})) if keys else frozenset()


DECISIONS = """
WITH shown AS (
  SELECT d.*, version = max(version) OVER (PARTITION BY key) AS latest, count(*) OVER (PARTITION BY key)::int AS versions
    FROM decision_definition AS d
   WHERE tenant_id = :tenant AND (CAST(:key AS text) IS NULL OR key = :key)
)
SELECT s.id, s.key, s.version, s.version_tag, s.name, s.resource_name, s.documentation,
       coalesce(person.display_name, deployment.deployed_by) AS deployed_by_name, s.created_at, s.latest, s.versions,
       (SELECT h.at FROM history AS h WHERE h.item_id = s.id AND h.kind = 'decision_evaluated' ORDER BY h.id DESC LIMIT 1) AS evaluated_at
  FROM shown AS s
  JOIN deployment ON deployment.id = s.deployment_id
  LEFT JOIN person ON person.tenant_id = :tenant AND person.username = deployment.deployed_by
 WHERE (CAST(:key AS text) IS NOT NULL OR s.latest)
   AND (:q = '' OR strpos(lower(s.key), lower(:q)) > 0 OR strpos(lower(s.name), lower(:q)) > 0
        OR (:folded <> '' AND strpos(s.sort_key, :folded) > 0))
 ORDER BY CASE WHEN s.latest AND CAST(:key AS text) IS NULL THEN s.sort_key END, s.key, s.version DESC
 LIMIT 500
"""

EVALUATIONS = """
SELECT h.id, h.at, h.instance_id, h.definition_id, h.element_id, i.business_key, h.data
  FROM history AS h LEFT JOIN process_instance AS i ON i.id = h.instance_id
 WHERE h.item_id = :decision AND h.kind = 'decision_evaluated' AND h.tenant_id = :tenant
"""
