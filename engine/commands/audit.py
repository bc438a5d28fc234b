"""What a person did to the work of others, kept for those who ask later who it was and why: one row, in the same transaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson

from engine.commands.transaction import Connection
from engine.db.session import cursor_of

NOTE = (
    "INSERT INTO audit (at, tenant_id, actor, action, object_kind, object_id, reason, detail)"
    " VALUES (%s, %s, %s, %s, %s, %s, %s, %s::jsonb)"
)


@dataclass(frozen=True, slots=True)
class Audit:
    """`action`: cancel | retry | …, done to an object. `detail`: JSON values."""

    action: str
    object_kind: str
    object_id: UUID
    reason: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict)


def note(conn: Connection, audit: Audit, *, tenant_id: str, actor: str, at: datetime) -> None:
    """Write the row inside the caller's transaction, which is the one that did it."""
    detail = orjson.dumps(dict(audit.detail)).decode()
    row = (at, tenant_id, actor, audit.action, audit.object_kind, str(audit.object_id), audit.reason, detail)
    cursor_of(conn).execute(NOTE, row)
