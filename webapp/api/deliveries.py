"""The outbox: what is sent to other systems, and what a person does about one delivery. For operators."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict
from uuid import UUID

from flask import Response, abort, jsonify

from engine.commands.deliveries import replay_delivery, skip_delivery
from engine.commands.outcome import Refusal, Rejected
from engine.core.lifecycle import DELIVERY
from engine.queries.crew import DeliveryRow, deliveries, outbox_counts
from engine.queries.instance import item_history
from engine.queries.rows import reading
from webapp.api.blueprint import blueprint
from webapp.api.bodies import Field, one_of, request_id, text, truth
from webapp.api.describing import Sent, operation, paged
from webapp.api.instances import EventShape, event_shape
from webapp.api.schemas import Items, Listed, Moment, words
from webapp.api.shapes import each, listed, refused, shaped
from webapp.api.work import ATTEMPTS, RetriedShape, retried
from webapp.auth.identity import current_actor
from webapp.db import command_connection, reader

REASON = Field(text(longest=500, empty=True), "", example="They have it by mail.")


class DeliveryShape(TypedDict):
    """`id`: the other side sees it with every attempt. `response`: what it answered last."""

    id: UUID
    kind: str
    destination: str
    element_id: str | None
    process_instance_id: UUID | None
    business_key: str | None
    status: Annotated[str, words(*DELIVERY)]
    due_at: Moment
    available_at: Moment
    attempts: int
    max_attempts: int
    lease_number: int
    last_error: str | None
    response: Any
    created_at: Moment
    ended_at: Moment | None


class OutboxCountsShape(TypedDict):
    """Each counted up to 10,000."""

    available: int
    leased: int
    failed: int


class SkippedShape(TypedDict):
    id: UUID
    status: Literal["skipped"]


class ReplayedShape(TypedDict):
    """`id`: of the new delivery."""

    id: UUID
    status: Literal["available"]


@blueprint.get("/deliveries")
@operation(
    scope="read",
    needs=("see", "delivery"),
    query={
        "status": Field(one_of(*DELIVERY), ""),
        "q": Field(text(), "", about="Part of the destination."),
        "due": Field(truth, False, about="Only what could be sent now."),
        **paged(),
    },
    answers=Listed[DeliveryShape],
)
def list_deliveries(asked: Sent) -> Response:
    """What is sent to other systems, newest first; what arrived too, until it is cleared away."""
    with reading(reader()) as conn:
        return listed(deliveries(conn, tenant_id=current_actor().tenant_id, **asked), delivery_shape)


@blueprint.get("/deliveries/counts")
@operation(scope="read", needs=("see", "delivery"), answers=OutboxCountsShape)
def count_deliveries() -> Response:
    """How many deliveries wait, are being sent, and failed."""
    with reading(reader()) as conn:
        return jsonify(shaped(OutboxCountsShape, outbox_counts(conn, tenant_id=current_actor().tenant_id)))


@blueprint.get("/deliveries/<uuid:item_id>")
@operation(scope="read", needs=("see", "delivery"), answers=DeliveryShape)
def show_delivery(item_id: UUID) -> Response:
    """One delivery."""
    with reading(reader()) as conn:
        found = deliveries(conn, tenant_id=current_actor().tenant_id, item_id=item_id).items
    if not found:
        abort(404)
    return jsonify(delivery_shape(found[0]))


@blueprint.get("/deliveries/<uuid:item_id>/history")
@operation(scope="read", needs=("see", "delivery"), answers=Items[EventShape])
def delivery_history(item_id: UUID) -> Response:
    """What happened to a delivery, attempt by attempt, newest first, up to 200."""
    tenant = current_actor().tenant_id
    with reading(reader()) as conn:
        if not deliveries(conn, tenant_id=tenant, item_id=item_id).items:
            abort(404)
        return jsonify(items=each(item_history(conn, item_id, tenant_id=tenant, limit=200), event_shape))


@blueprint.post("/deliveries/<uuid:item_id>/retry")
@operation(scope="operate", body=ATTEMPTS, answers=RetriedShape, refusals=(Refusal.NOT_FAILED,))
def retry_a_delivery(item_id: UUID, sent: Sent) -> Response:
    """Send a failed delivery again, under the same id."""
    return retried("delivery", item_id, sent["attempts"])


@blueprint.post("/deliveries/<uuid:item_id>/skip")
@operation(scope="operate", body={"reason": REASON}, answers=SkippedShape, refusals=(Refusal.NOT_FAILED,))
def skip_a_delivery(item_id: UUID, sent: Sent) -> Response:
    """Give up a delivery that is not being sent right now: it will never be."""
    outcome = skip_delivery(command_connection(), item_id, actor=current_actor(), reason=sent["reason"], request_id=request_id())
    return refused(outcome) if isinstance(outcome, Rejected) else jsonify(id=item_id, status="skipped")


@blueprint.post("/deliveries/<uuid:item_id>/replay")
@operation(scope="operate", body={"reason": REASON}, answers={201: ReplayedShape}, refusals=(Refusal.NOT_FAILED,))
def replay_a_delivery(item_id: UUID, sent: Sent) -> Response:
    """Send again what was sent, skipped or cancelled: as a new delivery, whose id the other side has not seen."""
    outcome = replay_delivery(command_connection(), item_id, actor=current_actor(), reason=sent["reason"], request_id=request_id())
    if isinstance(outcome, Rejected):
        return refused(outcome)
    answer = jsonify(id=outcome.item_id, status="available")
    answer.status_code = 201
    return answer


def delivery_shape(row: DeliveryRow) -> DeliveryShape:
    return shaped(DeliveryShape, row, process_instance_id=row.instance_id)
