"""Real worker processes for tests: started, watched by their log lines, stopped, killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import psycopg

T = TypeVar("T")

RUN = "import sys; from engine.config import Settings; from worker.main import run; sys.exit(run(Settings.from_env()))"
QUICK = {
    "BATON_HANDLERS": "tests.worker.handlers_for_tests",
    "BATON_LEASE_SECONDS": "3",
    "BATON_POLL_SECONDS": "0.1",
    "BATON_RECOVERY_SECONDS": "0.5",
    "BATON_HEARTBEAT_SECONDS": "0.5",
    "BATON_HANDLER_PROCESSES": "2",
    "BATON_WORKER_SLOTS": "2",
    "BATON_DELIVERY_SLOTS": "2",
    "BATON_DRAIN_SECONDS": "20",
}


def eventually(look: Callable[[], T], what: str, *, seconds: float = 30.0) -> T:
    """The first true answer of `look`; fails with `what` was expected if none comes in time."""
    end = time.monotonic() + seconds
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"expected {what} within {seconds:g} s, found {found!r}")
        time.sleep(0.02)


class WorkerProcess:
    """One worker in a process of its own. Settings by their variables, on top of QUICK.

    `tree`, `python`: of another release than this.
    """

    def __init__(self, database_url: str, log: Path, *, tree: Path | None = None, python: str = sys.executable, **settings: str) -> None:
        names = {f"BATON_{name.upper()}": value for name, value in settings.items()}
        self.log = log
        clean = {name: value for name, value in os.environ.items() if not name.startswith("BATON_")}
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                [python, "-c", RUN],
                cwd=tree,
                env={**clean, **QUICK, "DATABASE_URL": database_url, **names},
                stdout=out,
                stderr=out,
            )

    def __enter__(self) -> WorkerProcess:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.kill()
        if error is not None:
            print(f"---- {self.log.name}\n{self.text()}")

    @property
    def pid(self) -> int:
        return self.process.pid

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def lines(self, event: str) -> list[str]:
        """The log lines of one event, in order."""
        return re.findall(rf"^\S+ [A-Z]+ \S+ ({re.escape(event)}(?: .*)?)$", self.text(), re.MULTILINE)

    def says(self, event: str, *, times: int = 1, seconds: float = 30.0) -> list[str]:
        """Wait until it logged `event` so often."""

        def look() -> list[str]:
            ended = self.process.poll()  # asked first: what it said before its end counts
            found = self.lines(event)
            assert ended is None or len(found) >= times, f"the worker ended: {ended}\n{self.text()}"
            return found if len(found) >= times else []

        return eventually(look, f"{times} lines {event} in {self.log.name}", seconds=seconds)

    def ready(self) -> WorkerProcess:
        self.says("worker_ready")
        return self

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def terminate(self, *, seconds: float = 40.0) -> int:
        """SIGTERM, and its exit code."""
        self.signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait()

    def died(self, *, seconds: float = 30.0) -> int:
        """Wait until it has ended by itself; its exit code, negative for a signal."""
        return self.process.wait(seconds)


@contextmanager
def worker(database_url: str, folder: Path, name: str = "worker", **settings: str) -> Iterator[WorkerProcess]:
    with WorkerProcess(database_url, folder / f"{name}.log", **settings) as process:
        yield process.ready()


def row(conn: psycopg.Connection[Any], query: str, *params: Any) -> tuple[Any, ...]:
    found = conn.execute(query, params).fetchone()
    assert found is not None, f"expected a row, found none: {query} {params}"
    return tuple(found)
