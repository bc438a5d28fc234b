"""A stored message meets its subscription: the job that opening a subscription left behind delivers it."""

from __future__ import annotations

from dataclasses import dataclass

from engine.commands.asking import ask, stale
from engine.commands.jobs import Outcome, event_detail, fail_or_lost, judge, landed_or_lost, token_of
from engine.commands.outcome import SYSTEM, ItemDone, ItemReleased, Lease, Refusal, Rejected
from engine.commands.reception import wait_along
from engine.commands.requests import refuse
from engine.commands.start import NewCase, prepare, refusal_of
from engine.commands.transaction import Connection, command, transaction
from engine.core.effects import Event, InvariantBroken
from engine.core.snapshot import EventOccurred, NeedsWholeInstance
from engine.db.apply import Change, MessageGone, write
from engine.db.called import forget
from engine.db.definitions import DefinitionRefused, compiled
from engine.db.load import Delivery, Stored, Waiting, lock_delivery
from engine.db.locks import END_DELIVERY
from engine.db.session import cursor_of

LOOKS = 20  # how often a message may be gone when it is to be taken, before the job is left to its retry policy
_NAME = "deliver_message"


@command
def deliver_message(conn: Connection, lease: Lease) -> Outcome:
    """Deliver the oldest stored message to the job's subscription; nothing to deliver, or nobody who waits, ends the job.

    Locks: the root (or the definition of a start event), the job and the subscription, the keys that the result opens,
    the message. Refuses: LEASE_LOST, INSTANCE_…, DEFINITION_DELETING, AWAITED. For a start event of a suspended version it
    waits (ItemReleased).
    """
    whole = False
    for _ in range(LOOKS):
        try:
            with transaction(conn):
                found = lock_delivery(conn, lease.item_id, whole=whole)
                done = _deliver(conn, lease, found)
        except NeedsWholeInstance:
            whole = True
            continue
        except MessageGone:
            continue
        except _Awaited as awaited:
            refused_now: Outcome = refuse(conn, _NAME, SYSTEM.username, "", Rejected(Refusal.AWAITED, str(awaited), item_id=lease.item_id))
            return refused_now
        except DefinitionRefused as refused:
            return fail_or_lost(conn, _NAME, lease, error=str(refused), final=True, kind="unsupported")
        if done is None:
            return landed_or_lost(conn, _NAME, lease, ("message_correlated", "job_completed"), SYSTEM.username)
        if isinstance(done, Rejected):
            rejected: Outcome = refuse(conn, _NAME, SYSTEM.username, "", done)
            return rejected
        return done
    return fail_or_lost(conn, _NAME, lease, error=f"a message was gone {LOOKS} times when it was to be taken", retry_in=1.0)


class _Awaited(Exception):
    """Rolls the start of an instance back: the message is for one that is there. The worker gives the job back unspent."""


def _deliver(conn: Connection, lease: Lease, found: Delivery | None) -> ItemDone | ItemReleased | Rejected | None:
    """Inside the transaction. None: the lease was lost."""
    # Re-check after the lock: a recovery may have taken the job back while we waited.
    if found is None or found.case.leaf.status != "leased" or found.case.leaf.fence != lease.number:
        return None
    receiver, message = found.subscription, found.message
    # Re-check after the lock: the subscription may have received, the message may have been taken or have expired.
    if receiver is None or message is None:
        cursor_of(conn).execute(
            END_DELIVERY, {"item_id": lease.item_id, "why": "nobody waits" if receiver is None else "no message", **_lease(found, lease)}
        )
        return ItemDone(lease.item_id, lease.number, found.case.snapshot.instance_id if found.case.snapshot else None)
    if receiver.kind == "start":
        return _start(conn, lease, _Meeting(found, receiver, message))
    return judge(found.case, lease) or _correlate(conn, lease, _Meeting(found, receiver, message))


@dataclass(frozen=True, slots=True)
class _Meeting:
    found: Delivery
    receiver: Waiting
    message: Stored


def _correlate(conn: Connection, lease: Lease, meeting: _Meeting) -> ItemDone:
    loaded, receiver, message = meeting.found.case, meeting.receiver, meeting.message
    snapshot = loaded.snapshot
    if snapshot is None:
        raise InvariantBroken(f"job {lease.item_id}: expected the instance of subscription {receiver.id}, found none")
    detail = {**event_detail(loaded, lease), "message_id": str(message.id), "subscription_id": str(receiver.id)}
    trigger = EventOccurred(token_of(loaded), receiver.element_id, "message", message.variables, detail)
    answer = ask(conn, snapshot, trigger, now=loaded.now)
    change = Change(
        leaf="message_job",
        leaf_id=lease.item_id,
        fence=lease.number,
        snapshot=snapshot,
        definition=answer.definition,
        effects=answer.effects,
        called=answer.called,
        actor=SYSTEM.username,
        mark=loaded.mark,
        parameters={"received_by": receiver.id},
        takes_message=message.id,
    )
    if write(conn, change) is None:
        raise stale(change.called, f"job {lease.item_id}: expected its guards to hold under the root's lock, found them stale")
    return ItemDone(lease.item_id, lease.number, snapshot.instance_id)


def _start(conn: Connection, lease: Lease, meeting: _Meeting) -> ItemDone | ItemReleased | Rejected:
    loaded, receiver, message = meeting.found.case, meeting.receiver, meeting.message
    # Re-check after the lock: the definition may have been suspended while we waited.
    if receiver.definition_status == "suspended":
        return wait_along(conn, lease)
    refused = refusal_of(receiver.definition_status)
    if refused is not None:
        return refused
    detail = {**event_detail(loaded, lease), "message_id": str(message.id), "subscription_id": str(receiver.id)}
    case = NewCase(
        definition_id=receiver.definition_id,
        definition=compiled(conn, receiver.definition_id),
        tenant_id=loaded.leaf.detail["tenant_id"],
        element_id=receiver.element_id,
        what="message",
        variables=message.variables,
        business_key=message.correlation_key or None,
        started_by=SYSTEM.username,
        now=loaded.now,
    )
    because = Event("message_correlated", receiver.element_id, detail)
    change, begun = prepare(conn, case, leaf="start_by_job", leaf_id=lease.item_id, fence=lease.number, because=because)
    change.takes_message, change.start_subscription = message.id, receiver.id
    if write(conn, change) is None:
        if "gateway" in change.parameters:
            forget(change.called)
            raise _Awaited(f"message {message.id}: an instance of its key begins, or waits for it (engine.commands.gathering)")
        raise stale(change.called, f"job {lease.item_id}: expected its guards to hold under the definition's lock, found them stale")
    return ItemDone(lease.item_id, lease.number, begun.instance_id)


def _lease(found: Delivery, lease: Lease) -> dict[str, object]:
    return {"lease_number": lease.number, "attempt": found.case.leaf.detail["attempts"]}
