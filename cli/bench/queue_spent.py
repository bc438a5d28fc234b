"""What a drain costs: CPU of the worker, its handler processes and the server; WAL, commits and statements; memory."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from cli.processes import children_of

_BACKENDS = """
SELECT pid FROM pg_stat_activity
WHERE datname = current_database() OR backend_type IN ('walwriter', 'checkpointer', 'background writer')
"""
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Spent:
    """Totals so far. CPU in seconds; `server` None where the server's processes are not on this machine.

    `commits`: transactions that wrote; `statements` None without pg_stat_statements. These and `wal` are of the whole server.
    """

    parents: float
    children: float
    server: float | None
    commits: int
    wal: int
    statements: int | None


def spent(conn: psycopg.Connection[Any], parents: Iterable[int]) -> Spent:
    """What these workers and the server have spent until now."""
    own = list(parents)
    row = conn.execute(
        "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint, pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint"
    ).fetchone()
    assert row is not None, "a SELECT without FROM gives one row"
    return Spent(
        sum(_cpu(pid) for pid in own),
        sum(_cpu(child) for pid in own for child in children_of(pid)),
        _server_cpu(conn),
        row[0],
        row[1],
        _statements(conn),
    )


def memory_kb(pid: int) -> int:
    """Proportional set size: shared pages count in part."""
    with suppress(OSError):
        for each in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if each.startswith("Pss:"):
                return int(each.split()[1])
    return 0


def _cpu(pid: int) -> float:
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS
    return 0.0


def is_here(conn: psycopg.Connection[Any]) -> bool:
    """Whether the server's processes are on this machine, with its clock."""
    return all(_is_postgres(row[0]) for row in conn.execute(_BACKENDS))


def _server_cpu(conn: psycopg.Connection[Any]) -> float | None:
    """Of the sessions in this database and of the processes that write for them."""
    pids = [row[0] for row in conn.execute(_BACKENDS)]
    if not all(_is_postgres(pid) for pid in pids):
        return None
    return sum(_cpu(pid) for pid in pids)


def _is_postgres(pid: int) -> bool:
    with suppress(OSError):
        return "postgres" in Path(f"/proc/{pid}/comm").read_text()
    return False


def _statements(conn: psycopg.Connection[Any]) -> int | None:
    try:
        row = conn.execute(
            "SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid"
            " WHERE d.datname = current_database()"
        ).fetchone()
    except (psycopg.errors.UndefinedTable, psycopg.errors.ObjectNotInPrerequisiteState):
        return None
    return None if row is None else row[0]
