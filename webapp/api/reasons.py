"""Why nothing is happening, one reason at a time, in one shape for all of them."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict
from uuid import UUID

from engine.queries.instance import IncidentRow, SubscriptionRow, TaskRow, Token, WorkRow
from engine.queries.resting import PauseRow
from engine.queries.turn import Turn
from engine.queries.why import Reason
from webapp.api.schemas import Moment, words
from webapp.api.shapes import moment

KINDS = (
    "incident", "task_free", "task_held", "held", "paused", "turn", "job_due", "job_later", "leased", "timer", "timer_due", "message",
    "signal", "condition", "joining", "reset", "inside", "calls", "compensating", "unknown",
)  # fmt: skip


class ReasonShape(TypedDict):
    """`item_kind` and `item_id`: what it speaks of. `by` and `at`: who holds or paused it and since or until when, as the kind says.

    `detail`: an error, a reason that was given, the name of a task or message, what a condition was last.
    """

    kind: Annotated[str, words(*KINDS)]
    element_id: str
    item_kind: Annotated[str, words("task", "job", "external_task", "delivery", "token", "subscription", "process_instance")] | None
    item_id: UUID | None
    by: str | None
    at: Moment | None
    detail: str


def reason_shape(reason: Reason) -> ReasonShape:
    told: dict[str, Any] = {"item_kind": None, "item_id": None, "by": None, "at": None, "detail": ""}
    row = reason.row
    match row:
        case IncidentRow():
            told |= {"item_kind": row.work, "item_id": row.item_id, "at": moment(row.created_at), "detail": row.message}
        case TaskRow():
            told |= {"item_kind": "task", "item_id": row.id, "by": row.assignee, "at": moment(row.assigned_at), "detail": row.name}
        case WorkRow():
            at = row.lease_expires_at if reason.kind == "leased" else row.available_at
            told |= {"item_kind": row.work, "item_id": row.id, "by": row.lease_owner, "at": moment(at), "detail": row.last_error or ""}
        case PauseRow():
            told |= {"by": row.paused_by, "at": moment(row.paused_at), "detail": row.reason}
        case Turn():
            told |= {"item_id": row.id, "detail": row.status}
        case SubscriptionRow():
            told |= {"item_kind": "subscription", "item_id": row.id, "at": moment(row.created_at), "detail": row.message_name}
        case Token() if reason.kind == "calls":
            told |= {"item_kind": "process_instance", "item_id": row.calls, "at": moment(row.arrived_at)}
        case Token():
            told |= {"item_kind": "token", "item_id": row.id, "at": moment(row.arrived_at)}
        case bool():
            told |= {"detail": str(row).lower()}
        case str():
            told |= {"detail": row}
    return {"kind": reason.kind, "element_id": reason.element_id, **told}  # type: ignore[typeddict-item]  # `told` holds the rest
