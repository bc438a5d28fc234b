"""Looks for work: as much as there is room for, only what this worker can run, again at once while there is some.

Each lane (worker/lanes.py) has slots of its own, which it fills by acquisitions of its own.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from engine.commands.outcome import Lease, Refusal
from engine.db.acquire import DELIVERY, JOB, Acquired, acquire_deliveries, acquire_jobs
from engine.db.lines import Lines
from engine.db.load import Work, load_batch
from engine.db.outbox import load_requests
from engine.db.watch import seconds_until_due, seen
from engine.failpoints import failpoint
from engine.logs import line
from worker.database import FIRST_PAUSE, LONGEST_PAUSE, UNREACHABLE, Connection, Database, Stopping
from worker.held import Held
from worker.pace import Pace
from worker.renewals import Renewals
from worker.runner import Item, Runner
from worker.slots import LONGEST_WAIT, Slots

logger = logging.getLogger("baton.worker")

WATCH_SECONDS = 0.005  # how often an idle worker asks whether anything was committed
DUE_SECONDS = 0.1  # how often, at most, what becomes due next
MOST_MOMENTS = 50  # of what becomes due next: they are known when they come, without another question
MARGIN_SECONDS = 0.02  # one statement may take longer to arrive than another
TAKE_BACK_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Lane:
    """Slots and what may fill them. `capabilities`: (kind, topic) of jobs; for the outbox (kind of delivery, "")."""

    name: str
    slots: Slots[Item]
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
        self._owner, self._lease_seconds = owner, lease_seconds
        self._lines, self._more_lines = Lines(), False
        self._paces = [Pace(poll_seconds, _jittered) for _ in lanes]
        self._seen: str | None = None
        self._ended = False  # something ended here: that is a change, whoever else committed
        self._watch_at = self._due_asked_at = float("-inf")
        self._due_stale = True  # what was asked for may no longer be what becomes due next
        self.workers_alive = 1  # set by the heartbeat
        self._looked = threading.Event()
        self.acquired_at = float("-inf")  # when an acquisition succeeded last, whatever it found (time.monotonic)
        self._wake, self._stopping = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="acquirer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, *, seconds: float) -> bool:
        """Acquire nothing more; whether within so many seconds the last batch has been given to the slots. May be asked again."""
        self._stopping.set()
        self._wake.set()
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def wake(self) -> None:
        """There is room, and what ended may have made the next item due."""
        self._ended = True
        self._wake.set()

    def has_looked(self) -> bool:
        """Whether an acquisition has succeeded since this was asked last."""
        looked = self._looked.is_set()
        self._looked.clear()
        return looked

    def _run(self) -> None:
        trouble = FIRST_PAUSE
        while not self._stopping.is_set():
            self._wake.clear()
            try:
                self._look()
                self._database.is_back()
                trouble = FIRST_PAUSE
            except Stopping:
                break
            except Exception as problem:
                self._report(problem)
                self._stopping.wait(_jittered(trouble))
                trouble = min(trouble * 2, LONGEST_PAUSE)
                continue
            self._wake.wait(self._pause())
        with suppress(Stopping):
            self._take_back(waiting_for=0.0)
        self._database.drop()

    def _look(self) -> None:
        """One round: a sign of work, if need be; then a look by every lane that has room and a reason."""
        self._take_back()
        lanes = self._with_room()
        self._watch([pace for _, pace in lanes])
        looked = False
        for lane, pace in lanes:
            now = time.monotonic()
            if pace.wants_look(now) and (room := lane.slots.room()):
                found = self._fill(lane, room)
                pace.looked(now, found=found, asked=room)
                pace.changed = pace.changed or (lane.deliveries and self._more_lines)
                self.acquired_at = time.monotonic()
                looked = True
        if looked or not lanes:
            self._looked.set()
        self._due_stale = self._due_stale or looked
        if self._due_stale and not any(pace.changed for _, pace in lanes):
            self._ask_what_is_due(lanes)

    def _watch(self, paces: Sequence[Pace]) -> None:
        """Was anything committed that could be work? Not asked before one of those with room may look because of it."""
        ended, self._ended = self._ended, False
        if not ended:
            now = time.monotonic()
            if now < self._watch_wanted(paces):
                return
            self._watch_at = now + _jittered(WATCH_SECONDS)
            before, self._seen = self._seen, seen(self._database.connection())
            if before == self._seen:
                return
        for pace in self._paces:
            pace.changed = True

    def _watch_wanted(self, paces: Sequence[Pace]) -> float:
        """When to ask for changes; a lane that knows already that something changed need not ask."""
        return max(self._watch_at, min((pace.may_look_at() for pace in paces if not pace.changed), default=float("inf")))

    def _ask_what_is_due(self, lanes: Sequence[tuple[Lane, Pace]]) -> None:
        """Let the lanes look when something becomes due, to which nobody commits anything; those without room ask when they have it."""
        now = time.monotonic()
        if now < self._due_asked_at + DUE_SECONDS:
            return
        self._due_asked_at, self._due_stale = now, False
        for lane, pace in lanes:
            work = DELIVERY if lane.deliveries else JOB
            # What became due since the look was not found by it, and is no longer to become due: that counts, too.
            ago = time.monotonic() - pace.looked_at + MARGIN_SECONDS
            found = seconds_until_due(self._database.connection(), work, lane.capabilities, looked_ago=ago, most=MOST_MOMENTS)
            now = time.monotonic()  # counted from the answer: a look that comes a moment too early finds nothing
            pace.due = [now + seconds for seconds in found]

    def _pause(self) -> float:
        """How long nothing needs to be done, if nobody wakes us."""
        now = time.monotonic()
        paces = [pace for _, pace in self._with_room()]
        moments = [pace.next_look() for pace in paces]
        moments.append(self._watch_wanted(paces))
        if self._due_stale and not any(pace.changed for pace in paces):
            moments.append(self._due_asked_at + DUE_SECONDS)
        if any(lane.slots.some_wait() for lane in self._lanes):
            moments.append(now + TAKE_BACK_SECONDS)
        return max(0.0, min([*moments, now + LONGEST_PAUSE]) - now)

    def _with_room(self) -> list[tuple[Lane, Pace]]:
        return [(lane, pace) for lane, pace in zip(self._lanes, self._paces, strict=True) if lane.capabilities and lane.slots.room()]

    def _take_back(self, *, waiting_for: float = LONGEST_WAIT) -> None:
        """Hand back, unspent, what was acquired ahead of slots that then took longer: others may be free."""
        for lane in self._lanes:
            while (item := lane.slots.take_back(waiting_for=waiting_for)) is not None:
                self._settle(item, gone=False, reason="waited")

    def _fill(self, lane: Lane, room: int) -> int:
        """Acquire into the room of one lane and begin; returns how many items were begun or settled."""
        if self._stopping.is_set():
            return 0
        asked_at = time.monotonic()
        rows = self._acquire(lane, room)
        if not rows:
            return 0
        failpoint("acquire.after_commit")
        helds = {row.item_id: self._hold(row, asked_at) for row in rows}
        # What is late already (this process slept) goes back: it is not renewed on the way to the slot that says so.
        self._renewals.hold(held for held in helds.values() if not self._runner.is_late(held))
        for item in self._read(lane, rows, helds):
            lane.slots.begin(item)
        return len(rows)

    def _acquire(self, lane: Lane, room: int) -> list[Acquired]:
        conn = self._database.connection()
        common: dict[str, Any] = {
            "owner": self._owner,
            "limit": room,
            "lease_seconds": self._lease_seconds,
            "workers": self.workers_alive,
        }
        if lane.deliveries:
            self._more_lines = self._lines.move_on(conn)
            return acquire_deliveries(conn, kinds=[kind for kind, _ in lane.capabilities], **common)
        return acquire_jobs(conn, capabilities=lane.capabilities, **common)

    def _hold(self, row: Acquired, asked_at: float) -> Held:
        lease = Lease(row.kind, row.item_id, row.number, row.owner, row.expires_at)
        return Held(lease, seconds=row.seconds_left, acquired_at=asked_at)

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

    def _settle(self, item: Item, *, gone: bool, because: Refusal | None = None, reason: str = "held") -> None:
        try:
            if not gone:
                self._runner.hand_back(item, because=because)
        finally:
            self._renewals.let_go(item.held)
        logger.info(line(f"{item.row.kind}_not_started", item=item.row.item_id, reason="gone" if gone else reason))

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


def _jittered(seconds: float) -> float:
    return seconds * random.uniform(0.75, 1.25)  # noqa: S311 - so that workers do not look in step
