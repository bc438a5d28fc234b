"""Whose turn it is among the exclusive work of a case."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Connection

from engine.queries.rows import rows


@dataclass(frozen=True, slots=True)
class Turn:
    """The exclusive work of a case that is free or leased; the rest of it waits."""

    id: UUID
    definition_id: UUID
    element_id: str
    instance_id: UUID
    status: str
    attempts: int
    max_attempts: int


def turn_of(conn: Connection, root_id: UUID) -> Turn | None:
    """The one of this case that others wait for."""
    return next(iter(rows(conn, Turn, TURN, {"root": root_id})), None)


TURN = """
SELECT id, definition_id, element_id, instance_id, status, attempts, max_attempts FROM job
 WHERE root_id = :root AND exclusive AND status <> 'failed' AND NOT held @> '{exclusive}'
UNION ALL
SELECT id, definition_id, element_id, instance_id, status, attempts, max_attempts FROM external_task
 WHERE root_id = :root AND exclusive AND status <> 'failed' AND NOT held @> '{exclusive}'
"""
