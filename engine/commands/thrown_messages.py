"""A case throws a message to our own processes: the job that the throw left publishes it, exactly once.

The course is a publisher's (`messages.py`), with the job in the place of a request: it ends in the very transaction that
correlates, starts, stores or drops. So a worker that dies has published all of it or nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson

from engine.commands.jobs import Outcome, fail_or_lost, landed_or_lost
from engine.commands.messages import LOOK, LOOKS
from engine.commands.outcome import SYSTEM, ItemDone, ItemReleased, Lease, Refusal, Rejected
from engine.commands.reception import Received, has_lease, receive, wait_along
from engine.commands.start import NewCase, prepare
from engine.commands.step import marked
from engine.commands.transaction import Connection, command, transaction
from engine.core.effects import Event
from engine.core.snapshot import NeedsWholeInstance
from engine.db.apply import write
from engine.db.called import forget
from engine.db.definitions import DefinitionRefused, compiled
from engine.db.load import Reception, lock_reception
from engine.db.locks import THROW
from engine.db.session import cursor_of

_NAME = "publish_thrown"


@command
def publish_thrown(conn: Connection, lease: Lease) -> Outcome:
    """Give a thrown message to who waits for it; else store it for its time to live; without any, drop it.

    For who waits in a suspended case it waits too (ItemReleased).

    Locks: the job and the message key; or the root, the job and the subscription; or the definition, the job and the start
    subscription. Refuses: LEASE_LOST.
    """
    whole = False
    try:
        for _ in range(LOOKS):
            met = _look_or_store(conn, lease)
            if not isinstance(met, _Receiver):
                return met or landed_or_lost(conn, _NAME, lease, ("message_correlated", "job_completed"), SYSTEM.username)
            try:
                with transaction(conn):
                    done = _give(conn, lease, lock_reception(conn, lease.item_id, met.subscription_id, whole=whole))
            except NeedsWholeInstance:
                whole = True
                continue
            if done is not None:
                return done
    except DefinitionRefused as refused:
        return fail_or_lost(conn, _NAME, lease, error=str(refused), final=True, kind="unsupported")
    return fail_or_lost(conn, _NAME, lease, error=f"whoever waited was gone {LOOKS} times when they were to receive", retry_in=1.0)


# ---- the publisher's own transaction


@dataclass(frozen=True, slots=True)
class _Receiver:
    subscription_id: UUID


class _SomebodyWaits(Exception):
    """Rolls the publisher's transaction back: it must hold nothing while it correlates."""

    def __init__(self, receiver: _Receiver) -> None:
        self.receiver = receiver


def _look_or_store(conn: Connection, lease: Lease) -> ItemDone | _Receiver | None:
    """None: the lease was lost."""
    try:
        with transaction(conn):
            cursor = cursor_of(conn)
            row = cursor.execute(THROW, (lease.item_id, lease.number)).fetchone()
            if row is None or row[0] is None:
                return None
            job, payload = row[0], row[0]["payload"]
            key = {"tenant_id": job["tenant_id"], "name": payload["name"], "key": payload["key"]}
            # A statement of its own: it sees the subscription that was opened while we waited for the key.
            found = cursor.execute(LOOK, key).fetchone()
            if found is not None:
                raise _SomebodyWaits(_Receiver(found[0]))
            _store(conn, lease, key, job)
    except _SomebodyWaits as somebody:
        return somebody.receiver
    return ItemDone(lease.item_id, lease.number)


def _store(conn: Connection, lease: Lease, key: Mapping[str, Any], job: Mapping[str, Any]) -> None:
    payload = job["payload"]
    values = {
        **key,
        "item_id": lease.item_id,
        "root_id": job["root_id"],
        "element_id": job["element_id"],
        "told": orjson.dumps(
            {
                "lease_number": lease.number,
                "attempt": job["attempts"],
                "owner": job["lease_owner"],
                "leased_at": job["leased_at"],
                "message": payload["name"],
                "key": payload["key"],
                "outcome": "stored" if payload["seconds"] > 0 else "dropped: nobody waits, and it has no time to live",
            }
        ).decode(),
        "variables": orjson.dumps(payload["variables"]).decode(),
        "seconds": payload["seconds"],
    }
    cursor_of(conn).execute(_STORE, values)


# In the transaction that has ended the job. The message has the job's id.
_STORE = """
WITH stored AS (
  INSERT INTO message (id, tenant_id, name, correlation_key, variables, published_by, published_at, expires_at)
  SELECT %(item_id)s, %(tenant_id)s, %(name)s, %(key)s, %(variables)s::jsonb, 'engine', c.at, c.at + make_interval(secs => %(seconds)s)
  FROM (SELECT baton_clock() AS at) c WHERE %(seconds)s::float8 > 0 RETURNING *
), told AS (
  INSERT INTO history (at, tenant_id, kind, actor, item_id, data)
  SELECT published_at, tenant_id, 'message_stored', published_by, id,
    jsonb_build_object('message', name, 'key', correlation_key, 'expires_at', expires_at)
  FROM stored
)
INSERT INTO history (at, tenant_id, root_id, kind, element_id, actor, item_id, data)
SELECT baton_clock(), %(tenant_id)s, %(root_id)s, 'job_completed', %(element_id)s, 'engine', %(item_id)s, %(told)s::jsonb
"""


# ---- who waits receives


def _give(conn: Connection, lease: Lease, found: Reception | None) -> ItemDone | ItemReleased | None:
    """Inside the transaction. None: look again; the lease may be lost, the subscription gone, its case being cancelled."""
    # Re-check after the lock: all of it may have changed while we waited.
    if found is None or not has_lease(found, lease) or found.receiver is None:
        return None
    payload = found.job["payload"]
    told = {"message": payload["name"], "key": payload["key"], "message_id": str(lease.item_id), "thrown_by": payload["instance_id"]}
    if found.case is not None and found.case.snapshot is not None:
        match marked(found.case):
            case None:
                return receive(conn, lease, found, Received("message", told))
            case Rejected(refusal=Refusal.INSTANCE_SUSPENDED):
                return wait_along(conn, lease, instance_id=found.case.snapshot.instance_id)
        return None
    return _start(conn, lease, found, told)


def _start(conn: Connection, lease: Lease, found: Reception, told: Mapping[str, Any]) -> ItemDone | ItemReleased | None:
    assert found.definition_id is not None and found.element_id is not None, "a start subscription has a definition"
    if found.definition_status == "suspended":
        return wait_along(conn, lease, definition_id=found.definition_id)
    detail = {
        "item_id": str(lease.item_id),
        "lease_number": lease.number,
        "attempt": found.job["attempts"],
        "owner": lease.owner,
        "subscription_id": str(found.receiver),
    }
    case = NewCase(
        definition_id=found.definition_id,
        definition=compiled(conn, found.definition_id),
        tenant_id=found.job["tenant_id"],
        element_id=found.element_id,
        what="message",
        variables=found.variables,
        business_key=told["key"] or None,
        started_by=SYSTEM.username,
        now=found.now,
    )
    because = Event("message_correlated", case.element_id, {**detail, **told})
    change, begun = prepare(conn, case, leaf="start_by_throw", leaf_id=lease.item_id, fence=lease.number, because=because)
    change.parameters = {**change.parameters, "received_by": found.receiver}
    if write(conn, change) is None:
        forget(change.called)
        return None
    return ItemDone(lease.item_id, lease.number, begun.instance_id)
