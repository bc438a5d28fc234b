"""How a database is reached: one place that knows the URL's shape, the pool's settings and the session's settings.

A URL that ends in `engine.config.POOLED` leads through a pooler in transaction mode: each transaction may be on another session
of the server. Then nothing is prepared, and nothing is set for a session; what sessions start with is a default of the role in
the database, which `baton migrate` sets (ROLE_DEFAULTS).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import sql
from sqlalchemy import Engine, create_engine
from sqlalchemy.engine import URL, make_url

from engine.config import POOLED
from engine.db.prepared import Statements
from engine.failpoints import failpoint

SESSION = {"timezone": "UTC", "jit": "off", "default_transaction_isolation": "read committed"}
# A command finds its rows by key. A plan that was kept from when a table was small (a fresh database; a queue that was
# empty) would read it from end to end as it grows, and so would the checks of foreign keys, until statistics follow. Nor does
# it want a bitmap of rows, which is built whole: acquisition stops after the first few in the order of its index.
COMMANDS = {**SESSION, "enable_seqscan": "off", "enable_bitmapscan": "off"}
# Behind a pooler there is one limit for all: the screens', and the workers' for whoever sleeps within a transaction.
ROLE_DEFAULTS = {**COMMANDS, "statement_timeout": "30s", "idle_in_transaction_session_timeout": "10s"}

PREPARED_MAX = 500
_MARK = POOLED.partition("=")[0]


def behind_pooler(url: str) -> bool:
    return _MARK in make_url(url).query


def driver_url(url: str) -> str:
    """`postgresql://…` (or `postgres://…`) as SQLAlchemy's URL for psycopg 3."""
    found = _unmarked(url.replace("postgres://", "postgresql://", 1))
    return found.set(drivername="postgresql+psycopg").render_as_string(hide_password=False)


def plain_url(url: str) -> str:
    """The URL as libpq understands it."""
    return _unmarked(url).set(drivername="postgresql").render_as_string(hide_password=False)


def _unmarked(url: str) -> URL:
    return make_url(url).difference_update_query([_MARK])


def with_timeout(url: str, *, seconds: int) -> str:
    """The URL with a limit to the time that connecting takes."""
    return make_url(url).update_query_dict({"connect_timeout": str(seconds)}).render_as_string(hide_password=False)


def driver_arguments(url: str, more: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What the driver is told of a connection for commands to `url`; `more`: settings of its session."""
    if behind_pooler(url):
        return {"prepare_threshold": None}
    return {"options": options({**COMMANDS, **(more or {})}), "prepare_threshold": 1}


def options(settings: Mapping[str, str]) -> str:
    """Settings of a session as libpq takes them."""
    return " ".join(f"-c {name}={value.replace(' ', chr(92) + ' ')}" for name, value in settings.items())


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
        connect_args={"application_name": application_name, **driver_arguments(url)},
    )


def connect(url: str, *, application_name: str = "baton", settings: Mapping[str, str] | None = None) -> psycopg.Connection:
    """One psycopg connection in autocommit, for commands outside the web: workers, the command line, tests.

    `settings`: of its session, where it has one: behind a pooler the role's defaults hold.
    """
    # Planned once: acquisition would be planned anew at every call, which takes longer than running it.
    arguments = driver_arguments(url, {"plan_cache_mode": "force_generic_plan", **(settings or {})})
    conn = psycopg.connect(plain_url(url), autocommit=True, application_name=application_name, **arguments)
    conn.prepared_max = PREPARED_MAX
    return conn


def set_role_defaults(conn: psycopg.Connection[Any]) -> None:
    """Let every session of this role in this database begin with ROLE_DEFAULTS; those that are open stay as they are."""
    found = conn.execute("SELECT current_database()").fetchone()
    assert found is not None
    for name, value in ROLE_DEFAULTS.items():
        conn.execute(
            sql.SQL("ALTER ROLE CURRENT_USER IN DATABASE {} SET {} = {}").format(
                sql.Identifier(found[0]), sql.Identifier(name), sql.Literal(value)
            )
        )


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
