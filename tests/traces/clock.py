"""The database's clock, standing: both functions that name the time (R11) give the one moment that was set last."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import psycopg

# `ahead` of the test clock counts from the beginning of the epoch instead of from now.
_STANDING = """
CREATE OR REPLACE FUNCTION baton_now() RETURNS timestamptz LANGUAGE sql STABLE AS
  'SELECT ''epoch''::timestamptz + (SELECT ahead FROM test_clock)';
CREATE OR REPLACE FUNCTION baton_clock() RETURNS timestamptz LANGUAGE sql VOLATILE AS
  'SELECT ''epoch''::timestamptz + (SELECT ahead FROM test_clock)';
"""


def stop(conn: psycopg.Connection[Any]) -> None:
    conn.execute(_STANDING)


def move_to(conn: psycopg.Connection[Any], moment: datetime) -> None:
    conn.execute("UPDATE test_clock SET ahead = %s - 'epoch'::timestamptz", (moment,))


def now(conn: psycopg.Connection[Any]) -> datetime:
    row = conn.execute("SELECT baton_clock()").fetchone()
    assert row is not None
    found: datetime = row[0]
    return found
