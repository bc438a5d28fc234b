"""What is asked of a case by all that is done to the whole of it: whether this actor may, that it is one, and a reason."""

from __future__ import annotations

from uuid import UUID

from engine.commands.may import InstanceView, instance_visible, may, may_params
from engine.commands.outcome import Actor, FieldProblem, Refusal, Rejected
from engine.commands.transaction import Connection
from engine.core.snapshot import Snapshot
from engine.db.session import cursor_of

MAX_REASON = 500  # characters

_VISIBLE = f"SELECT 1 FROM process_instance i WHERE i.id = %(instance_id)s AND {instance_visible('i')}"


def not_theirs(conn: Connection, snapshot: Snapshot, actor: Actor, action: str) -> Rejected | None:
    """NOT_ALLOWED, or NOT_FOUND for who may not see it either."""
    if may(actor, action, InstanceView(snapshot.tenant_id, snapshot.started_by or "")):
        return None
    seen = cursor_of(conn).execute(_VISIBLE, {"instance_id": snapshot.instance_id, **may_params(actor)}).fetchone()
    return Rejected(Refusal.NOT_ALLOWED if seen else Refusal.NOT_FOUND)


def called(snapshot: Snapshot, what: str) -> Rejected | None:
    """`what` a process does that another one called, while it runs."""
    if snapshot.root_id == snapshot.instance_id:
        return None
    text = f"a process that another one called {what}: expected the case that it belongs to, {snapshot.root_id}"
    return Rejected(Refusal.CALLED_INSTANCE, text, item_id=snapshot.root_id)


def bad_reason(reason: str, item_id: UUID) -> Rejected | None:
    if len(reason) <= MAX_REASON and "\x00" not in reason:
        return None
    problem = FieldProblem("reason", f"expected at most {MAX_REASON} characters of text, found {len(reason)}")
    return Rejected(Refusal.INVALID, problem.message, problems=(problem,), item_id=item_id)
