"""A drawing that was laid out for a model without one is kept, so that it is laid out once."""

from __future__ import annotations

from uuid import UUID

from engine.commands.transaction import Connection, command
from engine.db.session import cursor_of

_KEEP = "INSERT INTO drawing (definition_id, xml, note) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"


@command
def keep_drawing(conn: Connection, definition_id: UUID, *, xml: bytes | None, note: str) -> None:
    """Whoever was first is kept; every layout of a version is the same.

    Locks: nothing. Refuses: nothing.
    """
    cursor_of(conn).execute(_KEEP, (definition_id, xml, note))
