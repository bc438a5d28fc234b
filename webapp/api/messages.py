"""Messages and signals."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict
from uuid import UUID

from flask import Response, abort, jsonify

from engine.commands.messages import publish_message
from engine.commands.outcome import MessageKnown, Refusal, Rejected
from engine.commands.signals import broadcast_signal
from engine.queries.near_misses import Lost, NearReceiver, lost_message, near_receivers
from engine.queries.rows import reading
from webapp.api.blueprint import blueprint
from webapp.api.bodies import Field, number, request_id, text, uuid, variables
from webapp.api.describing import Sent, operation
from webapp.api.schemas import Items, Moment, words
from webapp.api.shapes import each, moment, refused
from webapp.auth.identity import current_actor
from webapp.db import command_connection, reader

WEEKS = 366 * 24 * 3600


class PublishedShape(TypedDict):
    """`duplicate`: the answer is that of the first message with this `message_id`; this one did nothing."""

    outcome: Literal["correlated", "stored"]
    message_id: UUID | None
    process_instance_id: UUID | None
    started: bool
    duplicate: bool


class ThrownShape(TypedDict):
    outcome: Literal["thrown"]
    signal_id: UUID


class NearReceiverShape(TypedDict):
    """`says` is a sentence that tells what differs."""

    reason: Annotated[str, words("key", "name", "suspended", "signal", "waits", "too_late", "received")]
    says: str
    message_name: str
    correlation_key: str
    since: Moment
    process_instance_id: UUID | None
    business_key: str | None
    process_definition_key: str | None
    version: int | None
    element_id: str | None


@blueprint.post("/messages")
@operation(
    scope="messages",
    body={
        "name": Field(text(), example="Payment received"),
        "correlation_key": Field(text(empty=True, nullable=True), None, example="INV-2041"),
        "variables": Field(variables, {}),
        "time_to_live_seconds": Field(number(most=WEEKS, nullable=True), None, about="How long it is stored if nobody waits."),
        "message_id": Field(text(nullable=True), None, about="The sender's own: sent again under the same name, it does nothing more."),
        "business_key": Field(text(nullable=True), None),
        "process_instance_id": Field(uuid, None),
        "correlation_variables": Field(variables, {}, about="All of them must be so in the instance."),
    },
    answers=PublishedShape,
    refusals=(Refusal.NO_SUBSCRIPTION, Refusal.AMBIGUOUS, Refusal.INSTANCE_SUSPENDED, Refusal.DEFINITION_SUSPENDED),
)
def publish(sent: Sent) -> Response:
    """Publish a message: to one who waits for it, or stored for a time.

    409 `no_subscription` when nobody waits and no time to live was given.
    """
    outcome = publish_message(
        command_connection(),
        sent["name"],
        actor=current_actor(),
        correlation_key=sent["correlation_key"] or "",
        variables=sent["variables"],
        time_to_live_seconds=sent["time_to_live_seconds"],
        message_id=sent["message_id"],
        business_key=sent["business_key"],
        instance_id=sent["process_instance_id"],
        correlation_variables=sent["correlation_variables"],
        request_id=request_id(),
    )
    if isinstance(outcome, Rejected):
        return refused(outcome)
    did = outcome.first if isinstance(outcome, MessageKnown) else outcome
    return jsonify(
        outcome=did.outcome,
        message_id=did.message_id,
        process_instance_id=did.instance_id,
        started=did.started,
        duplicate=isinstance(outcome, MessageKnown),
    )


@blueprint.get("/messages/near-misses")
@operation(
    scope="read",
    needs=("see", "message"),
    query={"name": Field(text(), example="Payment received"), "correlation_key": Field(text(empty=True), "")},
    answers=Items[NearReceiverShape],
)
def near_misses(asked: Sent) -> Response:
    """Who nearly waits for a message of this name and key, which nobody has: refused, or not yet sent."""
    return _near(Lost(asked["name"], asked["correlation_key"]))


@blueprint.get("/messages/<uuid:message_id>/near-misses")
@operation(scope="read", needs=("see", "message"), answers=Items[NearReceiverShape])
def near_misses_of(message_id: UUID) -> Response:
    """Who nearly waits for a message that is stored, or that expired within a day.

    404: it was received, or is forgotten.
    """
    with reading(reader()) as conn:
        lost = lost_message(conn, message_id, tenant_id=current_actor().tenant_id)
    if lost is None:
        abort(404)
    return _near(lost)


def _near(lost: Lost) -> Response:
    with reading(reader()) as conn:
        [found] = near_receivers(conn, [lost], tenant_id=current_actor().tenant_id)
    return jsonify(items=each(found, near_shape))


def near_shape(near: NearReceiver) -> NearReceiverShape:
    return {
        "reason": near.reason,
        "says": near.says,
        "message_name": near.message_name,
        "correlation_key": near.correlation_key,
        "since": moment(near.since),
        "process_instance_id": near.instance_id,
        "business_key": near.business_key,
        "process_definition_key": near.definition_key,
        "version": near.version,
        "element_id": near.element_id,
    }


@blueprint.post("/signals")
@operation(
    scope="messages",
    body={"name": Field(text(), example="Prices changed"), "variables": Field(variables, {})},
    answers=ThrownShape,
)
def broadcast(sent: Sent) -> Response:
    """Throw a signal to everybody who waits for it now.

    That may be nobody; it is not stored.
    """
    outcome = broadcast_signal(
        command_connection(), sent["name"], actor=current_actor(), variables=sent["variables"], request_id=request_id()
    )
    if isinstance(outcome, Rejected):
        return refused(outcome)
    return jsonify(outcome="thrown", signal_id=outcome.signal_id)
