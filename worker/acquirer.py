"""Looks for work: as much as there are free slots, only what this worker can run, again at once while there is some.

Each lane has slots of its own, so that a flood of one sort of work cannot keep another waiting: `handlers` (service jobs,
a child process each), `engine` (timers, messages, inline handlers) and `outbox` (deliveries).
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from engine.commands.outcome import Lease, Refusal
from engine.db.acquire import Acquired, acquire_deliveries, acquire_jobs
from engine.db.load import Work, load_batch
from engine.db.outbox import load_requests
from engine.failpoints import failpoint
from engine.logs import line
from worker.database import FIRST_PAUSE, LONGEST_PAUSE, UNREACHABLE, Connection, Database, Stopping
from worker.held import Held
from worker.renewals import Renewals
from worker.runner import Item, Runner
from worker.slots import Slots

logger = logging.getLogger("baton.worker")

SHORTEST_POLL = 0.02


@dataclass(frozen=True, slots=True)
class Lane:
    """Slots and what may fill them. `capabilities`: (kind, topic) of jobs; for the outbox (kind of delivery, "")."""

    name: str
    slots: Slots
    capabilities: tuple[tuple[str, str], ...]
    deliveries: bool = False


class Acquirer:
    """The one thread of a worker that acquires."""

    def __init__(
        self,
        database: Database,
        renewals: Renewals,
        runner: Runner,
        lanes: Sequence[Lane],
        *,
        owner: str,
        lease_seconds: float,
        poll_seconds: float,
    ) -> None:
        self._database, self._renewals, self._runner, self._lanes = database, renewals, runner, lanes
        self._owner, self._lease_seconds, self._poll_seconds = owner, lease_seconds, poll_seconds
        self.workers_alive = 1  # set by the heartbeat
        self._looked = threading.Event()
        self._wake, self._stopping = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="acquirer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, *, seconds: float) -> None:
        """Acquire nothing more; returns once the last batch has been given to the slots, or after so many seconds.

        Without a database that batch may hang between being leased and being read.
        """
        self._stopping.set()
        self._wake.set()
        self._thread.join(seconds)

    def wake(self) -> None:
        """A slot is free, and what it ended may have made the next item due."""
        self._wake.set()

    def has_looked(self) -> bool:
        """Whether an acquisition has succeeded since this was asked last."""
        looked = self._looked.is_set()
        self._looked.clear()
        return looked

    def _run(self) -> None:
        pause, trouble = SHORTEST_POLL, FIRST_PAUSE
        while not self._stopping.is_set():
            self._wake.clear()
            try:
                found = sum(self._fill(lane) for lane in self._lanes)
                self._database.is_back()
                self._looked.set()
                trouble = FIRST_PAUSE
            except Stopping:
                break
            except Exception as problem:
                self._report(problem)
                self._stopping.wait(_jittered(trouble))
                trouble = min(trouble * 2, LONGEST_PAUSE)
                continue
            pause = SHORTEST_POLL if found else min(pause * 2, self._poll_seconds)
            self._wake.wait(_jittered(pause))
        self._database.drop()

    def _fill(self, lane: Lane) -> int:
        """Acquire into the free slots of one lane and begin; returns how many items were begun or settled."""
        free = lane.slots.free()
        if free == 0 or not lane.capabilities or self._stopping.is_set():
            return 0
        asked_at = time.monotonic()
        rows = self._acquire(lane, free)
        if not rows:
            return 0
        failpoint("acquire.after_commit")
        helds = {row.item_id: self._hold(row, asked_at) for row in rows}
        for item in self._read(lane, rows, helds):
            lane.slots.begin(_running(self._runner, item))
        return len(rows)

    def _acquire(self, lane: Lane, free: int) -> list[Acquired]:
        conn = self._database.connection()
        common: dict[str, Any] = {
            "owner": self._owner,
            "limit": free,
            "lease_seconds": self._lease_seconds,
            "workers": self.workers_alive,
        }
        if lane.deliveries:
            return acquire_deliveries(conn, kinds=[kind for kind, _ in lane.capabilities], **common)
        return acquire_jobs(conn, capabilities=lane.capabilities, **common)

    def _hold(self, row: Acquired, asked_at: float) -> Held:
        lease = Lease(row.kind, row.item_id, row.number, row.owner, row.expires_at)
        held = Held(lease, seconds=row.seconds_left, acquired_at=asked_at)
        self._renewals.hold(held)
        return held

    def _read(self, lane: Lane, rows: Sequence[Acquired], helds: dict[Any, Held]) -> list[Item]:
        """What the items need, in one statement; one by one if that fails, so that a bad row stops no other."""
        try:
            return self._items(lane, rows, helds)
        except Stopping:
            raise
        except Exception:
            logger.exception(line("batch_broken", lane=lane.name, items=len(rows)))
        items: list[Item] = []
        for row in rows:
            try:
                items += self._items(lane, [row], helds)
            except Stopping:
                raise
            except Exception as problem:
                items.append(Item(row, helds[row.item_id], broken=problem))
        return items

    def _items(self, lane: Lane, rows: Sequence[Acquired], helds: dict[Any, Held]) -> list[Item]:
        ids = [row.item_id for row in rows]
        load: Callable[[Connection], Any] = lambda conn: (load_requests if lane.deliveries else load_batch)(conn, ids)  # noqa: E731
        loaded = self._database.patiently(load)
        items = []
        for row in rows:
            found, held = loaded.get(row.item_id), helds[row.item_id]
            item = Item(row, held, request=found) if lane.deliveries else Item(row, held, work=found)
            if found is None:
                # Cancelled since, or held: then it is ours still, and goes back unspent.
                self._settle(item, gone=not lane.deliveries)
            elif not lane.deliveries and (found.held or _marked(found)):
                self._settle(item, gone=False, because=_marked(found))
            else:
                items.append(item)
        return items

    def _settle(self, item: Item, *, gone: bool, because: Refusal | None = None) -> None:
        if not gone:
            self._runner.hand_back(item, because=because)
        self._renewals.let_go(item.held)
        logger.info(line(f"{item.row.kind}_not_started", item=item.row.item_id, reason="gone" if gone else "held"))

    def _report(self, problem: Exception) -> None:
        self._database.drop()
        if isinstance(problem, UNREACHABLE):
            self._database.is_gone(problem)
        else:
            logger.error(line("acquisition_broken", problem=f"{type(problem).__name__}: {problem}"), exc_info=problem)


def _marked(work: Work) -> Refusal | None:
    """Why nothing in the item's case may move now, as the batch was read; the job that cancels it goes on."""
    mark = work.ahead.mark if work.ahead is not None and work.kind != "cancel" else None
    if mark is None:
        return None
    return Refusal.INSTANCE_CANCELLING if mark == "cancelling" else Refusal.INSTANCE_SUSPENDED


def _running(runner: Runner, item: Item) -> Callable[[], None]:
    return lambda: runner.run(item)


def _jittered(seconds: float) -> float:
    return seconds * random.uniform(0.75, 1.25)  # noqa: S311 - so that workers do not look in step
