"""What can be started: the newest version of each process that has a none start event."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from engine.commands.outcome import Actor
from engine.queries.rows import Connection, rows
from engine.queries.rows import row as one_row


@dataclass(frozen=True, slots=True)
class Startable:
    """One process that somebody signed in may start. `suspended`: refused at the moment."""

    definition_id: UUID
    key: str
    version: int
    name: str
    documentation: str
    deployed_at: datetime
    suspended: bool


LATEST = """
    SELECT id AS definition_id, key, version, coalesce(nullif(name, ''), key) AS name, documentation,
      created_at AS deployed_at, status = 'suspended' AS suspended
    FROM (SELECT DISTINCT ON (key) * FROM process_definition WHERE tenant_id = :tenant AND status <> 'deleting' {only}
      ORDER BY key, version DESC) latest
    WHERE has_none_start
"""


def startable(conn: Connection, actor: Actor) -> list[Startable]:
    """All of them, in the order of names."""
    sql = LATEST.format(only="") + ' ORDER BY sort_key COLLATE "C", key LIMIT 500'
    return rows(conn, Startable, sql, {"tenant": actor.tenant_id})


def startable_process(conn: Connection, actor: Actor, key: str) -> Startable | None:
    """The one called `key`, or None if it is not there or does not begin by hand."""
    return one_row(conn, Startable, LATEST.format(only="AND key = :key"), {"tenant": actor.tenant_id, "key": key})
