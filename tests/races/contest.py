"""Races that are really raced: contenders are shown to wait by pg_blocking_pids, then let go. Nothing here sleeps.

`contest`   a row (or key) is locked from outside; each contender is seen to wait for it before the next one begins, so
            they queue up in the order given; then the lock is let go of. Behind the first, if it changes the row, a third may
            pass the second: who wakes up looks for the row's new place, and both look for it there.
`held_at`   a command is held at a fail-point, its transaction written and not committed, while others act.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from engine import failpoints
from engine.db.session import connect

Connection = psycopg.Connection[Any]
Act = Callable[[Connection], Any]
PATIENCE = 30.0  # seconds until a test that hangs gives up


class Contender:
    """One command on a connection and a thread of its own."""

    def __init__(self, url: str, act: Act, name: str = "contender") -> None:
        self.conn = connect(url, application_name=name)
        self._act, self._outcome, self._error = act, None, None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._outcome = self._act(self.conn)
        except BaseException as error:
            self._error = error

    @property
    def pid(self) -> int:
        # Another one after a fault that was injected (tests/injected), and none for a moment before.
        return 0 if self.conn.closed else self.conn.info.backend_pid

    @property
    def done(self) -> bool:
        return not self._thread.is_alive()

    def outcome(self) -> Any:
        """What the command returned; raises what it raised."""
        self._thread.join(PATIENCE)
        assert self.done, "the contender still waits"
        self.conn.close()
        if self._error is not None:
            raise self._error
        return self._outcome

    def seen_waiting(self, watch: Connection) -> Contender:
        """Return as soon as another backend blocks this one."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            row = watch.execute("SELECT cardinality(pg_blocking_pids(%s))", (self.pid,)).fetchone()
            if row is not None and row[0] > 0:
                return self
            assert not self.done, f"expected the contender to wait, but it ended: {self.outcome()!r}"
        raise AssertionError("expected the contender to wait for a lock, and it did not")


def contest(url: str, lock: str, params: Sequence[Any], *acts: Act) -> list[Any]:
    """The outcomes of contenders that all waited, in the order given, for what `lock` locks."""
    with connect(url, application_name="gate") as gate, connect(url, application_name="watch") as watch:
        gate.execute("BEGIN")
        gate.execute(lock, params)
        contenders = [Contender(url, act).seen_waiting(watch) for act in acts]
        gate.execute("COMMIT")
        return [contender.outcome() for contender in contenders]


@contextmanager
def held_at(url: str, name: str, act: Act, folder: Path, *, passage: int = 1) -> Iterator[Contender]:
    """`act` has arrived at the fail-point and stays there while the block runs. Only this one passage is held."""
    fifo = folder / f"{name}.fifo"
    os.mkfifo(fifo)
    failpoints.install(f"{name}#{passage}=hold:{fifo}:once")
    contender = Contender(url, act, "held")
    with fifo.open("wb"):  # blocks until the other side has opened it for reading: it has arrived
        yield contender
    contender._thread.join(PATIENCE)
