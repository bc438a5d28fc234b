"""Bring a database to the newest schema. Safe from several replicas at once: an advisory lock lets one migrate."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from psycopg import errors
from sqlalchemy import Connection, Engine, event
from sqlalchemy.exc import DBAPIError

from engine.db.session import behind_pooler, connect, make_engine, set_role_defaults
from engine.paths import shipped

LOCK = 7_265_001  # any fixed number: "baton migrates"
RUNS = 5  # of one migration that deadlocks with those who work meanwhile


def migrations_folder() -> Path:
    """Where the migrations lie, in a checkout and in an installed wheel alike."""
    return shipped("migrations")


def migrate(url: str) -> None:
    """Upgrade to head. Waits while another process migrates. Behind a pooler, sessions begin as commands need them from then on."""
    config = Config()
    config.set_main_option("script_location", str(migrations_folder()))
    # The lock is of a transaction, as behind a pooler it must be; between its statements that transaction holds nothing else.
    with connect(url, application_name="baton-migrate") as guard:
        guard.execute("BEGIN")
        guard.execute("SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0")
        guard.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
        engine = make_engine(url, pool_size=1, application_name="baton-migrate")
        try:
            _upgrade(engine, config)
        finally:
            engine.dispose()
        guard.execute("COMMIT")
        if behind_pooler(url):
            set_role_defaults(guard)


def _upgrade(engine: Engine, config: Config) -> None:
    """Each migration in a transaction of its own. One that met a command's locks the wrong way round (40P01) is run again."""
    for run in range(1, RUNS + 1):
        try:
            with engine.connect() as connection:
                config.attributes["connection"] = connection.execution_options(isolation_level="READ COMMITTED")
                command.upgrade(config, "head")
            return
        except (errors.DeadlockDetected, DBAPIError) as problem:
            cause = problem.orig if isinstance(problem, DBAPIError) else problem
            if run == RUNS or not isinstance(cause, errors.DeadlockDetected):
                raise


def limit(connection: Connection, *, lock_timeout: str, statement_timeout: str) -> None:
    """Let each transaction of `connection` begin with these timeouts: of its session there may be none."""

    def begin(conn: Connection) -> None:
        conn.exec_driver_sql(f"SET LOCAL lock_timeout = '{lock_timeout}'; SET LOCAL statement_timeout = '{statement_timeout}'")

    event.listen(connection, "begin", begin)
