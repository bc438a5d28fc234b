"""Messages and signals."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask import Response, abort, jsonify

from engine.commands.may import may
from engine.commands.messages import publish_message
from engine.commands.outcome import MessageKnown, Rejected
from engine.commands.signals import broadcast_signal
from engine.queries.near_misses import Lost, NearReceiver, lost_message, near_receivers
from engine.queries.rows import reading
from webapp.api.blueprint import blueprint
from webapp.api.bodies import Field, json_body, number, query, request_id, text, uuid, variables
from webapp.api.shapes import each, moment, refused
from webapp.auth.identity import current_actor
from webapp.db import command_connection, reader

WEEKS = 366 * 24 * 3600


@blueprint.post("/messages")
def publish() -> Response:
    """`{"outcome": "correlated" | "stored"}`; 409 `no_subscription` when nobody waits and no time to live was given."""
    sent = json_body(
        name=Field(text()),
        correlation_key=Field(text(empty=True, nullable=True), None),
        variables=Field(variables, {}),
        time_to_live_seconds=Field(number(most=WEEKS, nullable=True), None),
        message_id=Field(text(nullable=True), None),
        business_key=Field(text(nullable=True), None),
        process_instance_id=Field(uuid, None),
        correlation_variables=Field(variables, {}),
    )
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
def near_misses() -> Response:
    """Who nearly waits for a message of this name and key, which nobody has: refused, or not yet sent."""
    _operators()
    asked = query(name=Field(text()), correlation_key=Field(text(empty=True), ""))
    return _near(Lost(asked["name"], asked["correlation_key"]))


@blueprint.get("/messages/<uuid:message_id>/near-misses")
def near_misses_of(message_id: UUID) -> Response:
    """The same for a message that is stored, or that expired within a day. 404: it was received, or is forgotten."""
    _operators()
    query()
    with reading(reader()) as conn:
        lost = lost_message(conn, message_id, tenant_id=current_actor().tenant_id)
    if lost is None:
        abort(404)
    return _near(lost)


def _operators() -> None:
    if not may(current_actor(), "see", "message"):
        abort(403)


def _near(lost: Lost) -> Response:
    with reading(reader()) as conn:
        [found] = near_receivers(conn, [lost], tenant_id=current_actor().tenant_id)
    return jsonify(items=each(found, near_shape))


def near_shape(near: NearReceiver) -> dict[str, Any]:
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
def broadcast() -> Response:
    """`{"outcome": "thrown", "signal_id"}`, whether anybody waits or nobody: it is for who waits now, and not stored."""
    sent = json_body(name=Field(text()), variables=Field(variables, {}))
    outcome = broadcast_signal(
        command_connection(), sent["name"], actor=current_actor(), variables=sent["variables"], request_id=request_id()
    )
    if isinstance(outcome, Rejected):
        return refused(outcome)
    return jsonify(outcome="thrown", signal_id=outcome.signal_id)
