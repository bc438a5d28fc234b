"""What a process does when a signal arrives, in a thread of its own.

A handler of Python runs between two instructions of the main thread, which may just hold the lock that the handler then waits
for, for ever: that of the Event or Semaphore by which it is told. So the handler only puts into a SimpleQueue, which allows that.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable
from queue import SimpleQueue


def when_told(numbers: Iterable[int], do: Callable[[], object]) -> None:
    """Call `do()` once for each of these signals that arrives, one after the other. Only the main thread may ask for it."""
    arrived: SimpleQueue[int] = SimpleQueue()

    def listen() -> None:
        while True:
            arrived.get()
            do()

    threading.Thread(target=listen, name="signals", daemon=True).start()
    for number in numbers:
        signal.signal(number, lambda number, frame: arrived.put(number))
