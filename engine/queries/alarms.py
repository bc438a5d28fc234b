"""The alarms, and what the history takes, for the overview and the API."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection

from engine.db.alarms import ALARMS, Alarm
from engine.queries.rows import rows


@dataclass(frozen=True, slots=True)
class History:
    """How much room the history takes, and the first month of which there is any ("2026-11")."""

    bytes: int
    since: str


def alarms(conn: Connection) -> tuple[Alarm, ...]:
    """Those that hold now."""
    return tuple(rows(conn, Alarm, ALARMS, {}))


def history_taken(conn: Connection) -> History:
    [found] = rows(conn, History, _HISTORY, {})
    return found


_HISTORY = """
SELECT coalesce(sum(pg_total_relation_size(inhrelid)), 0)::bigint AS bytes,
       coalesce(replace(substr(min(inhrelid::regclass::text), 9), '_', '-'), '') AS since
FROM pg_inherits WHERE inhparent = 'history'::regclass
"""
