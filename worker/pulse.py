"""One thread of every worker that says that it lives, takes back expired leases, its own included, and moves feeds of events on.

Recovery is no job and has no leader: it lives here, in every worker, bounded and jittered, so a stalled one of them
matters to nobody. It re-queues and never runs anything in place.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Collection

from engine.commands.event_feeds import MOST_EVENTS, move_feeds_on
from engine.commands.workers import Beat, beat
from engine.db.acquire import recover_expired
from engine.logs import line
from worker.database import UNREACHABLE, Database, Stopping

logger = logging.getLogger("baton.worker")

BATCH, MOST_BATCHES = 100, 20
FEED_SECONDS = 1.0  # between two looks for process events that go to a destination
SILENT_BEATS = 4  # a worker that missed so many heartbeats is not counted as alive


class Pulse:
    """`say` makes the heartbeat from what the worker knows of itself; `heard` gets the number of workers alive."""

    def __init__(
        self,
        database: Database,
        *,
        say: Callable[[], Beat],
        heard: Callable[[int], None],
        heartbeat_seconds: float,
        recovery_seconds: float,
        forgiven: Collection[str] = (),
    ) -> None:
        self._database, self._say, self._heard = database, say, heard
        self._heartbeat_seconds, self._recovery_seconds = heartbeat_seconds, recovery_seconds
        self._forgiven = forgiven  # topics whose expired leases spend no attempt
        self._stopping = threading.Event()
        self.beaten_at = float("-inf")  # when a heartbeat arrived last (time.monotonic)
        self._thread = threading.Thread(target=self._run, name="pulse", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(timeout=self._heartbeat_seconds + 5)

    def _run(self) -> None:
        beat_at = recover_at = feed_at = time.monotonic()
        while True:
            now = time.monotonic()
            if now >= beat_at:
                self._safely("heartbeat", self.beat)
                beat_at = now + self._heartbeat_seconds
            if now >= recover_at:
                self._safely("recovery", self.recover)
                recover_at = now + self._recovery_seconds * random.uniform(0.75, 1.0)  # noqa: S311 - jitter, never later
            if now >= feed_at:
                self._safely("feeds", self.feed)
                feed_at = now + FEED_SECONDS * random.uniform(0.75, 1.25)  # noqa: S311 - jitter
            if self._stopping.wait(max(0.0, min(beat_at, recover_at, feed_at) - time.monotonic())):
                self._database.drop()
                return

    def beat(self) -> None:
        said = self._say()
        self._heard(beat(self._database.connection(), said, alive_seconds=self._heartbeat_seconds * SILENT_BEATS))
        self.beaten_at = time.monotonic()

    def recover(self) -> None:
        for _ in range(MOST_BATCHES):
            recovered = recover_expired(self._database.connection(), limit=BATCH, forgiven=self._forgiven)
            for item in recovered:
                logger.warning(line(f"{item.kind}_recovered", item=item.item_id, lease_number=item.number, status=item.status))
            if len(recovered) < BATCH:
                return

    def feed(self) -> None:
        for _ in range(MOST_BATCHES):
            if move_feeds_on(self._database.connection()) < MOST_EVENTS:
                return

    def _safely(self, what: str, do: Callable[[], None]) -> None:
        try:
            do()
            self._database.is_back()
        except Stopping:
            self._stopping.set()
        except UNREACHABLE as problem:
            self._database.drop()
            self._database.is_gone(problem)
        except Exception as problem:
            # Whatever it is, the other chore of this thread goes on, and this one is tried again at its next time.
            self._database.drop()
            logger.error(line(f"{what}_broken", problem=f"{type(problem).__name__}: {problem}"), exc_info=problem)
