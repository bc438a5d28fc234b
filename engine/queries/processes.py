"""Definitions and their versions, with what runs in them; and the counts that a diagram carries, element by element."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection

from engine.queries.rows import CAP, row, rows
from engine.text import sort_key

SCANNED = 50_000
"""Running instances looked at for the counts by definition; beyond it the counts are lower bounds."""


@dataclass(frozen=True, slots=True)
class DefinitionRow:
    """One version of a process. `latest`: no newer one of its key, or only deleted ones. `running`, `tasks`, `incidents` are capped."""

    id: UUID
    key: str
    version: int
    name: str
    status: str
    resource_name: str
    documentation: str
    has_none_start: bool
    deployed_by: str
    deployed_by_name: str
    created_at: datetime
    latest: bool
    versions: int
    running: int
    tasks: int
    incidents: int


def definitions(conn: Connection, *, tenant_id: str = "", q: str = "", key: str | None = None) -> list[DefinitionRow]:
    """The latest version of every process (matching `q`), or every version of `key`, newest first."""
    params = {"tenant": tenant_id, "q": q, "folded": sort_key(q), "key": key}
    return rows(conn, DefinitionRow, DEFINITIONS, params)


def definition(conn: Connection, key: str, version: int, *, tenant_id: str = "") -> DefinitionRow | None:
    """One version of one process."""
    return next((found for found in definitions(conn, tenant_id=tenant_id, key=key) if found.version == version), None)


@dataclass(frozen=True, slots=True)
class DeployedRow:
    """One process, or one decision, as one deployment brought it."""

    id: UUID
    key: str
    version: int
    name: str
    resource_name: str
    deployment_name: str
    deployed_by_name: str
    deployed_at: datetime


def deployed_in(conn: Connection, deployment_id: UUID, *, tenant_id: str = "") -> list[DeployedRow]:
    """What a deployment brought, by name."""
    return rows(conn, DeployedRow, DEPLOYED.format(table="process_definition"), {"deployment": deployment_id, "tenant": tenant_id})


@dataclass(frozen=True, slots=True)
class _Key:
    key: str


def keys_deployed(conn: Connection, keys: Collection[str], *, tenant_id: str = "") -> frozenset[str]:
    """Those of the process keys of which a version is there."""
    found = rows(conn, _Key, KEYS, {"keys": sorted(keys), "tenant": tenant_id}) if keys else []
    return frozenset(each.key for each in found)


@dataclass(frozen=True, slots=True)
class Source:
    """The model as it was deployed."""

    id: UUID
    key: str
    version: int
    name: str
    resource_name: str
    content_hash: bytes
    xml: bytes


def source(conn: Connection, definition_id: UUID) -> Source | None:
    """The XML of one version."""
    return row(conn, Source, "SELECT id, key, version, name, resource_name, content_hash, xml FROM process_definition WHERE id = :id",
               {"id": definition_id})  # fmt: skip


@dataclass(frozen=True, slots=True)
class KeptDrawing:
    """What was laid out for a version without a drawing; `xml` None: `note` says why not."""

    xml: bytes | None
    note: str


def kept_drawing(conn: Connection, definition_id: UUID) -> KeptDrawing | None:
    """None: nobody has looked yet, or the version has a drawing of its own."""
    return row(conn, KeptDrawing, "SELECT xml, note FROM drawing WHERE definition_id = :id", {"id": definition_id})


@dataclass(frozen=True, slots=True)
class ElementCounts:
    """What stands at one element now. `tokens` counts the failed ones too."""

    element_id: str
    tokens: int
    failed: int
    incidents: int


def element_counts(conn: Connection, *, definition_id: UUID | None = None, instance_id: UUID | None = None) -> list[ElementCounts]:
    """Tokens and incidents by element: of every running instance of a definition, or of one instance."""
    if (definition_id is None) == (instance_id is None):
        raise ValueError("expected a definition or an instance")
    params = {"definition": definition_id, "instance": instance_id}
    return rows(conn, ElementCounts, COUNTS_OF_DEFINITION if definition_id else COUNTS_OF_INSTANCE, params)


DEFINITIONS = f"""
WITH shown AS (
  SELECT d.*, version = coalesce(max(version) FILTER (WHERE status <> 'deleting') OVER (PARTITION BY key),
           max(version) OVER (PARTITION BY key)) AS latest, count(*) OVER (PARTITION BY key)::int AS versions
    FROM process_definition AS d
   WHERE tenant_id = :tenant AND (CAST(:key AS text) IS NULL OR key = :key)
),
running AS (
  SELECT definition_id, count(*)::int AS n FROM
    (SELECT definition_id FROM process_instance WHERE tenant_id = :tenant AND status = 'running' LIMIT {SCANNED}) AS seen
   GROUP BY definition_id
),
broken AS (
  SELECT definition_id, count(*)::int AS n FROM
    (SELECT definition_id FROM incident WHERE tenant_id = :tenant LIMIT {SCANNED}) AS seen
   GROUP BY definition_id
)
SELECT s.id, s.key, s.version, s.name, s.status, s.resource_name, s.documentation, s.has_none_start,
       deployment.deployed_by, coalesce(person.display_name, deployment.deployed_by) AS deployed_by_name, s.created_at,
       s.latest, s.versions, coalesce(running.n, 0) AS running, coalesce(broken.n, 0) AS incidents,
       (SELECT count(*)::int FROM (SELECT 1 FROM user_task WHERE definition_id = s.id AND status IN ('open', 'claimed')
         LIMIT {CAP + 1}) AS seen) AS tasks
  FROM shown AS s
  JOIN deployment ON deployment.id = s.deployment_id
  LEFT JOIN person ON person.tenant_id = :tenant AND person.username = deployment.deployed_by
  LEFT JOIN running ON running.definition_id = s.id
  LEFT JOIN broken ON broken.definition_id = s.id
 WHERE (CAST(:key AS text) IS NOT NULL OR s.latest)
   AND (:q = '' OR strpos(lower(s.key), lower(:q)) > 0 OR strpos(lower(s.name), lower(:q)) > 0
        OR (:folded <> '' AND strpos(s.sort_key, :folded) > 0))
 ORDER BY CASE WHEN s.latest AND CAST(:key AS text) IS NULL THEN s.sort_key END, s.key, s.version DESC
 LIMIT 500
"""

COUNTS_OF_DEFINITION = f"""
WITH standing AS (
  SELECT t.element_id, t.status FROM process_instance AS i JOIN token AS t ON t.instance_id = i.id
   WHERE i.definition_id = :definition AND i.status = 'running'
   LIMIT {SCANNED}
),
broken AS (SELECT element_id FROM incident WHERE definition_id = :definition LIMIT {SCANNED})
SELECT element_id, sum(tokens)::int AS tokens, sum(failed)::int AS failed, sum(incidents)::int AS incidents FROM (
  SELECT element_id, count(*) AS tokens, count(*) FILTER (WHERE status = 'failed') AS failed, 0 AS incidents
    FROM standing GROUP BY element_id
  UNION ALL
  SELECT element_id, 0, 0, count(*) FROM broken WHERE element_id IS NOT NULL GROUP BY element_id
) AS both_kinds
 GROUP BY element_id
 ORDER BY element_id
"""

COUNTS_OF_INSTANCE = """
SELECT element_id, sum(tokens)::int AS tokens, sum(failed)::int AS failed, sum(incidents)::int AS incidents FROM (
  SELECT element_id, count(*) AS tokens, count(*) FILTER (WHERE status = 'failed') AS failed, 0 AS incidents
    FROM token WHERE instance_id = :instance GROUP BY element_id
  UNION ALL
  SELECT element_id, 0, 0, count(*) FROM incident WHERE instance_id = :instance AND element_id IS NOT NULL GROUP BY element_id
) AS both_kinds
 GROUP BY element_id
 ORDER BY element_id
"""

KEYS = "SELECT DISTINCT key FROM process_definition WHERE tenant_id = :tenant AND key = ANY (:keys) AND status <> 'deleting'"

DEPLOYED = """
SELECT d.id, d.key, d.version, coalesce(nullif(d.name, ''), d.key) AS name, d.resource_name, p.name AS deployment_name,
       coalesce(person.display_name, p.deployed_by) AS deployed_by_name, p.deployed_at
  FROM deployment AS p
  JOIN {table} AS d ON d.deployment_id = p.id
  LEFT JOIN person ON person.tenant_id = p.tenant_id AND person.username = p.deployed_by
 WHERE p.id = :deployment AND p.tenant_id = :tenant
 ORDER BY d.sort_key, d.key, d.version LIMIT 200
"""
