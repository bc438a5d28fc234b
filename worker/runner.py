"""Runs one leased item in a slot: the effect first, outside any transaction, then its outcome as a command of its own (R3).

Every way an item can end here is one log line. An item whose lease is known to be lost is dropped without a report; the
commands would refuse it anyway (R4).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from engine.commands import deliveries, jobs, leases
from engine.commands.cancel import cancel_some
from engine.commands.deliver_message import deliver_message
from engine.commands.outcome import CaseShrunk, ItemDone, ItemFailed, ItemReleased, ItemsHeld, Lease, Refusal, Rejected, SignalSpread
from engine.commands.signals import receive_signal, spread_signal
from engine.commands.start_by_timer import start_by_timer
from engine.commands.suspend import hold_step
from engine.commands.thrown_messages import publish_thrown
from engine.config import Settings
from engine.db.acquire import Acquired
from engine.db.load import Work
from engine.db.outbox import Outgoing
from engine.failpoints import failpoint
from engine.frozen import dataclass
from engine.logs import line
from worker.calling import Call, Completed, Delivered, Failed, Outcome, Threw, call, failed
from worker.children import Children
from worker.database import Connection, Database, Stopping
from worker.handlers import Handler
from worker.held import Held
from worker.outbox import send
from worker.renewals import Renewals
from worker.scribe import Scribe

logger = logging.getLogger("baton.worker")

NOT_NOW = frozenset(
    {
        Refusal.INSTANCE_SUSPENDED,
        Refusal.INSTANCE_CANCELLING,
        Refusal.DEFINITION_SUSPENDED,
        Refusal.DEFINITION_DELETING,
        Refusal.AWAITED,
    }
)
"""What is refused for the sake of its case or definition has not failed: it goes back, and its attempt is not spent."""


@dataclass(frozen=True, slots=True)
class Item:
    """One leased item with what it needs to run. `broken`: it could not be read, which is how it failed."""

    row: Acquired
    held: Held
    work: Work | None = None  # of a job
    request: Outgoing | None = None  # of a delivery
    broken: Exception | None = None

    @property
    def lease(self) -> Lease:
        """The lease as commands take it: with the case as the batch read it, and whether to lock at once because it branches."""
        lease = self.held.lease
        return Lease(lease.kind, lease.item_id, lease.number, lease.owner, lease.expires_at, self.work.detail) if self.work else lease


class Runner:
    """What a slot does with an item. Used by many threads at once."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        renewals: Renewals,
        handlers: Mapping[str, Handler],
        children: Children,
        scribe: Scribe,
    ) -> None:
        self._settings, self._database, self._renewals, self._scribe = settings, database, renewals, scribe
        self._handlers, self._children = handlers, children
        self._deadlines = dict(settings.kind_deadlines)

    def run(self, item: Item, handled: Callable[[], None]) -> None:
        """From lease to reported outcome. Never raises for what an item does. `handled`: its handler process has returned."""
        begun = time.monotonic()
        try:
            outcome = self._end(item, handled)
        except Stopping:
            outcome = "not_reported"
        except Exception:
            logger.exception(line("item_broken", kind=item.row.kind, item=item.row.item_id))
            outcome = "broken"
        finally:
            self._renewals.let_go(item.held)
        _log(item, outcome, seconds=time.monotonic() - begun)

    def _end(self, item: Item, handled: Callable[[], None]) -> Any:
        if item.held.lost:
            return "dropped"
        if item.held.cancelled:  # told to stop before it began
            return self.hand_back(item)
        if self.is_late(item.held):
            return self.hand_back(item)
        try:
            return self._advance(item, handled)
        except Stopping:
            raise
        except Exception as problem:
            # A bug of ours: the command rolled back. Loud, and the attempt counts, so that it ends as an incident.
            logger.exception(line("command_broken", kind=item.row.kind, item=item.row.item_id))
            failure = failed(problem)
        return self._report(item, lambda conn: self._fail(conn, item, failure))

    def is_late(self, held: Held) -> bool:
        """Whether too little of the lease is left to begin."""
        return held.deadline - time.monotonic() < min(self._settings.minimum_lease_seconds, held.seconds / 2)

    def hand_back(self, item: Item, *, because: Refusal | None = None, started: bool = False) -> Any:
        """Give an item back that was not started, or that may not go on: its attempt is not spent (R5)."""
        return self._report(item, lambda conn: leases.release(conn, item.lease, because=because, started=started))

    def _advance(self, item: Item, handled: Callable[[], None]) -> Any:
        if item.broken is not None:
            broken = failed(item.broken)
            return self._report(item, lambda conn: self._fail(conn, item, broken))
        if item.row.kind == "delivery":
            return self._deliver(item)
        match item.row.job_kind:
            case "service":
                return self._serve(item, handled)
            case "timer":
                return self._take(item, lambda conn: jobs.fire_timer(conn, item.lease))
            case "start_timer":
                return self._take(item, lambda conn: start_by_timer(conn, item.lease))
            case "message":
                return self._take(item, lambda conn: deliver_message(conn, item.lease))
            case "continue":
                return self._take(item, lambda conn: jobs.continue_loop(conn, item.lease))
            case "signal":
                return self._take(item, lambda conn: receive_signal(conn, item.lease))
            case "throw" if item.row.topic == "message":
                return self._take(item, lambda conn: publish_thrown(conn, item.lease))
            case "throw":
                return self._in_steps(item, spread_signal)
            case "cancel":
                return self._in_steps(item, cancel_some)
            case "hold":
                return self._in_steps(item, hold_step)
        raise ValueError(f"job {item.row.item_id}: expected a kind this worker asked for, found {item.row.job_kind!r}")

    def _take(self, item: Item, step: Callable[[Connection], Any]) -> Any:
        """Run a step of the item's case; where the case may not move now, the item goes back."""
        outcome = self._report(item, step)
        if isinstance(outcome, Rejected) and outcome.refusal in NOT_NOW:
            return self.hand_back(item, because=outcome.refusal, started=True)
        return outcome

    def _in_steps(self, item: Item, step: Callable[[Connection, Lease], Any]) -> Any:
        """What is too large for one transaction, step by step under one lease. Told to stop, another worker goes on from there."""
        while True:
            outcome = self._report(item, lambda conn: step(conn, item.lease))
            if not isinstance(outcome, CaseShrunk | ItemsHeld | SignalSpread):
                return outcome
            if item.held.lost:
                return "dropped"
            if item.held.cancelled:
                return self.hand_back(item, started=True)

    # ---- service jobs

    def _serve(self, item: Item, handled: Callable[[], None]) -> Any:
        assert item.work is not None
        failpoint("effect.before")
        outcome = self._handle(item, item.work)
        handled()
        failpoint("effect.after")
        if item.held.lost:
            return "dropped"
        return self._take(item, lambda conn: self._tell(conn, item, outcome))

    def _handle(self, item: Item, work: Work) -> Outcome:
        handler = self._handlers[work.topic]
        seconds = self._deadlines.get(work.topic) or handler.deadline_seconds or self._settings.job_deadline_seconds
        what, tell = _call(work), partial(self._scribe.tell, item.row)
        if not handler.inline:
            return self._children.run(what, item.held, seconds=seconds, tell=tell)
        # Nothing can kill a thread: past its deadline it is renewed no more, so that another worker gets the job.
        item.held.overdue_at = time.monotonic() + seconds
        return call(handler, what, item.held, self._settings, tell)

    def _tell(self, conn: Connection, item: Item, outcome: Outcome) -> Any:
        match outcome:
            case Completed(variables):
                return jobs.complete_job(conn, item.lease, variables=variables)
            case Threw(code, message, variables):
                return jobs.throw_job_error(conn, item.lease, code=code, message=message, variables=variables)
            case Failed():
                return self._fail(conn, item, outcome)

    def _fail(self, conn: Connection, item: Item, failure: Failed) -> Any:
        if item.row.kind == "delivery":
            return deliveries.delivery_failed(conn, item.lease, error=failure.error, retry_in=failure.retry_in, final=failure.final)
        return jobs.fail_job(conn, item.lease, error=failure.error, detail=failure.detail, retry_in=failure.retry_in, final=failure.final)

    # ---- deliveries

    def _deliver(self, item: Item) -> Any:
        assert item.request is not None
        failpoint("effect.before")
        if item.held.cancelled or item.held.deadline <= time.monotonic():
            return "dropped"
        outcome = send(item.row.topic, str(item.row.item_id), item.request.request, self._settings, item.request.to)
        failpoint("effect.after")
        if item.held.lost:
            return "dropped"
        match outcome:
            case Delivered(response):
                return self._report(item, lambda conn: deliveries.delivered(conn, item.lease, response=response))
            case Failed() as failure:
                return self._report(item, lambda conn: self._fail(conn, item, failure))

    def _report(self, item: Item, command: Callable[[Connection], Any]) -> Any:
        """Run a command until the database answers: after a lost connection, again under the same lease (F42)."""
        return self._database.patiently(command)


def _call(work: Work) -> Call:
    return Call(
        topic=work.topic,
        idempotency_key=work.idempotency_key,
        attempt=work.attempt,
        max_attempts=work.max_attempts,
        business_key=work.business_key,
        element_id=work.element_id,
        instance_id=str(work.instance_id),
        variables=work.variables,
        inputs=work.inputs,
        headers=work.headers,
    )


def _log(item: Item, outcome: Any, *, seconds: float) -> None:
    row = item.row
    told: dict[str, Any] = {
        "item": row.item_id,
        "of": row.job_kind or None,
        "topic": row.topic or None,
        "element": row.element_id,
        "instance": row.instance_id,
        "attempt": f"{row.attempt}/{row.max_attempts}",
        "lease_number": row.number,
        "seconds": seconds,
    }
    match outcome:
        case ItemDone(repeated=repeated):
            logger.info(line(f"{row.kind}_completed", **told, repeated=repeated or None))
        case ItemFailed(status=status, available_at=available_at, incident_id=incident):
            logger.warning(line(f"{row.kind}_failed", **told, status=status, available_at=available_at, incident=incident))
        case ItemReleased():
            logger.info(line(f"{row.kind}_released", **told))
        case Rejected(refusal=refusal, detail=detail):
            logger.info(line(f"{row.kind}_refused", **told, reason=refusal.value, detail=detail or None))
        case _:
            logger.warning(line(f"{row.kind}_{outcome}", **told))
