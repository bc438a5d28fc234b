"""Writes what handlers say while they run. It holds nothing up: what cannot be written now is written later, or left out."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import psycopg

from engine.commands.attempt_log import Line, Report, keep_reports
from engine.db.acquire import Acquired
from engine.logs import Seldom
from engine.reports import MOST_LINES
from worker.database import Database

logger = logging.getLogger("baton.worker")

FLUSH_SECONDS = 0.5  # what is said is written at the latest after that
LAST_FLUSH_SECONDS = 5.0
LONGEST_PAUSE = 5.0
MOST_ATTEMPTS = 1_000  # whose words wait for a database that does not answer


@dataclass(slots=True)
class Said:
    """What one attempt has said and nobody has written. `lines`: when (time.monotonic), level, text."""

    item_id: UUID
    lease_number: int
    tenant_id: str
    lines: list[tuple[float, str, str]] = field(default_factory=list)
    progress: float | None = None
    doing: str = ""
    more: int = 0

    def note(self, said: Mapping[str, Any]) -> None:
        """One word of a Reporter. Raises ValueError for what is none."""
        match said:
            case {"log": str(text), "level": str(level)}:
                if len(self.lines) < MOST_LINES:
                    self.lines.append((time.monotonic(), level, text))
                else:
                    self.more += 1
            case {"progress": float(part), "doing": str(doing)}:
                self.progress, self.doing = part, doing
            case {"more": int(count)}:
                self.more += count
            case _:
                raise ValueError(f"expected a report, found {said!r}")

    def after(self, earlier: Said) -> None:
        """`earlier` could not be written: it comes first."""
        lines = earlier.lines + self.lines
        self.lines, self.more = lines[:MOST_LINES], self.more + earlier.more + len(lines[MOST_LINES:])
        if self.progress is None:
            self.progress, self.doing = earlier.progress, earlier.doing

    def report(self) -> Report:
        now = time.monotonic()
        lines = [Line(text or "–", level, now - at) for at, level, text in self.lines]
        return Report(self.item_id, self.lease_number, self.tenant_id, self.progress, self.doing, lines, self.more)


class Scribe:
    """One thread, on a connection of its own that is opened when there is something to write."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._changed = threading.Condition()
        self._unwritten: dict[tuple[UUID, int], Said] = {}
        self._stopping = False
        self._seldom = Seldom(logger)
        self._thread = threading.Thread(target=self._run, name="scribe", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """What was said is still written, if the database answers."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join(timeout=LAST_FLUSH_SECONDS)

    def tell(self, row: Acquired, said: Mapping[str, Any]) -> None:
        """Take down what an attempt says. Raises ValueError for what no Reporter says."""
        key = (row.item_id, row.number)
        with self._changed:
            kept = self._unwritten.get(key) or Said(row.item_id, row.number, row.tenant_id)
            kept.note(said)
            if len(self._unwritten) < MOST_ATTEMPTS:
                self._unwritten[key] = kept
            self._changed.notify()

    def _run(self) -> None:
        pause = FLUSH_SECONDS
        while self._wait():
            if self._write():
                pause = FLUSH_SECONDS
            elif self._stopping:
                break
            else:
                pause = min(pause * 2, LONGEST_PAUSE)
            with self._changed:
                self._changed.wait_for(lambda: self._stopping, timeout=pause)
        self._database.drop()

    def _wait(self) -> bool:
        """Until there is something to write; False at the end."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self._unwritten) or self._stopping)
            return bool(self._unwritten)

    def _write(self) -> bool:
        with self._changed:
            taken, self._unwritten = self._unwritten, {}
        try:
            keep_reports(self._database.connection(), [said.report() for said in taken.values()])
        except psycopg.Error as problem:
            self._database.drop()
            self._seldom.warning("reports_not_written", attempts=len(taken), problem=str(problem).strip())
            self._put_back(taken)
            return False
        return True

    def _put_back(self, taken: dict[tuple[UUID, int], Said]) -> None:
        with self._changed:
            for key, said in taken.items():
                if (later := self._unwritten.get(key)) is not None:
                    later.after(said)
                elif len(self._unwritten) < MOST_ATTEMPTS:
                    self._unwritten[key] = said
