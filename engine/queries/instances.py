"""Lists of process instances: searched, filtered, newest first, paged by (started_at, id)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection

from engine.queries.rows import PAGE, Page, page_of, rows, scalar, time_cursor
from engine.text import forms


@dataclass(frozen=True, slots=True)
class InstanceRow:
    id: UUID
    root_id: UUID
    parent_id: UUID | None
    definition_key: str
    definition_name: str
    version: int
    business_key: str | None
    status: str
    mark: str | None
    started_by: str
    started_by_name: str
    started_at: datetime
    ended_at: datetime | None
    incidents: int


@dataclass(frozen=True, slots=True)
class InstanceFilter:
    """`q`: an instance id, or the beginning of a business key. `incidents`: only those with one open."""

    q: str = ""
    key: str = ""
    version: int | None = None
    status: str = ""
    incidents: bool = False
    element_id: str = ""

    @property
    def active(self) -> bool:
        """Whether anything narrows the list, so that an empty one means "nothing matches"."""
        return self != InstanceFilter()


def instances(
    conn: Connection, wanted: InstanceFilter, *, tenant_id: str = "", cursor: str | None = None, limit: int = PAGE
) -> Page[InstanceRow]:
    """One page of instances. Raises BadCursor."""
    where, params = conditions(wanted)
    after = time_cursor(cursor)
    if after is not None:
        where.append("(i.started_at, i.id) < (:after_at, :after_id)")
        params |= {"after_at": after[0], "after_id": after[1]}
    sql = LIST.format(where=" AND ".join(["i.tenant_id = :tenant", *where]))
    found = rows(conn, InstanceRow, sql, params | {"tenant": tenant_id, "limit": limit + 1})
    return page_of(found, limit=limit, position=lambda found: (found.started_at, found.id))


def count_instances(conn: Connection, wanted: InstanceFilter, *, tenant_id: str = "", cap: int = 1_000) -> int:
    """How many there are in all, at most cap + 1."""
    where, params = conditions(wanted)
    sql = COUNT.format(where=" AND ".join(["i.tenant_id = :tenant", *where]))
    return int(scalar(conn, sql, params | {"tenant": tenant_id, "cap": cap + 1}))


def conditions(wanted: InstanceFilter) -> tuple[list[str], dict[str, object]]:
    """For lists of instances `i` with their definition `d`; takes :tenant besides."""
    where: list[str] = []
    params: dict[str, object] = {}
    if wanted.q:
        written = {f"prefix{number}": _like(form) + "%" for number, form in enumerate(forms(wanted.q))}  # one, for most
        where.append(f"({' OR '.join(f'i.business_key LIKE :{name}' for name in written)} OR i.id = :id)")
        params |= {**written, "id": _uuid(wanted.q)}
    if wanted.key:
        where.append("d.key = :key")
        params["key"] = wanted.key
    if wanted.version is not None:
        where.append("d.version = :version")
        params["version"] = wanted.version
    if wanted.status in ("running", "completed", "cancelled"):
        # A literal, not a parameter: partial indexes serve only what the planner can see.
        where.append(f"i.status = '{wanted.status}'")
    if wanted.incidents:
        where.append("i.id IN (SELECT instance_id FROM incident WHERE tenant_id = :tenant)")
    if wanted.element_id:
        where.append("i.status = 'running' AND EXISTS (SELECT 1 FROM token AS t WHERE t.instance_id = i.id AND t.element_id = :element)")
        params["element"] = wanted.element_id
    return where, params


def _like(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


LIST = """
SELECT i.id, i.root_id, i.parent_id, d.key AS definition_key, coalesce(nullif(d.name, ''), d.key) AS definition_name, d.version,
       i.business_key, i.status, i.mark, i.started_by, coalesce(person.display_name, i.started_by) AS started_by_name,
       i.started_at, i.ended_at,
       (SELECT count(*)::int FROM incident WHERE incident.instance_id = i.id) AS incidents
  FROM process_instance AS i
  JOIN process_definition AS d ON d.id = i.definition_id
  LEFT JOIN person ON person.tenant_id = i.tenant_id AND person.username = i.started_by
 WHERE {where}
 ORDER BY i.started_at DESC, i.id DESC
 LIMIT :limit
"""

COUNT = """
SELECT count(*) FROM (
  SELECT 1 FROM process_instance AS i JOIN process_definition AS d ON d.id = i.definition_id WHERE {where} LIMIT :cap
) AS counted
"""
