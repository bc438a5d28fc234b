"""Where the cases run: a database of their own, two real worker processes, and the questions about what still moves."""

from __future__ import annotations

import secrets
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg

from engine.config import Settings
from engine.db.migrate import migrate
from engine.db.session import connect, plain_url
from tests.conformance import clock, scripts
from tests.databases import in_database
from tests.worker.processes import WorkerProcess

LEASE_SECONDS = 6
STEP_SECONDS = LEASE_SECONDS / 3  # the clock moves no further while a worker must renew
PATIENCE_SECONDS = 120  # until what should move has moved, on the wall
WORKERS = 2

# What a worker could do now or is doing, other than scripts that wait for the clock; a lease that ran out is to be taken back.
_BUSY = """
SELECT count(*) FROM (
  SELECT j.id FROM job j WHERE j.status = 'available' AND j.held = '{}' AND j.available_at <= baton_now()
    AND (j.kind <> 'service' OR j.topic LIKE 'conformance.%')
  UNION ALL
  SELECT j.id FROM job j WHERE j.status = 'leased' AND (j.lease_expires_at < baton_now() OR NOT EXISTS (
    SELECT FROM conformance.waiting w WHERE w.job_id = j.id AND w.until > baton_now()))
  UNION ALL
  SELECT d.id FROM delivery d WHERE d.status = 'leased' OR d.status = 'available' AND d.held = '{}' AND d.available_at <= baton_now()
) found
"""
_NEXT = """
SELECT min(at) FROM (
  SELECT available_at AS at FROM job WHERE status = 'available' AND held = '{}'
  UNION ALL
  SELECT w.until FROM conformance.waiting w JOIN job j ON j.id = w.job_id AND j.status = 'leased'
) found WHERE at > baton_now()
"""
_LEASES = (
    "SELECT count(*), count(*) FILTER (WHERE lease_expires_at < baton_clock() + %s * interval '1 second') FROM job WHERE status = 'leased'"
)
_ABANDONED = "SELECT min(lease_expires_at) FROM job WHERE status = 'leased' AND leased_at <= %s"


@dataclass(slots=True)
class Stage:
    """`conn` asks and moves the clock; `url` is for whoever runs commands."""

    url: str
    conn: psycopg.Connection[Any]
    folder: Path
    kill: bool
    workers: list[WorkerProcess] = field(default_factory=list)
    started: int = 0
    killed: int = 0

    # ---- workers

    def raise_curtain(self) -> None:
        """Two workers run."""
        while len(self.workers) < WORKERS:
            self.started += 1
            process = WorkerProcess(
                self.url,
                self.folder / f"worker-{self.started}.log",
                handlers="tests.conformance.scripts",
                conformance_database=self.url,
                lease_seconds=str(LEASE_SECONDS),
                poll_seconds="0.05",
                handler_processes="3",
                worker_slots="3",
                delivery_slots="1",
            )
            self.workers.append(process)
        for each in self.workers:
            each.ready()

    def kill_workers(self) -> None:
        """SIGKILL for both, where the run is about that, unless a script that was cut off once works again."""
        if not self.kill or self._one("SELECT count(*) FROM job WHERE status = 'leased' AND attempts > 1"):
            return
        for each in self.workers:
            each.kill()
            self.killed += 1
        self.workers.clear()

    # ---- time

    def settle(self) -> None:
        """Wait until nothing moves without the clock. Raises TimeoutError naming what still does."""
        self.raise_curtain()
        self._until(lambda: not self._one(_BUSY), "every due job to be done")

    def move_on(self, limit: datetime) -> bool:
        """To the next moment at which something is due, or to the limit; whether something was due before it.

        What is due already comes first: the clock stands still for it, though its workers have just been killed.
        """
        if self._one(_BUSY):
            self.settle()
        due = self._one(_NEXT)
        target = limit if due is None else min(due, limit)
        abandoned = self._one(_ABANDONED, clock.now(self.conn)) if not self.workers else None
        if abandoned is not None:  # leases of workers that were killed run out by themselves
            target = min(target, abandoned)
        elif self._one(_LEASES, 0):
            target = min(target, clock.now(self.conn) + timedelta(seconds=STEP_SECONDS))
        clock.move_to(self.conn, target)
        self.raise_curtain()
        if abandoned is None:
            self._until(lambda: not self._stale_leases(), "the running scripts' leases to be renewed")
        return target < limit

    def _stale_leases(self) -> int:
        row = self.conn.execute(_LEASES, (LEASE_SECONDS - STEP_SECONDS,)).fetchone()
        assert row is not None
        return int(row[1])

    def _until(self, look: Any, what: str) -> None:
        end = time.monotonic() + PATIENCE_SECONDS
        while not look():
            if time.monotonic() > end:
                raise TimeoutError(f"expected {what} within {PATIENCE_SECONDS} s, found {self._moving()}")
            for each in self.workers:
                if each.process.poll() is not None:
                    raise RuntimeError(f"worker {each.log.name} ended with {each.process.returncode}:\n{each.text()[-2000:]}")
            time.sleep(0.03)

    def _moving(self) -> str:
        rows = self.conn.execute(
            "SELECT tenant_id, kind, topic, status, last_error FROM job"
            " WHERE status IN ('available', 'leased') AND available_at <= baton_now() LIMIT 5"
        ).fetchall()
        return "; ".join(str(row) for row in rows) or "nothing any more"

    def _one(self, query: str, *params: Any) -> Any:
        row = self.conn.execute(query.encode(), params or None).fetchone()
        return None if row is None else row[0]


@contextmanager
def stage(settings: Settings, *, kill: bool) -> Iterator[Stage]:
    """A fresh database on the given server, or on one that is started for this run; everything goes in the end."""
    with ExitStack() as later:
        server = _server(settings, later)
        name = f"baton_conformance_{secrets.token_hex(4)}"
        with psycopg.connect(server, autocommit=True) as admin:
            admin.execute(f"CREATE DATABASE {name}".encode())
        later.callback(_drop, server, name)
        url = in_database(server, name)
        migrate(url)
        folder = Path(later.enter_context(tempfile.TemporaryDirectory(prefix="baton-conformance-")))
        conn = later.enter_context(connect(url))
        conn.execute(scripts.SCHEMA.encode())
        conn.execute(clock.SCHEMA.encode())
        theatre = Stage(url, conn, folder, kill)
        later.callback(_end, theatre)
        yield theatre


def _server(settings: Settings, later: ExitStack) -> str:
    if settings.database_url:
        return plain_url(settings.database_url)
    from cli.embedded import EmbeddedPostgres

    server = EmbeddedPostgres.for_tests()
    later.callback(server.stop)
    return plain_url(server.start())


def _end(theatre: Stage) -> None:
    for each in theatre.workers:
        each.kill()


def _drop(server: str, name: str) -> None:
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
