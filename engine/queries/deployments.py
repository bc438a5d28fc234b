"""Deployments, with how much each brought."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection

from engine.queries.rows import Page, page_of, row, rows, time_cursor


@dataclass(frozen=True, slots=True)
class DeploymentRow:
    """`processes`, `decisions`, `forms`: versions that it brought; what was unchanged is not among them."""

    id: UUID
    name: str
    deployed_by: str
    deployed_by_name: str
    deployed_at: datetime
    processes: int
    decisions: int
    forms: int


def deployments(conn: Connection, *, tenant_id: str = "", cursor: str | None = None, limit: int = 50) -> Page[DeploymentRow]:
    """One page, newest first. Raises BadCursor."""
    after = time_cursor(cursor)
    behind = "" if after is None else "AND (p.deployed_at, p.id) < (:after_at, :after_id)"
    params = {"tenant": tenant_id, "limit": limit + 1, "after_at": after and after[0], "after_id": after and after[1]}
    found = rows(conn, DeploymentRow, f"{DEPLOYMENTS} {behind} ORDER BY p.deployed_at DESC, p.id DESC LIMIT :limit", params)
    return page_of(found, limit=limit, position=lambda deployment: (deployment.deployed_at, deployment.id))


def deployment(conn: Connection, deployment_id: UUID, *, tenant_id: str = "") -> DeploymentRow | None:
    """One of them."""
    return row(conn, DeploymentRow, f"{DEPLOYMENTS} AND p.id = :id", {"tenant": tenant_id, "id": deployment_id})


DEPLOYMENTS = """
SELECT p.id, p.name, p.deployed_by, coalesce(person.display_name, p.deployed_by) AS deployed_by_name, p.deployed_at,
       (SELECT count(*)::int FROM process_definition WHERE deployment_id = p.id) AS processes,
       (SELECT count(*)::int FROM decision_definition WHERE deployment_id = p.id) AS decisions,
       (SELECT count(*)::int FROM form_definition WHERE deployment_id = p.id) AS forms
  FROM deployment AS p LEFT JOIN person ON person.tenant_id = p.tenant_id AND person.username = p.deployed_by
 WHERE p.tenant_id = :tenant
"""
