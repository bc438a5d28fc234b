"""A fixed number of threads that run one item each. They live as long as the worker does.

Daemon threads rather than an executor: a thread that hangs in user code must not keep the process from ending.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable

logger = logging.getLogger("baton.worker")


class Slots:
    """`free()` says how many more items may be begun; `begin(work)` takes one of them until `work` returns."""

    def __init__(self, name: str, count: int, *, freed: Callable[[], None]) -> None:
        self.name, self.count = name, count
        self._freed = freed
        self._waiting: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._state = threading.Condition()
        self._busy = 0
        for number in range(count):
            threading.Thread(target=self._run, name=f"{name}-{number + 1}", daemon=True).start()

    def free(self) -> int:
        with self._state:
            return self.count - self._busy

    def busy(self) -> int:
        with self._state:
            return self._busy

    def begin(self, work: Callable[[], None]) -> None:
        with self._state:
            self._busy += 1
        self._waiting.put(work)

    def wait_until_idle(self, *, seconds: float) -> bool:
        """Whether nothing runs any more, at the latest after so many seconds."""
        with self._state:
            return self._state.wait_for(lambda: self._busy == 0, timeout=seconds)

    def _run(self) -> None:
        while True:
            work = self._waiting.get()
            try:
                work()
            except Exception:
                logger.exception("slot_broken slot=%s", threading.current_thread().name)
            finally:
                with self._state:
                    self._busy -= 1
                    self._state.notify_all()
                self._freed()
