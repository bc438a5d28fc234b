"""The engine's clock during a run: almost still, and moved by the runner alone.

Both functions that name the time (R11) count from one stored moment, a thousand times slower than the wall. So however
busy the machine is, a script never loses a race against a timer that only the machine's slowness would decide.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import psycopg

SLOWER = 1000
SCHEMA = f"""
CREATE TABLE conformance.clock (engine timestamptz NOT NULL, wall timestamptz NOT NULL);
INSERT INTO conformance.clock VALUES (clock_timestamp(), clock_timestamp());
CREATE OR REPLACE FUNCTION baton_now() RETURNS timestamptz LANGUAGE sql STABLE AS
  'SELECT engine + (statement_timestamp() - wall) / {SLOWER} FROM conformance.clock';
CREATE OR REPLACE FUNCTION baton_clock() RETURNS timestamptz LANGUAGE sql VOLATILE AS
  'SELECT engine + (clock_timestamp() - wall) / {SLOWER} FROM conformance.clock';
"""


def now(conn: psycopg.Connection[Any]) -> datetime:
    row = conn.execute("SELECT baton_clock()").fetchone()
    assert row is not None
    found: datetime = row[0]
    return found


def move_to(conn: psycopg.Connection[Any], moment: datetime) -> None:
    """Let it be that moment, a little later: never back."""
    late = max(moment - now(conn), timedelta()) + timedelta(milliseconds=1)
    conn.execute("UPDATE conformance.clock SET engine = engine + %s", (late,))
