"""What the script tasks of the cases do, in the workers: each finds its token by its element, and writes what it did.

The runner's own schema holds the tokens and the ledger. A line is written once per job: a job that is done again after
its worker was killed has the same key.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import psycopg

from worker.handlers import BpmnError, Context, handler

DATABASE = "BATON_CONFORMANCE_DATABASE"  # handlers do not see the engine's DATABASE_URL
WORK_SECONDS = 10

SCHEMA = """
CREATE SCHEMA conformance;
CREATE TABLE conformance.script (element_id text PRIMARY KEY, token text NOT NULL);
CREATE TABLE conformance.ledger (
  job_id uuid PRIMARY KEY, tenant_id text NOT NULL, element_id text NOT NULL, token text NOT NULL, line text,
  begun timestamptz NOT NULL, ended timestamptz NOT NULL
);
CREATE TABLE conformance.waiting (job_id uuid PRIMARY KEY, until timestamptz NOT NULL);
"""


@contextmanager
def _database() -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(os.environ[DATABASE], autocommit=True) as conn:
        yield conn


@handler("conformance.script", inline=True, deadline_seconds=60)
def script(context: Context) -> dict[str, Any] | None:
    """Everything that takes no time."""
    with _database() as conn:
        token, now = _token(conn, context)
        result: dict[str, Any] = {}
        line: str | None = None
        match token:
            case "INCREMENT_INTEGER_VARIABLE":
                result = {"integerVariable": context.variables["integerVariable"] + 1}
            case "INCREMENT_INTEGER_VARIABLE_AND_LOG":
                result, line = {"integerVariable": context.variables["integerVariable"] + 1}, "INCREMENT"
            case "SET_STRING_DATA":
                result = {"data": "String"}
            case "LOG_DATA":
                line = "DATA_correct" if context.variables.get("data") == "String" else None
            case "CREATE_MARKER_FILE":
                line = "MARKER_exists"
            case _ if token.startswith("SCRIPT_"):
                line = token
        _write(conn, context, token, line, now)
    if token == "THROW_ERROR":
        raise BpmnError("ERR_CODE", "thrown by the case")
    return result


@handler("conformance.work", deadline_seconds=600)
def work(context: Context) -> None:
    """Ten seconds of work on the engine's clock, given up when the lease is lost."""
    with _database() as conn:
        token, begun = _token(conn, context)
        until = begun + timedelta(seconds=WORK_SECONDS)
        conn.execute(
            "INSERT INTO conformance.waiting VALUES (%s, %s) ON CONFLICT (job_id) DO UPDATE SET until = excluded.until",
            (context.idempotency_key, until),
        )
        while _now(conn) < until:
            context.check()
            time.sleep(0.02)
        context.check()
        _write(conn, context, token, None, begun)


def _token(conn: psycopg.Connection[Any], context: Context) -> tuple[str, datetime]:
    row = conn.execute("SELECT token, baton_clock() FROM conformance.script WHERE element_id = %s", (context.element_id,)).fetchone()
    if row is None:
        raise LookupError(f"element {context.element_id}: expected a token for its script, found none")
    return row[0], row[1]


def _now(conn: psycopg.Connection[Any]) -> datetime:
    row = conn.execute("SELECT baton_clock()").fetchone()
    assert row is not None
    now: datetime = row[0]
    return now


def _write(conn: psycopg.Connection[Any], context: Context, token: str, line: str | None, begun: datetime) -> None:
    conn.execute(
        "INSERT INTO conformance.ledger SELECT %(job)s, tenant_id, %(element)s, %(token)s, %(line)s, %(begun)s, baton_clock()"
        " FROM job WHERE id = %(job)s ON CONFLICT (job_id) DO NOTHING",
        {"job": context.idempotency_key, "element": context.element_id, "token": token, "line": line, "begun": begun},
    )
