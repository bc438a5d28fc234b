"""The plans of the statements that must never wade: acquisition, recovery, the inbox.

What is explained is what runs: acquisition and recovery as prepared by `engine.db.acquire`; the inbox's statements are
taken from the wire while its query runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import psycopg
from sqlalchemy import Engine, event

from engine.commands.outcome import Actor
from engine.db.acquire import WORK, acquire_sql, recover_sql
from engine.db.explain import Plan, explain
from engine.ids import new_id
from engine.queries.inbox import InboxFilter, inbox_counts, inbox_page
from engine.queries.rows import PLANNED_FREELY

SUBJECTS = ("acquire", "recover", "inbox")


def acquisition(conn: psycopg.Connection[Any], table: str, branches: list[tuple[str, str]], *, limit: int = 10, workers: int = 2) -> Plan:
    """Acquiring `limit` items of `table`; `branches`: (kind, topic), (tenant, topic) or (kind, "")."""
    params = {
        "a": [a for a, _ in branches],
        "b": [b for _, b in branches],
        "seconds": [60.0] * len(branches),
        "owner": str(new_id()),
        "limit": limit,
        "reach": limit * (workers + 1),
    }
    return explain(conn, f"acquire {table}", acquire_sql(WORK[table]), params)


def recovery(conn: psycopg.Connection[Any], table: str, *, limit: int = 10) -> Plan:
    """Taking back at most `limit` expired leases of `table`."""
    params = {"limit": limit, "only": None, "incidents": [new_id() for _ in range(limit)], "forgiven": []}
    return explain(conn, f"recover {table}", recover_sql(WORK[table]), params)


def inbox(engine: Engine, actor: Actor, wanted: InboxFilter) -> list[Plan]:
    """The statements of one inbox page and of the counts beside it."""
    names = ("inbox page", "inbox total", "inbox counts")
    with engine.connect() as reader:
        with _statements(engine) as caught:
            inbox_page(reader, actor, wanted)
            inbox_counts(reader, actor, zone=wanted.zone)
        # On the screen's own connection: those of commands are planned otherwise.
        screen = cast(psycopg.Connection[Any], reader.connection.driver_connection)
        return [explain(screen, name, sql, params, settings=PLANNED_FREELY) for name, (sql, params) in zip(names, caught, strict=True)]


@contextmanager
def _statements(engine: Engine) -> Iterator[list[tuple[str, Mapping[str, Any]]]]:
    caught: list[tuple[str, Mapping[str, Any]]] = []

    def note(_conn: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, _many: bool) -> None:
        caught.append((statement, parameters))

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield caught
    finally:
        event.remove(engine, "before_cursor_execute", note)
