"""A connection of its own, past every proxy, that looks all the while: at leases past their expiry, and for notifications.

How long a lease stays past its expiry is counted in looks, each worth at most half a second: a machine that stalls stalls
the looks as well, and what nobody could have recovered (no database) does not count.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg

from tests.faults.storm.processes import RECOVERY_SECONDS

EVERY, WORTH = 0.15, 0.5
BOUND = 2 * RECOVERY_SECONDS
LOST = (psycopg.OperationalError, psycopg.InterfaceError)
EXPIRED = " UNION ALL ".join(
    f"SELECT '{table}', id, lease_number, lease_owner FROM {table} WHERE status = 'leased' AND lease_expires_at < baton_now()"
    for table in ("job", "external_task", "delivery")
)
NOTIFIED = (
    "SELECT s.query FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid"
    " WHERE d.datname = current_database() AND s.query ~* %s AND s.calls > 0"
)
RUNNING = "SELECT count(*) FROM process_instance WHERE status = 'running' AND parent_id IS NULL"


class Watch:
    """`url()`: who is the primary now. `living()`: whether a worker lives that could recover."""

    def __init__(self, url: Callable[[], str], living: Callable[[], bool]) -> None:
        self._url, self._living = url, living
        self._stopping = threading.Event()
        self._overdue: dict[tuple[Any, ...], float] = {}
        self.running = 0
        self.looks = 0
        self.worst = 0.0
        self.too_long: dict[str, float] = {}  # whose lease -> seconds
        self.notified: set[str] = set()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(30)

    def _run(self) -> None:
        conn: psycopg.Connection[Any] | None = None
        url, last = "", time.monotonic()
        while not self._stopping.wait(EVERY):
            try:
                if conn is None or conn.closed or url != self._url():
                    if conn is not None:
                        conn.close()
                    url = self._url()
                    conn = psycopg.connect(url, autocommit=True, connect_timeout=3, application_name="storm-watch")
                    self._overdue, last = {}, time.monotonic()
                self._look(conn, min(WORTH, time.monotonic() - last))
                last = time.monotonic()
            except LOST:
                if conn is not None:
                    conn.close()
        if conn is not None:
            conn.close()

    def _look(self, conn: psycopg.Connection[Any], worth: float) -> None:
        found = conn.execute(EXPIRED).fetchall()
        living = self._living()
        self._overdue = {lease: (self._overdue[lease] + worth if lease in self._overdue else 0.0) if living else 0.0 for lease in found}
        for lease, seconds in self._overdue.items():
            self.worst = max(self.worst, seconds)
            if seconds > BOUND:
                self.too_long[f"{lease[0]} {lease[1]} under number {lease[2]}"] = round(seconds, 1)
        ((self.running,),) = conn.execute(RUNNING).fetchall()
        self.looks += 1
        if self.looks % 10 == 1:
            self.notified |= {query for (query,) in conn.execute(NOTIFIED, (r"\m(pg_)?notify\M",))}
