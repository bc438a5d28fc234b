"""The feeds of process events, with how far behind each is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from engine.queries.rows import capped, rows


@dataclass(frozen=True, slots=True)
class Feed:
    """`behind`: events that are not in the outbox yet, counted up to 1,000; `destination_removed`: nothing is written for it."""

    name: str
    destination: str
    destination_removed: bool
    kinds: list[str]
    definition_key: str
    created_by: str
    created_at: datetime
    behind: int


def event_feeds(conn: Connection, *, tenant_id: str = "", limit: int = 200) -> list[Feed]:
    """By name."""
    return rows(conn, Feed, FEEDS, {"tenant": tenant_id, "limit": limit})


_BEHIND = capped("SELECT 1 FROM history h WHERE (h.xid, h.id) > (f.xid, f.event_id) AND h.tenant_id = f.tenant_id", cap=1_000)
FEEDS = f"""
SELECT f.name, d.name AS destination, d.removed_at IS NOT NULL AS destination_removed, f.kinds, f.definition_key, f.created_by,
       f.created_at, {_BEHIND} AS behind
  FROM event_feed f JOIN destination d ON d.id = f.destination_id
 WHERE f.tenant_id = :tenant ORDER BY f.name LIMIT :limit
"""
