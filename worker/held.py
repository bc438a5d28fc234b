"""One leased item in a worker's hands: its lease, until when it holds, and whether its handler should stop."""

from __future__ import annotations

import threading

from engine.commands.outcome import Lease
from worker.cell import LeaseCell


class Held:
    """One leased item in this worker's hands."""

    def __init__(self, lease: Lease, *, seconds: float, acquired_at: float) -> None:
        self.lease, self.seconds = lease, seconds
        self.lost = threading.Event()
        self.renew_at = acquired_at + seconds / 3
        self.since = acquired_at  # when the lease was asked for last
        self.overdue_at: float | None = None  # from then on it is renewed no more
        self._lock = threading.Lock()
        self._cell = LeaseCell()
        self._cell.deadline = acquired_at + seconds

    @property
    def deadline(self) -> float:
        return self._cell.deadline

    @property
    def cancelled(self) -> bool:
        return self._cell.cancelled

    def share(self, cell: LeaseCell) -> None:
        """From now on the deadline lies in `cell`, where a child process reads it."""
        with self._lock:
            cell.cancelled, cell.deadline = self._cell.cancelled, self._cell.deadline
            self._cell = cell

    def unshare(self) -> None:
        """The child is done with it."""
        own = LeaseCell()
        with self._lock:
            own.cancelled, own.deadline = self._cell.cancelled, self._cell.deadline
            self._cell = own

    def renewed(self, *, asked_at: float, answered_at: float) -> float:
        """The lease goes on; returns the part of it that had passed since it was asked for last, no less than the database saw."""
        with self._lock:
            self._cell.deadline = asked_at + self.seconds
        self.renew_at = asked_at + self.seconds / 3
        passed, self.since = answered_at - self.since, asked_at
        return passed / self.seconds

    def cancel(self, *, lost: bool) -> None:
        """Tell the handler to stop. `lost`: its outcome does not count any more either."""
        if lost:
            self.lost.set()
        with self._lock:
            self._cell.cancelled = True
