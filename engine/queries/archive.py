"""What `baton export` writes: the files in which the newest version of something stands, by deployment; and how a database compares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import class_row

BY_DEPLOYMENT = b'"deployment"'  # a binding, in the attributes of any dialect
KINDS = ("process", "decision", "form")
_TABLES = {
    "process": ("process_definition", "xml", "d.status <> 'deleting'"),
    "decision": ("decision_definition", "xml", "true"),
    "form": ("form_definition", "content", "true"),
}


@dataclass(frozen=True, slots=True)
class Standing:
    """The newest version of something: `hash` says by what two files are the same (their content, or only what it means)."""

    kind: str
    key: str
    version: int
    file: str
    hash: str
    content_hash: str


@dataclass(frozen=True, slots=True)
class Deployed:
    """One deployment: its files, and what of it is the newest of its key."""

    name: str
    files: tuple[tuple[str, bytes], ...]
    stands_for: tuple[Standing, ...]


def newest(conn: psycopg.Connection[Any], *, tenant_id: str = "") -> dict[tuple[str, str], Standing]:
    """(kind, key) -> its newest version."""
    found = conn.cursor(row_factory=class_row(Standing)).execute(_NEWEST, {"tenant": tenant_id}).fetchall()
    return {(each.kind, each.key): each for each in found}


def newest_deployments(conn: psycopg.Connection[Any], *, tenant_id: str = "") -> list[Deployed]:
    """The deployments that hold the newest version of anything, in the order in which they came."""
    standing = newest(conn, tenant_id=tenant_id)
    files: dict[UUID, dict[str, bytes]] = {}
    names: dict[UUID, str] = {}
    holds: dict[UUID, list[Standing]] = {}
    for deployment, name, kind, key, version, file, content in conn.execute(_FILES, {"tenant": tenant_id}):
        names[deployment] = name
        files.setdefault(deployment, {})[file] = content
        if (found := standing.get((kind, key))) is not None and found.version == version:
            holds.setdefault(deployment, []).append(found)
    return [Deployed(names[one], _needed(files[one], holds[one]), tuple(holds[one])) for one in files if one in holds]


def _needed(files: dict[str, bytes], holds: list[Standing]) -> tuple[tuple[str, bytes], ...]:
    """The files of what is the newest; all of the deployment where one of them names another by "the same deployment"."""
    needed = {each.file: files[each.file] for each in holds}
    return tuple((files if any(BY_DEPLOYMENT in content for content in needed.values()) else needed).items())


def _each(select: str) -> str:
    parts = []
    for kind in KINDS:
        table, content, where = _TABLES[kind]
        parts.append(select.format(kind=kind, table=table, content=content, where=where))
    return " UNION ALL ".join(parts)


_ONE_NEWEST = (
    "(SELECT DISTINCT ON (d.key) '{kind}' AS kind, d.key, d.version, d.resource_name AS file,"
    " encode(sha256(d.{content}), 'hex') AS hash, encode(d.content_hash, 'hex') AS content_hash"
    " FROM {table} d WHERE d.tenant_id = %(tenant)s AND {where} ORDER BY d.key, d.version DESC)"
)
_NEWEST = f"SELECT kind, key, version, file, hash, content_hash FROM ({_each(_ONE_NEWEST)}) every ORDER BY kind, key"
_ONE_FILE = (
    "(SELECT d.deployment_id, '{kind}' AS kind, d.key, d.version, d.resource_name AS file, d.{content} AS content"
    " FROM {table} d WHERE d.tenant_id = %(tenant)s AND {where})"
)
_FILES = f"""
SELECT p.id, p.name, f.kind, f.key, f.version, f.file, f.content
FROM deployment p JOIN ({_each(_ONE_FILE)}) f ON f.deployment_id = p.id
ORDER BY p.deployed_at, p.id, f.file, f.kind, f.key
"""
