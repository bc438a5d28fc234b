"""Signals: thrown by whoever may publish messages or by a case, and spread to all who wait (10.5.1, 13.5.3).

A throw writes one job, with the payload, in the transaction that throws; nothing is lost when its worker dies, and a throw
that is rolled back never was. That job, `spread_signal`, writes a delivery job for each receiver in bounded steps, and
`receive_signal` ends each of those in its receiver's own transaction. A signal is not stored: it is for those whose
subscription was committed when the throwing statement began, and for the newest version of each process that starts by it.
Who opens a subscription later waits for the next one; who opened it before has it exactly once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from psycopg import errors

from engine.commands.asking import stale
from engine.commands.jobs import Outcome, fail_or_lost, landed_or_lost
from engine.commands.may import may
from engine.commands.messages import name_problem
from engine.commands.outcome import (
    SYSTEM,
    Actor,
    FieldProblem,
    ItemDone,
    ItemReleased,
    Lease,
    Refusal,
    Rejected,
    SignalSpread,
    SignalThrown,
)
from engine.commands.reception import Received, end_quietly, has_lease, receive, wait_along
from engine.commands.requests import WRITE_REQUEST, encode, is_repeat, recorded, refuse, request_for
from engine.commands.start import NewCase, prepare
from engine.commands.step import marked
from engine.commands.transaction import Connection, command, transaction
from engine.core.effects import Event
from engine.core.snapshot import NeedsWholeInstance
from engine.core.values import accept
from engine.db.apply import write
from engine.db.definitions import DefinitionRefused, compiled
from engine.db.load import Reception, lock_reception
from engine.db.locks import SPREAD_SIGNAL
from engine.db.session import cursor_of
from engine.failpoints import commit_point
from engine.ids import new_id

STEP_RECEIVERS = 200  # delivery jobs that one transaction writes
_NAME = "receive_signal"


# ---- thrown from outside


@command
def broadcast_signal(
    conn: Connection, name: str, *, actor: Actor, variables: Mapping[str, Any], request_id: str | None = None
) -> SignalThrown | Rejected:
    """Throw a signal to everybody who waits for it now; that may be nobody.

    Locks: nothing. Refuses: NOT_ALLOWED, INVALID.
    """
    if not may(actor, "publish", "signal"):
        return Rejected(Refusal.NOT_ALLOWED)
    accepted, wrong = accept(variables)
    problems = (*name_problem(name), *(FieldProblem(f"variables.{field}", text) for field, text in wrong))
    if problems:
        return Rejected(Refusal.INVALID, "; ".join(f"{p.field}: {p.message}" for p in problems), problems=problems)
    request = request_for(actor, request_id, "broadcast_signal", name, variables)
    thrown: Any = SignalThrown(new_id())
    payload = {"name": name, "variables": {key: {"type": v.type, "value": v.value} for key, v in accepted.items()}}
    values: dict[str, Any] = {
        "id": thrown.signal_id,
        "tenant_id": actor.tenant_id,
        "name": name,
        "actor": actor.username,
        "payload": orjson.dumps(payload).decode(),
    }
    if request is not None:
        values.update(request.params(), outcome=encode(thrown))
    try:
        with commit_point(conn, "command.before_commit"):
            cursor_of(conn).execute(_THROW[request is not None], values)
    except errors.UniqueViolation as error:
        if not is_repeat(error):
            raise
        thrown = recorded(conn, request)
    outcome: SignalThrown | Rejected = thrown
    return outcome


_THROWN = """
WITH thrown AS (
  INSERT INTO job (id, tenant_id, kind, topic, element_id, due_at, available_at, max_attempts, payload)
  SELECT %(id)s, %(tenant_id)s, 'throw', 'signal', '', c.at, c.at, 10, baton_signal_thrown(%(tenant_id)s, %(payload)s::jsonb)
  FROM (SELECT baton_clock() AS at) c RETURNING id, tenant_id, due_at
), event AS (
  INSERT INTO history (at, tenant_id, kind, actor, item_id, data)
  SELECT due_at, tenant_id, 'signal_thrown', %(actor)s, id, jsonb_build_object('signal', %(name)s::text) FROM thrown
)"""
_THROW = (
    _THROWN + " SELECT id FROM thrown",
    _THROWN + f", press AS ({WRITE_REQUEST.format(outcome='%(outcome)s::jsonb', source='thrown')}) SELECT id FROM thrown",
)


# ---- on its way


@command
def spread_signal(conn: Connection, lease: Lease) -> SignalSpread | Outcome:
    """Write the delivery jobs of the next receivers of a thrown signal; ItemDone: all have theirs.

    Locks: the job. Refuses: LEASE_LOST.
    """
    with commit_point(conn, "command.before_commit"):
        row = (
            cursor_of(conn)
            .execute(SPREAD_SIGNAL, (lease.item_id, lease.number, STEP_RECEIVERS, [new_id() for _ in range(STEP_RECEIVERS)]))
            .fetchone()
        )
    if row is None or row[0] is None:
        return landed_or_lost(conn, "spread_signal", lease, ("job_completed",), SYSTEM.username)
    if row[0]["ended"]:
        return ItemDone(lease.item_id, lease.number)
    return SignalSpread(lease.item_id, row[0]["rows"])


@command
def receive_signal(conn: Connection, lease: Lease) -> Outcome:
    """Bring a signal to one who waited for it when it was thrown, or start an instance; one who is gone ends the job.

    Locks: the root, the job and the subscription (of a start event the definition and the job), and the keys that the
    result opens. Refuses: LEASE_LOST, INSTANCE_…. With a suspended case or version it waits (ItemReleased).
    """
    done: ItemDone | ItemReleased | Rejected | None = None
    for whole in (False, True):
        try:
            with transaction(conn):
                done = _receive(conn, lease, lock_reception(conn, lease.item_id, None, whole=whole))
        except NeedsWholeInstance:
            continue
        except DefinitionRefused as refused:
            return fail_or_lost(conn, _NAME, lease, error=str(refused), final=True, kind="unsupported")
        break
    if done is None:
        return landed_or_lost(conn, _NAME, lease, ("signal_caught", "job_completed"), SYSTEM.username)
    if isinstance(done, Rejected):
        rejected: Outcome = refuse(conn, _NAME, SYSTEM.username, "", done)
        return rejected
    return done


def _receive(conn: Connection, lease: Lease, found: Reception | None) -> ItemDone | ItemReleased | Rejected | None:
    """Inside the transaction. None: the lease was lost."""
    # Re-check after the lock: a recovery may have taken the job back while we waited.
    if found is None or not has_lease(found, lease):
        return None
    payload = found.job["payload"]
    told = {"signal": payload["name"], "throw_id": payload["throw_id"], "thrown_by": payload["thrown_by"]}
    if found.case is not None and found.case.snapshot is not None:
        match marked(found.case):
            case None:
                return receive(conn, lease, found, Received("signal", told))
            case Rejected(refusal=Refusal.INSTANCE_SUSPENDED):
                return wait_along(conn, lease)
            case refused:
                return refused
    if found.definition_id is None:
        return end_quietly(conn, lease, found, "nobody waits")
    return _start(conn, lease, found, told)


def _start(conn: Connection, lease: Lease, found: Reception, told: Mapping[str, Any]) -> ItemDone | ItemReleased:
    """An instance of the version that was the newest when the signal was thrown."""
    assert found.definition_id is not None and found.definition_status is not None, "a start event has a definition"
    if found.definition_status == "deleting":
        return end_quietly(conn, lease, found, "the version was deleted")
    if found.definition_status == "suspended":
        return wait_along(conn, lease)
    case = NewCase(
        definition_id=found.definition_id,
        definition=compiled(conn, found.definition_id),
        tenant_id=found.job["tenant_id"],
        element_id=found.job["element_id"],
        what="signal",
        variables=found.variables,
        business_key=None,
        started_by=SYSTEM.username,
        now=found.now,
    )
    detail = {"item_id": str(lease.item_id), "lease_number": lease.number, "attempt": found.job["attempts"], "owner": lease.owner}
    because = Event("signal_caught", case.element_id, {**detail, **told})
    change, begun = prepare(conn, case, leaf="start_by_job", leaf_id=lease.item_id, fence=lease.number, because=because)
    if write(conn, change) is None:
        raise stale(change.called, f"job {lease.item_id}: expected its guards to hold under the definition's lock, found them stale")
    return ItemDone(lease.item_id, lease.number, begun.instance_id)
