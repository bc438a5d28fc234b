"""One leased item in a worker's hands: its lease, until when it holds, and whether its handler should stop."""

from __future__ import annotations

import threading

from engine.commands.outcome import Lease
from worker.cell import LeaseCell


class Held:
    """One leased item in this worker's hands. `deadline`, `cancelled`: as a handler sees them, wherever it runs."""

    __slots__ = ("_cell", "_lock", "cancelled", "deadline", "lease", "lost", "overdue_at", "renew_at", "seconds", "since")

    def __init__(self, lease: Lease, *, seconds: float, acquired_at: float) -> None:
        self.lease, self.seconds = lease, seconds
        self.lost = False
        self.cancelled = False
        self.deadline = acquired_at + seconds
        self.renew_at = acquired_at + seconds / 3
        self.since = acquired_at  # when the lease was asked for last
        self.overdue_at: float | None = None  # from then on it is renewed no more
        self._lock = threading.Lock()
        self._cell: LeaseCell | None = None  # where a child process reads the same

    def share(self, cell: LeaseCell) -> None:
        """From now on deadline and cancellation lie in `cell` too, where a child process reads them."""
        with self._lock:
            cell.tell(self.deadline, self.cancelled)
            self._cell = cell

    def unshare(self) -> None:
        """The child is done with it."""
        with self._lock:
            self._cell = None

    def renewed(self, *, asked_at: float, answered_at: float) -> float:
        """The lease goes on; returns the part of it that had passed since it was asked for last, no less than the database saw."""
        with self._lock:
            self.deadline = asked_at + self.seconds
            if self._cell is not None:
                self._cell.deadline = self.deadline
        self.renew_at = asked_at + self.seconds / 3
        passed, self.since = answered_at - self.since, asked_at
        return passed / self.seconds

    def cancel(self, *, lost: bool) -> None:
        """Tell the handler to stop. `lost`: its outcome does not count any more either."""
        if lost:
            self.lost = True
        with self._lock:
            self.cancelled = True
            if self._cell is not None:
                self._cell.cancelled = True
