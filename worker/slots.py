"""A fixed number of slots that run one item each, and a few items in front of them where items are short.

Daemon threads rather than an executor: a thread that hangs in user code must not keep the process from ending.

Items that take milliseconds are acquired ahead, as many as the slots end in `AHEAD_SECONDS`: an acquisition for each would
cost as much as the item. What waits longer than `LONGEST_WAIT` after all is handed back (`take_back`), for others to run.

An item whose handler has returned has only to be reported, which waits for the disk: where slots have threads to spare for that
(`reporting`), the slot is free for the next item meanwhile (decision 0108).
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")
logger = logging.getLogger("baton.worker")

AHEAD_SECONDS = 0.05
MOST_AHEAD = 8  # items for each slot
LONGEST_WAIT = 0.5
LEARNING = 0.1


class Slots(Generic[T]):
    """`room()` says how many more items may be begun; `begin(item)` has one run, at once or when a slot is free.

    `run`: what a slot does with an item; it calls what comes with the item when that needs the slot no more, if ever before its end.
    `freed`: called when there may be room again. `reporting`: how many items at most that need their slot no more.
    """

    def __init__(
        self, name: str, count: int, *, run: Callable[[T, Callable[[], None]], object], freed: Callable[[], None], reporting: int = 0
    ) -> None:
        self.name, self.count, self.threads = name, count, count + reporting
        self._run, self._freed = run, freed
        self._lock = threading.Lock()  # taken by itself where nobody waits: a condition takes it in Python
        self._begun, self._ended = threading.Condition(self._lock), threading.Condition(self._lock)
        self._waiting: deque[tuple[T, float]] = deque()
        self._running: dict[int, float] = {}  # a thread -> when its item was begun
        self._reporting: dict[int, float] = {}  # the same of those whose item needs its slot no more
        self._seconds = AHEAD_SECONDS  # what an item takes, on the average of late
        for number in range(self.threads):
            threading.Thread(target=self._work, name=f"{name}-{number + 1}", daemon=True).start()

    def room(self) -> int:
        """How many more items to bring; none as long as half of what is brought ahead still waits."""
        with self._lock:
            ahead = self._ahead()
            if len(self._waiting) * 2 > ahead:
                return 0
            return max(0, self._free() + ahead - len(self._waiting))

    def busy(self) -> int:
        """How many slots run something, or have it reported."""
        with self._lock:
            return min(self.count, len(self._running) + len(self._reporting))

    def begin(self, item: T) -> None:
        with self._lock:
            self._waiting.append((item, time.monotonic()))
            if len(self._running) < self.count:
                self._begun.notify()

    def take_back(self, *, waiting_for: float = LONGEST_WAIT) -> T | None:
        """An item that no slot has begun for so many seconds, and that none will; None: there is none."""
        with self._lock:
            if self._waiting and self._waiting[0][1] <= time.monotonic() - waiting_for:
                return self._waiting.popleft()[0]
            return None

    def some_wait(self) -> bool:
        """Whether an item waits for a slot."""
        return bool(self._waiting)

    def wait_until_idle(self, *, seconds: float) -> bool:
        """Whether nothing runs and nothing waits any more, at the latest after so many seconds."""
        with self._lock:
            return self._ended.wait_for(self._idle, timeout=seconds)

    def _idle(self) -> bool:
        return not self._running and not self._reporting and not self._waiting

    def _free(self) -> int:
        return min(self.count, self.threads - len(self._reporting)) - len(self._running)

    def _ahead(self) -> int:
        seconds = self._seconds
        if len(self._running) == self.count:  # none is free at least since the latest was begun
            seconds = max(seconds, time.monotonic() - max(self._running.values()))
        return min(MOST_AHEAD * self.count, max(0, int(self.count * (AHEAD_SECONDS / seconds - 1))))

    def _work(self) -> None:
        while True:
            item = self._next()
            try:
                self._run(item, self._leave)
            except Exception:
                logger.exception("slot_broken slot=%s", threading.current_thread().name)
            del item  # not kept while the slot is idle
            if self._end():
                self._freed()

    def _next(self) -> T:
        with self._lock:
            while not self._waiting or len(self._running) == self.count:
                self._begun.wait()
            self._running[threading.get_ident()] = time.monotonic()
            return self._waiting.popleft()[0]

    def _leave(self) -> None:
        """The item of this thread needs its slot no more. Without a thread to spare it keeps it: none could begin another."""
        if self.threads == self.count:
            return
        with self._lock:
            self._reporting[threading.get_ident()] = self._running.pop(threading.get_ident())
            if self._waiting:
                self._begun.notify()

    def _end(self) -> bool:
        """Whether there is room for more."""
        with self._lock:
            thread = threading.get_ident()
            begun = self._reporting.pop(thread) if thread in self._reporting else self._running.pop(thread)
            # A slow one is soon forgotten; while it runs it counts anyway, if every slot has one.
            self._seconds += (min(time.monotonic() - begun, 4 * AHEAD_SECONDS) - self._seconds) * LEARNING
            if self._idle():
                self._ended.notify_all()
            return len(self._waiting) * 2 <= self._ahead()
