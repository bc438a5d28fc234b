"""What every command shares: an idle connection, and being run again whole when that is safe.

`@command` turns a function `(conn, …) -> outcome` into a `Command`:

* it asserts that the connection is in autocommit and idle, so the command's own BEGIN and COMMIT are the only ones;
* after a deadlock (40P01) or a serialization failure (40001), when what it was to call has moved on (`CalledMoved`), or when
  what was prepared is gone (26000, engine.db.prepared), it rolls back and runs again, three runs at most;
* after a lost connection nobody knows whether the commit landed, and re-reading cannot tell either: a commit in flight
  is missed. A caller that can open another connection says so, `claim.reconnecting(fresh)(conn, …)`, and the command
  runs again there under the same request id (or lease). The re-run waits for the backend in doubt and then finds its
  outcome. Without a request id or a lease nothing would recognise a repeat, so the error goes to the caller.

Nothing here sleeps: a re-run waits in the database, for the lock that it lost.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

import psycopg
from psycopg import errors
from psycopg.pq import TransactionStatus

from engine.commands.outcome import Lease
from engine.core.effects import InvariantBroken
from engine.db.session import cursor_of, transaction
from engine.failpoints import failpoint

__all__ = ["CalledMoved", "Command", "Connection", "Reconnect", "assert_idle", "command", "transaction"]

P = ParamSpec("P")
R = TypeVar("R")
Connection = psycopg.Connection[Any]
Reconnect = Callable[[], Connection]

RUNS = 3
IDLE = TransactionStatus.IDLE.value


class CalledMoved(Exception):
    """Under its locks a write found that what is to be called is no longer what the call means."""


class Command(Generic[P, R]):
    """A command that opens its own transaction on an idle autocommit connection."""

    def __init__(self, function: Callable[Concatenate[Connection, P], R], reconnect: Reconnect | None = None) -> None:
        self.function, self.reconnect = function, reconnect
        update_wrapper(self, function)

    def __call__(self, conn: Connection, /, *args: P.args, **kwargs: P.kwargs) -> R:
        assert_idle(conn)
        try:
            return self._run(conn, *args, **kwargs)
        except psycopg.OperationalError:
            if not conn.broken or self.reconnect is None or not _repeatable(args, kwargs):
                raise
        with self.reconnect() as fresh:
            assert_idle(fresh)
            return self._run(fresh, *args, **kwargs)

    def reconnecting(self, reconnect: Reconnect) -> Command[P, R]:
        """The same command, run again on `reconnect()` if its connection is lost; that connection is closed after."""
        return Command(self.function, reconnect)

    def _run(self, conn: Connection, /, *args: P.args, **kwargs: P.kwargs) -> R:
        for run in range(1, RUNS + 1):
            cursor_of(conn).executed = 0
            try:
                outcome = self.function(conn, *args, **kwargs)
                failpoint("command.after_commit")
                return outcome
            except (errors.DeadlockDetected, errors.SerializationFailure, errors.InvalidSqlStatementName, CalledMoved):
                if run == RUNS:
                    raise
            finally:
                _leave_idle(conn)
        raise AssertionError("unreachable: the last run returns or raises")


def command(function: Callable[Concatenate[Connection, P], R]) -> Command[P, R]:
    """Make a command of a function that takes the connection first."""
    return Command(function)


def assert_idle(conn: Connection) -> None:
    """Raise InvariantBroken unless `conn` is in autocommit with no transaction open."""
    status = conn.pgconn.transaction_status
    if not conn.autocommit or status != IDLE:
        raise InvariantBroken(
            f"a command's connection: expected autocommit and idle, found autocommit={conn.autocommit} and {TransactionStatus(status).name}"
        )


def _leave_idle(conn: Connection) -> None:
    # A function that raised between BEGIN and COMMIT leaves a transaction open; the pool must not get it back so.
    if not conn.closed and conn.pgconn.transaction_status != IDLE:
        conn.rollback()


def _repeatable(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return kwargs.get("request_id") is not None or any(isinstance(value, Lease) for value in (*args, *kwargs.values()))
