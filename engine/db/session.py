"""How a database is reached: one place that knows the URL's shape, the pool's settings and the session's settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from sqlalchemy import Engine, create_engine
from sqlalchemy.engine import make_url

from engine.db.prepared import Statements
from engine.failpoints import failpoint

OPTIONS = "-c timezone=UTC -c jit=off -c default_transaction_isolation=read\\ committed"
# A command finds its rows by key. A plan that was kept from when a table was small (a fresh database; a queue that was
# empty) would read it from end to end as it grows, and so would the checks of foreign keys, until statistics follow. Nor does
# it want a bitmap of rows, which is built whole: acquisition stops after the first few in the order of its index.
COMMANDS = f"{OPTIONS} -c enable_seqscan=off -c enable_bitmapscan=off"


def driver_url(url: str) -> str:
    """`postgresql://…` (or `postgres://…`) as SQLAlchemy's URL for psycopg 3."""
    parsed = make_url(url.replace("postgres://", "postgresql://", 1))
    return parsed.set(drivername="postgresql+psycopg").render_as_string(hide_password=False)


def plain_url(url: str) -> str:
    """The URL as libpq understands it."""
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


def make_engine(url: str, *, pool_size: int = 5, application_name: str = "baton") -> Engine:
    """SQLAlchemy's engine in AUTOCOMMIT: a command finds its connection idle and opens its own transaction.

    Planned as for commands; a screen's read asks for the planner's freedom (engine.queries.rows.reading).
    """
    return create_engine(
        driver_url(url),
        isolation_level="AUTOCOMMIT",
        pool_size=pool_size,
        max_overflow=0,
        pool_pre_ping=True,
        connect_args={"options": COMMANDS, "application_name": application_name, "prepare_threshold": 1},
    )


def connect(url: str, *, application_name: str = "baton") -> psycopg.Connection:
    """One psycopg connection in autocommit, for commands outside the web: workers, the command line, tests."""
    # Planned once: acquisition would be planned anew at every call, which takes longer than running it.
    options = f"{COMMANDS} -c plan_cache_mode=force_generic_plan"
    conn = psycopg.connect(plain_url(url), autocommit=True, options=options, application_name=application_name)
    conn.prepare_threshold, conn.prepared_max = 1, 500
    return conn


_PLACE = "baton_statements"  # on the connection itself, so that they go with it


def cursor_of(conn: psycopg.Connection[Any]) -> Statements:
    """What executes the statements of commands on this connection."""
    found: Statements | None = getattr(conn, _PLACE, None)
    if found is None:
        found = Statements(conn)
        setattr(conn, _PLACE, found)
    return found


@contextmanager
def transaction(conn: psycopg.Connection[Any]) -> Iterator[psycopg.Connection[Any]]:
    """BEGIN … COMMIT; ROLLBACK when the block raises."""
    cursor = cursor_of(conn)
    cursor.control("BEGIN")
    try:
        yield conn
        failpoint("command.before_commit")
    except BaseException:
        if not conn.closed:
            cursor.control("ROLLBACK")
        raise
    cursor.control("COMMIT")
