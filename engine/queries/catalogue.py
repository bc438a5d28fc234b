"""What is deployed, as programs page through it: the latest version of each process, decision or form, or every version of one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection

from engine.queries.rows import Page, row
from engine.queries.sort import Key, keyed_page
from engine.text import sort_key


@dataclass(frozen=True, slots=True)
class ProcessVersion:
    """`latest`: no newer one of its key, or only deleted ones. `startable`: people and programs may start it by hand."""

    id: UUID
    key: str
    version: int
    version_tag: str | None
    name: str
    status: str
    latest: bool
    startable: bool
    deployed_at: datetime
    deployment_id: UUID


@dataclass(frozen=True, slots=True)
class DecisionVersion:
    id: UUID
    key: str
    version: int
    version_tag: str | None
    name: str
    resource_name: str
    documentation: str
    latest: bool
    deployed_at: datetime
    deployment_id: UUID


@dataclass(frozen=True, slots=True)
class FormVersion:
    id: UUID
    key: str
    version: int
    version_tag: str | None
    resource_name: str
    latest: bool
    deployed_at: datetime
    deployment_id: UUID


@dataclass(frozen=True, slots=True)
class FormContent:
    """The file as it was deployed."""

    key: str
    version: int
    resource_name: str
    content: bytes


def process_versions(
    conn: Connection, *, tenant_id: str = "", key: str | None = None, q: str = "", startable: bool | None = None,
    cursor: str | None = None, limit: int = 50,
) -> Page[ProcessVersion]:  # fmt: skip
    """The latest version of each process (matching `q`), or every version of `key`, newest first. Raises BadCursor."""
    params = {**_asked(tenant_id, key, q), "startable": startable}
    return keyed_page(conn, ProcessVersion, PROCESSES, params, keys=BY_VERSION, place=_version, after=cursor, limit=limit)


def decision_versions(
    conn: Connection, *, tenant_id: str = "", key: str | None = None, q: str = "", cursor: str | None = None, limit: int = 50
) -> Page[DecisionVersion]:
    """The same of decisions. Raises BadCursor."""
    params = _asked(tenant_id, key, q)
    return keyed_page(conn, DecisionVersion, DECISIONS, params, keys=BY_VERSION, place=_version, after=cursor, limit=limit)


def form_versions(
    conn: Connection, *, tenant_id: str = "", key: str | None = None, q: str = "", cursor: str | None = None, limit: int = 50
) -> Page[FormVersion]:
    """The same of forms. Raises BadCursor."""
    params = _asked(tenant_id, key, q)
    return keyed_page(conn, FormVersion, FORMS, params, keys=BY_VERSION, place=_version, after=cursor, limit=limit)


def form_content(conn: Connection, key: str, version: int, *, tenant_id: str = "") -> FormContent | None:
    """The text of one version of a form."""
    sql = "SELECT key, version, resource_name, content FROM form_definition WHERE tenant_id = :tenant AND key = :key AND version = :version"
    return row(conn, FormContent, sql, {"tenant": tenant_id, "key": key, "version": version})


def _asked(tenant_id: str, key: str | None, q: str) -> dict[str, Any]:
    return {"tenant": tenant_id, "key": key, "q": q, "folded": sort_key(q)}


def _version(found: ProcessVersion | DecisionVersion | FormVersion) -> dict[str, Any]:
    return {"key": found.key, "newest": -found.version}


BY_VERSION = (Key("key", 'd.key COLLATE "C"', "text"), Key("newest", "-d.version", "integer"))

_WHICH = """
 WHERE (d.latest OR CAST(:key AS text) IS NOT NULL)
   AND (:q = '' OR strpos(lower(d.key), lower(:q)) > 0 OR strpos(lower({name}), lower(:q)) > 0
        OR (:folded <> '' AND strpos({folded}, :folded) > 0))
   AND {{behind}}{more}
 ORDER BY {{order}} LIMIT :limit
"""

PROCESSES = """
SELECT d.id, d.key, d.version, d.version_tag, coalesce(nullif(d.name, ''), d.key) AS name, d.status, d.latest,
       d.latest AND d.has_none_start AND d.status = 'active' AS startable, d.created_at AS deployed_at, d.deployment_id
  FROM (SELECT found.*, version = coalesce(max(version) FILTER (WHERE status <> 'deleting') OVER (PARTITION BY key),
                 max(version) OVER (PARTITION BY key)) AS latest
          FROM process_definition AS found WHERE tenant_id = :tenant AND (CAST(:key AS text) IS NULL OR key = :key)) AS d
""" + _WHICH.format(
    name="d.name",
    folded="d.sort_key",
    more="""
   AND (CAST(:startable AS boolean) IS NULL OR (d.latest AND d.has_none_start AND d.status = 'active') = :startable)""",
)

_LATEST = """(SELECT found.*, version = max(version) OVER (PARTITION BY key) AS latest
          FROM {table} AS found WHERE tenant_id = :tenant AND (CAST(:key AS text) IS NULL OR key = :key)) AS d"""

DECISIONS = f"""
SELECT d.id, d.key, d.version, d.version_tag, d.name, d.resource_name, d.documentation, d.latest, d.created_at AS deployed_at,
       d.deployment_id
  FROM {_LATEST.format(table="decision_definition")}
""" + _WHICH.format(name="d.name", folded="d.sort_key", more="")

FORMS = f"""
SELECT d.id, d.key, d.version, d.version_tag, d.resource_name, d.latest, d.created_at AS deployed_at, d.deployment_id
  FROM {_LATEST.format(table="form_definition")}
""" + _WHICH.format(name="d.resource_name", folded="lower(d.key)", more="")
