"""The worker's way to the database: a connection for each thread, made again for ever after it was lost.

A worker survives a restart of the database: what must be reported is reported when it is back, under the same lease.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import psycopg
from sqlalchemy.engine import make_url

from engine.db.session import connect
from engine.db.silence import KEEPALIVE, give_up_when_silent
from engine.logs import Seldom

R = TypeVar("R")
Connection = psycopg.Connection[Any]
logger = logging.getLogger("baton.worker")

# InternalError: the server ended a session that slept inside a transaction.
UNREACHABLE = (psycopg.OperationalError, psycopg.InterfaceError, psycopg.InternalError)
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
REFUSALS_IN_A_ROW = 5


class Stopping(Exception):
    """The worker stops and no longer waits for the database."""


class Database:
    """One database as several threads of this process use it. `stopping`: set when nobody shall wait for it any more.

    `idle_seconds`: a session that a stopped worker (SIGSTOP, a sleeping laptop) left in the middle of a transaction is
    ended after that, else it would keep a case locked for as long as it sleeps. No user code runs inside a transaction.
    """

    def __init__(
        self, url: str, *, name: str, stopping: threading.Event, statement_seconds: float = 30.0, idle_seconds: float = 10.0
    ) -> None:
        self.url = make_url(url).update_query_dict({"connect_timeout": "5", **KEEPALIVE}).render_as_string(hide_password=False)
        self.name, self.stopping = name, stopping
        self.statement_seconds = statement_seconds
        timeouts = {"statement_timeout": statement_seconds, "idle_in_transaction_session_timeout": idle_seconds}
        self.timeouts = {setting: f"{int(seconds * 1000)}ms" for setting, seconds in timeouts.items()}
        self._mine = threading.local()
        self._seldom = Seldom(logger)
        self._gone_since: float | None = None

    def connection(self) -> Connection:
        """This thread's connection, opened if need be. Raises psycopg.OperationalError when there is no database."""
        conn: Connection | None = getattr(self._mine, "conn", None)
        if conn is None or conn.closed:
            conn = self._mine.conn = connect(self.url, application_name=self.name, settings=self.timeouts)
            give_up_when_silent(conn, statement_seconds=self.statement_seconds)
        return conn

    def drop(self) -> None:
        """Close this thread's connection; the next use opens another."""
        conn: Connection | None = getattr(self._mine, "conn", None)
        self._mine.conn = None
        if conn is not None and not conn.closed:
            conn.close()

    def patiently(self, work: Callable[[Connection], R], *, unless: threading.Event | None = None) -> R:
        """Run `work(connection)` until the database answers, whatever that takes.

        Raises Stopping when nobody waits any more; `unless` is then asked instead of what the worker as a whole is told.
        Only for what may be run again whole: commands under a lease, reads. A database that is there and refuses (a
        timeout, a full disk) is asked a few times, then its error goes to the caller.
        """
        pause, refusals = FIRST_PAUSE, 0
        while True:
            try:
                result = work(self.connection())
                self.is_back()
                return result
            except UNREACHABLE as problem:
                conn: Connection | None = getattr(self._mine, "conn", None)
                if conn is not None and not conn.closed:
                    refusals += 1
                    if refusals == REFUSALS_IN_A_ROW:
                        raise
                self.drop()
                self.is_gone(problem)
            if (unless or self.stopping).wait(pause * random.uniform(0.75, 1.25)):  # noqa: S311 - jitter
                raise Stopping
            pause = min(pause * 2, LONGEST_PAUSE)

    def is_gone(self, problem: BaseException) -> None:
        """Say, seldom, that the database does not answer."""
        now = time.monotonic()
        self._gone_since = self._gone_since or now
        self._seldom.warning("database_unreachable", seconds=now - self._gone_since, problem=str(problem).strip())

    def is_back(self) -> None:
        since, self._gone_since = self._gone_since, None
        if since is not None:  # seldom too: each thread finds its own connection dead, some after others were back
            self._seldom.warning("database_back", seconds=time.monotonic() - since)
