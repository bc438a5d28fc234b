"""The leases in hand, and the thread that renews them.

A lease is renewed once a third of it has passed, on a connection that nothing else uses (a renewal that waits for a
pool is a renewal that comes too late), with timeouts of a fraction of the lease. The deadline that handlers see is
counted from before the statement was sent, so it is never later than what the database knows.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable
from typing import Any
from uuid import UUID

import psycopg

from engine.commands.leases import renew
from engine.failpoints import failpoint
from engine.logs import Seldom, line
from worker.database import Database, Stopping
from worker.held import Held

logger = logging.getLogger("baton.worker")

LONGEST_WAIT = 60.0
LATE = 0.5  # of a lease, between one renewal and the next


class Renewals:
    """Every lease in hand; renews those that are due."""

    def __init__(self, database: Database, *, lease_seconds: float) -> None:
        self._database = database
        self._lease_seconds = lease_seconds
        self._held: dict[UUID, Held] = {}
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._wakes_at = float("inf")  # when the thread looks by itself
        self._stopping = False
        self._seldom = Seldom(logger)
        self.longest_gap = 0.0  # between two renewals of one lease, as a part of it, since the start
        self._thread = threading.Thread(target=self._run, name="renewals", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        with self._lock:
            self._stopping = True
            self._changed.notify()
        self._thread.join(timeout=self._lease_seconds)

    def hold(self, helds: Iterable[Held]) -> None:
        with self._lock:
            earlier = []
            for held in helds:
                if (known := self._held.get(held.lease.item_id)) is not None:
                    earlier.append(known)
                self._held[held.lease.item_id] = held
                if held.renew_at < self._wakes_at:  # seldom: what is acquired later is due later
                    self._changed.notify()
        for each in earlier:  # this very worker was given the item again, while its first run of it still goes on
            each.cancel(lost=True)

    def let_go(self, held: Held) -> None:
        with self._lock:
            if self._held.get(held.lease.item_id) is held:
                del self._held[held.lease.item_id]

    def in_hand(self) -> list[Held]:
        with self._lock:
            return list(self._held.values())

    def _run(self) -> None:
        self._connect()
        while (due := self._wait_for_due()) is not None:
            try:
                self.renew_now(due)
            except Stopping:
                return
            except psycopg.Error as problem:
                self._database.drop()
                self._seldom.warning("renewal_failed", leases=len(due), problem=str(problem).strip())
                self._put_off(due)
            except Exception:
                logger.exception("renewal_broken leases=%d", len(due))
                self._put_off(due)
        self._database.drop()

    def _connect(self) -> None:
        """Before there is anything to renew: later the server may have no connection left (F10)."""
        try:
            self._database.connection()
        except psycopg.Error as problem:
            self._seldom.warning("renewal_failed", leases=0, problem=str(problem).strip())

    def _wait_for_due(self) -> list[Held] | None:
        with self._lock:
            while not self._stopping:
                now = time.monotonic()
                wanted = [held for held in self._held.values() if not held.lost]
                for held in wanted:
                    if held.overdue_at is not None and now >= held.overdue_at:
                        held.renew_at = float("inf")
                due = [held for held in wanted if held.renew_at <= now]
                if due:
                    return due
                self._wakes_at = min([held.renew_at for held in wanted] + [now + LONGEST_WAIT])
                self._changed.wait(self._wakes_at - now)
            return None

    def renew_now(self, due: Iterable[Held]) -> None:
        """One renewal of these: each is moved on, found lost, or asked for again soon."""
        by_id = {held.lease.item_id: held for held in due}
        failpoint("renew.before")
        asked_at = time.monotonic()
        outcome: Any = renew(self._database.connection(), [held.lease for held in by_id.values()])
        answered_at = time.monotonic()
        for item_id, held in by_id.items():
            if item_id in outcome.expires_at:
                self._measure(held, held.renewed(asked_at=asked_at, answered_at=answered_at))
            elif item_id in outcome.lost:
                held.cancel(lost=True)
                logger.warning(line("lease_lost", kind=held.lease.kind, item=item_id, lease_number=held.lease.number))
            else:  # somebody else has the row locked right now: not lost
                held.renew_at = asked_at + held.seconds / 10

    def _measure(self, held: Held, part: float) -> None:
        """A renewal is due after a third of a lease; one after more than half of it is told (F8)."""
        self.longest_gap = max(self.longest_gap, part)
        if part > LATE:
            self._seldom.warning("renewal_late", item=held.lease.item_id, seconds=part * held.seconds, lease=held.seconds)

    def _put_off(self, due: list[Held]) -> None:
        soon = time.monotonic() + min(held.seconds for held in due) / 20
        for held in due:
            held.renew_at = soon
