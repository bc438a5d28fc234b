"""The audit: what people did to the work of others, to definitions, and to people."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from engine.commands.may import ADMINISTRATORS, may
from engine.commands.outcome import Actor
from engine.queries.rows import Page, page_of, record_cursor, rows


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One deed. `by_service`: of a service account; `via`: by which program. `object_kind` and `object_id` say to what;
    `detail` what the command found worth keeping.
    """

    id: int
    at: datetime
    actor: str
    actor_name: str
    by_service: bool
    via: str
    action: str
    object_kind: str
    object_id: str
    reason: str
    detail: dict[str, Any]


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """None: whatever it is. `since` counts, `until` does not."""

    actor: str | None = None
    action: str | None = None
    object_kind: str | None = None
    object_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None


def audit(conn: Connection, actor: Actor, wanted: AuditFilter, *, cursor: str | None = None, limit: int = 50) -> Page[AuditRow]:
    """One page of what this actor may see of it, newest first: deeds to people and their keys are administrators'. Raises BadCursor."""
    after = record_cursor(cursor)
    where = ["a.tenant_id = :tenant", "a.object_kind <> ALL (:hidden)"]
    where += [f"a.{name} = :{name}" for name in ("actor", "action", "object_kind", "object_id") if getattr(wanted, name) is not None]
    if wanted.since is not None:
        where.append("a.at >= :since")
    if wanted.until is not None:
        where.append("a.at < :until")
    if after is not None:
        where.append("(a.at, a.id) < (:after_at, :after_id)")
    params = {
        "tenant": actor.tenant_id, "hidden": sorted(kind for kind in ADMINISTRATORS if not may(actor, "see", kind)),
        "actor": wanted.actor, "action": wanted.action, "object_kind": wanted.object_kind, "object_id": wanted.object_id,
        "since": wanted.since, "until": wanted.until, "limit": limit + 1,
        "after_at": after and after[0], "after_id": after and after[1],
    }  # fmt: skip
    found = rows(conn, AuditRow, AUDIT.format(where=" AND ".join(where)), params)
    return page_of(found, limit=limit, position=lambda deed: (deed.at, deed.id))


AUDIT = """
SELECT a.id, a.at, a.actor, coalesce(person.display_name, a.actor) AS actor_name,
       coalesce(person.kind = 'service', false) AS by_service, a.via, a.action, a.object_kind, a.object_id, a.reason, a.detail
  FROM audit AS a LEFT JOIN person ON person.tenant_id = a.tenant_id AND person.username = a.actor
 WHERE {where} ORDER BY a.at DESC, a.id DESC LIMIT :limit
"""
