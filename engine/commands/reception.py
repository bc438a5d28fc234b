"""A job brings something to a waiting instance: a signal, or a message that a case threw. One transaction of the receiver's.

The subscription and the job end together, so whoever dies before the commit has brought nothing, and whoever runs the job
again after it finds no lease.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from engine.commands.asking import ask, stale
from engine.commands.outcome import SYSTEM, ItemDone, ItemReleased, Lease
from engine.commands.transaction import Connection
from engine.core.effects import InvariantBroken
from engine.core.snapshot import EventOccurred
from engine.db.apply import Change, write
from engine.db.load import Reception
from engine.db.locks import END_DELIVERY
from engine.db.session import cursor_of


@dataclass(frozen=True, slots=True)
class Received:
    """What occurs: signal | message, and what its event tells."""

    what: str
    told: Mapping[str, Any]


def has_lease(found: Reception, lease: Lease) -> bool:
    """The fence (R4)."""
    return bool(found.job["status"] == "leased" and found.job["lease_number"] == lease.number)


def receive(conn: Connection, lease: Lease, found: Reception, received: Received) -> ItemDone:
    """The receiver goes on. Under the locks of `lock_reception`; raises NeedsWholeInstance, DefinitionRefused."""
    case, receiver = found.case, found.receiver
    if case is None or case.snapshot is None or case.leaf.token_id is None or receiver is None:
        raise InvariantBroken(f"job {lease.item_id}: expected an instance that waits, found none")
    detail = {
        "item_id": str(lease.item_id),
        "lease_number": lease.number,
        "attempt": found.job["attempts"],
        "owner": lease.owner,
        "subscription_id": str(receiver),
        **received.told,
    }
    trigger = EventOccurred(case.leaf.token_id, case.leaf.element_id, received.what, found.variables, detail)
    answer = ask(conn, case.snapshot, trigger, now=found.now)
    change = Change(
        leaf="reception",
        leaf_id=lease.item_id,
        fence=lease.number,
        snapshot=case.snapshot,
        definition=answer.definition,
        effects=answer.effects,
        called=answer.called,
        actor=SYSTEM.username,
        mark=case.mark,
        parameters={"received_by": receiver},
    )
    if write(conn, change) is None:
        raise stale(change.called, f"job {lease.item_id}: expected its guards to hold under the root's lock, found them stale")
    return ItemDone(lease.item_id, lease.number, case.snapshot.instance_id)


def end_quietly(conn: Connection, lease: Lease, found: Reception, why: str) -> ItemDone:
    """Nobody is there to have it: the job ends, under the locks of `lock_reception`."""
    values = {"item_id": lease.item_id, "lease_number": lease.number, "attempt": found.job["attempts"], "why": why}
    cursor_of(conn).execute(END_DELIVERY, values)
    return ItemDone(lease.item_id, lease.number)


def wait_along(conn: Connection, lease: Lease, *, instance_id: UUID | None = None, definition_id: UUID | None = None) -> ItemReleased:
    """Who is to have it is suspended. Nobody could be told, so the job waits with it, unspent: the resumption frees it.

    Under the lock of the root or the definition, which a resumption takes, too: it cannot pass by while this is written.
    """
    values = {"item_id": lease.item_id, "number": lease.number, "instance_id": instance_id, "definition_id": definition_id}
    if cursor_of(conn).execute(_WAIT, values).fetchone() is None:
        raise InvariantBroken(f"job {lease.item_id}: expected leased under number {lease.number} still, found its lease lost")
    return ItemReleased(lease.item_id)


_WAIT = """
WITH leaf AS (
  UPDATE job j SET status = 'available', attempts = j.attempts - 1, held = array_append(array_remove(j.held, 'suspended'), 'suspended'),
    instance_id = coalesce(%(instance_id)s::uuid, j.instance_id), definition_id = coalesce(%(definition_id)s::uuid, j.definition_id),
    available_at = baton_clock(), lease_owner = NULL, lease_expires_at = NULL, leased_at = NULL
  WHERE j.id = %(item_id)s AND j.status COLLATE "C" = 'leased' AND j.lease_number = %(number)s
  RETURNING j.*
)
INSERT INTO history (at, tenant_id, root_id, kind, element_id, actor, item_id, data)
SELECT baton_clock(), tenant_id, root_id, 'job_released', element_id, 'engine', id,
  jsonb_build_object('lease_number', lease_number, 'attempt', attempts + 1, 'unstarted', false, 'because', 'suspended')
FROM leaf RETURNING 1
"""
