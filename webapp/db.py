"""Flask-SQLAlchemy over the engine's tables: one pool for the screens (Core rows) and for the commands (psycopg)."""

from __future__ import annotations

import os
import weakref
from typing import cast

import psycopg
from flask import Flask, g
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import Connection, Engine, event

from engine.config import Settings
from engine.db.models import Base
from engine.db.session import driver_arguments, driver_url
from engine.db.silence import KEEPALIVE, give_up_when_silent

db = SQLAlchemy(model_class=Base)

STATEMENT_SECONDS = 15
# A rush queues here, threads being many and connections few. It is worked off in time; "busy" is never an answer (R8).
POOL_SECONDS = 30


def init_db(app: Flask, settings: Settings) -> None:
    """AUTOCOMMIT, so that a command finds its connection idle and opens its own transaction.

    Planned as for commands; a screen's read asks for the planner's freedom (engine.queries.rows.reading).
    The statement timeout is the screens' and bounds how long a press waits for a lock that somebody else holds.
    """
    url = settings.need_database()
    app.config["SQLALCHEMY_DATABASE_URI"] = driver_url(url)
    app.config["SQLALCHEMY_ENGINE_OPTIONS"] = {
        "isolation_level": "AUTOCOMMIT",
        "pool_size": settings.pool_size,
        "max_overflow": 0,
        "pool_timeout": POOL_SECONDS,
        "pool_pre_ping": True,
        "connect_args": {
            **driver_arguments(url, {"statement_timeout": f"{STATEMENT_SECONDS}s"}),
            "application_name": "baton-web",
            "connect_timeout": 5,
            **KEEPALIVE,
        },
    }
    db.init_app(app)
    with app.app_context():
        event.listen(db.engine, "connect", _watch_for_silence)
        _leave_behind_at_a_fork(db.engine)
    app.teardown_appcontext(_give_up_what_is_lost)  # teardowns run in reverse: before the session's own


def _leave_behind_at_a_fork(engine: Engine) -> None:
    """A forked process makes a pool of its own: two on one socket would read each other's answers."""
    kept = weakref.ref(engine)

    def begin_anew() -> None:
        if (of_parent := kept()) is not None:
            of_parent.dispose(close=False)  # they are its parent's, which goes on with them

    os.register_at_fork(after_in_child=begin_anew)


def reader() -> Connection:
    """The connection that queries read with: autocommit, given back when the request ends."""
    return db.session.connection()


def command_connection() -> psycopg.Connection:
    """The same connection as psycopg sees it, idle and in autocommit, as commands ask for it."""
    conn = cast(psycopg.Connection, db.session.connection().connection.driver_connection)
    g.command_connection = conn
    return conn


def _watch_for_silence(conn: psycopg.Connection, record: object) -> None:
    give_up_when_silent(conn, statement_seconds=STATEMENT_SECONDS)


def _give_up_what_is_lost(error: BaseException | None) -> None:
    """A connection that a command lost, of which SQLAlchemy has not heard: rolling it back would break the answer."""
    conn = g.get("command_connection")
    if conn is not None and conn.closed:
        db.session().invalidate()
