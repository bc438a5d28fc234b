"""`house_of_rows`: one database whose clock stands, for all scripts, emptied before each."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from engine.db import called, definitions
from engine.db.partitions import make_partitions
from engine.db.session import connect
from tests.databases import Databases
from tests.traces import clock

MONTHS = [datetime(2026, month, 1, tzinfo=UTC) for month in range(1, 13, 2)]
_TABLES = """
SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
  AND c.relname NOT IN ('alembic_version', 'test_clock')
"""


@pytest.fixture(scope="session")
def standing_database(databases: Databases) -> Iterator[psycopg.Connection[Any]]:
    url = databases.lend()
    with connect(url) as conn:
        clock.stop(conn)
        for month in MONTHS:
            clock.move_to(conn, month + timedelta(hours=1))
            make_partitions(conn.cursor())
        yield conn
    databases.take_back(url)


@pytest.fixture
def house_of_rows(standing_database: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
    conn = standing_database
    conn.execute("SET session_replication_role = replica")
    for (table,) in conn.execute(_TABLES).fetchall():
        conn.execute(f"DELETE FROM {table}".encode())
    conn.execute("SET session_replication_role = origin")
    definitions._newest.clear()  # what this process remembers of what is gone
    called._known.clear()
    return conn
