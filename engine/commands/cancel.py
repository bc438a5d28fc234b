"""Cancelling a case: everything in it ends at once, in one transaction."""

from __future__ import annotations

from uuid import UUID

from engine.commands.may import InstanceView, instance_visible, may, may_params
from engine.commands.outcome import Actor, FieldProblem, InstanceCancelled, Refusal, Rejected
from engine.commands.requests import request_for
from engine.commands.step import Repeated, Step, answer, marked, take
from engine.commands.transaction import Connection, command
from engine.core.snapshot import Cancelled
from engine.db.load import Loaded
from engine.db.session import cursor_of

MAX_REASON = 500  # characters

_VISIBLE = f"SELECT 1 FROM process_instance i WHERE i.id = %(instance_id)s AND {instance_visible('i')}"


@command
def cancel_instance(
    conn: Connection, instance_id: UUID, *, actor: Actor, reason: str, request_id: str | None
) -> InstanceCancelled | Rejected:
    """Cancel an instance: its open tasks leave every inbox, its jobs, subscriptions and incidents are gone.

    Outbox deliveries stay: what a step has committed to send is sent. Cancelling is one transaction whatever its size.
    Locks: the root, then every leaf of the instance. Refuses: NOT_FOUND, NOT_ALLOWED, INSTANCE_ENDED,
    ALREADY_CANCELLED, INSTANCE_CANCELLING, INVALID (reason too long).
    """
    request = request_for(actor, request_id, "cancel_instance", instance_id, reason)
    step = Step(
        kind="instance",
        leaf_id=instance_id,
        actor=actor.username,
        judge=lambda loaded: _judge(conn, loaded, actor, reason),
        trigger=lambda _: Cancelled(reason),
        outcome=lambda *_: InstanceCancelled(instance_id),
        request=request,
        lock_first=True,
        whole=True,
    )
    match take(conn, step):
        case Rejected() as rejected:
            refused: InstanceCancelled | Rejected = answer(conn, "cancel_instance", actor, rejected, request)
            return refused
        case Repeated() as repeated:
            before: InstanceCancelled | Rejected = repeated.outcome
            return before
    return InstanceCancelled(instance_id)


def _judge(conn: Connection, loaded: Loaded | None, actor: Actor, reason: str) -> Rejected | None:
    if loaded is None or loaded.snapshot is None:
        return Rejected(Refusal.NOT_FOUND)
    snapshot = loaded.snapshot
    if not may(actor, "cancel", InstanceView(snapshot.tenant_id, snapshot.started_by or "")):
        seen = cursor_of(conn).execute(_VISIBLE, {"instance_id": loaded.leaf.id, **may_params(actor)}).fetchone()
        return Rejected(Refusal.NOT_ALLOWED if seen else Refusal.NOT_FOUND)
    if loaded.instance_status == "cancelled":
        return Rejected(Refusal.ALREADY_CANCELLED, by=loaded.ended_by, at=loaded.ended_at, item_id=loaded.leaf.id)
    if refused := marked(loaded, even_suspended=True):
        return refused
    if len(reason) > MAX_REASON or "\x00" in reason:
        problem = FieldProblem("reason", f"expected at most {MAX_REASON} characters of text, found {len(reason)}")
        return Rejected(Refusal.INVALID, problem.message, problems=(problem,), item_id=loaded.leaf.id)
    return None
