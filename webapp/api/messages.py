"""Messages and signals."""

from __future__ import annotations

from flask import Response, jsonify

from engine.commands.messages import publish_message
from engine.commands.outcome import MessageKnown, Rejected
from engine.commands.signals import broadcast_signal
from webapp.api.blueprint import blueprint
from webapp.api.bodies import Field, json_body, number, request_id, text, uuid, variables
from webapp.api.shapes import refused
from webapp.auth.identity import current_actor
from webapp.db import command_connection

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
