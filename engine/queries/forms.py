"""Deployed forms: what a deployment brought, and which are there."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection

from engine.queries.rows import row, rows


@dataclass(frozen=True, slots=True)
class DeployedFormRow:
    """One form as one deployment brought it."""

    id: UUID
    key: str
    version: int
    name: str
    resource_name: str
    content: bytes
    deployment_name: str
    deployed_by_name: str
    deployed_at: datetime


def forms_deployed_in(conn: Connection, deployment_id: UUID, *, tenant_id: str = "") -> list[DeployedFormRow]:
    """What a deployment brought, by key."""
    return rows(conn, DeployedFormRow, f"{FORMS} AND p.id = :deployment {ORDER}", {"deployment": deployment_id, "tenant": tenant_id})


def form_version(conn: Connection, key: str, version: int, *, tenant_id: str = "") -> DeployedFormRow | None:
    """One version of a form."""
    params = {"key": key, "version": version, "tenant": tenant_id}
    return row(conn, DeployedFormRow, f"{FORMS} AND f.key = :key AND f.version = :version", params)


@dataclass(frozen=True, slots=True)
class _There:
    key: str
    resource_name: str


def forms_there(
    conn: Connection, keys: Collection[str], files: Collection[str], *, tenant_id: str = ""
) -> tuple[frozenset[str], frozenset[str]]:
    """Those of the keys, and those of the file names, of which a version is there."""
    if not keys and not files:
        return frozenset(), frozenset()
    sql = (
        "SELECT DISTINCT key, resource_name FROM form_definition"
        " WHERE tenant_id = :tenant AND (key = ANY (:keys) OR resource_name = ANY (:files))"
    )
    found = rows(conn, _There, sql, {"keys": sorted(keys), "files": sorted(files), "tenant": tenant_id})
    return frozenset(each.key for each in found), frozenset(each.resource_name for each in found)


FORMS = """
SELECT f.id, f.key, f.version, f.key AS name, f.resource_name, f.content, p.name AS deployment_name,
       coalesce(person.display_name, p.deployed_by) AS deployed_by_name, p.deployed_at
  FROM form_definition AS f
  JOIN deployment AS p ON p.id = f.deployment_id
  LEFT JOIN person ON person.tenant_id = p.tenant_id AND person.username = p.deployed_by
 WHERE f.tenant_id = :tenant
"""
ORDER = "ORDER BY f.key, f.version LIMIT 200"
