"""Whether the server has room for the connections that a replica may open: asked once, at its start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg

WORKER_THREADS = 5
"""Connections of a worker besides those of its slots: acquirer, renewals, pulse, upkeep, scribe (before and after it, the main thread)."""


def of_worker(*threads: int) -> int:
    """The most connections of one worker. `threads`: of each lane's slots, one or two for each."""
    return sum(threads) + WORKER_THREADS


def of_web(*, processes: int, pool_size: int) -> int:
    """The most connections of one `baton web`: in each process the pool, and the one that follows the history for live pages."""
    return processes * (pool_size + 1)


@dataclass(frozen=True, slots=True)
class TooFew:
    """`wanted` by this replica; `allowed`: the server's max_connections less those reserved; `used`: by all others."""

    wanted: int
    allowed: int
    used: int


_ROOM = """
SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
         - coalesce(current_setting('reserved_connections', true)::int, 0),
       (SELECT count(*)::int FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid())
"""


def too_few(conn: psycopg.Connection[Any], wanted: int) -> TooFew | None:
    """What is wrong, if the server cannot give so many beside those that are open now."""
    row = conn.execute(_ROOM).fetchone()
    assert row is not None
    allowed, used = row
    return TooFew(wanted, allowed, used) if wanted > allowed - used else None
