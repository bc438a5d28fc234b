"""External tasks: workers outside acquire them under a lease and answer under its number (R4)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask import Response, jsonify

from engine.commands.external_tasks import (
    LeasedTask,
    acquire_external_tasks,
    complete_external_task,
    fail_external_task,
    release_external_task,
    renew_external_task,
    throw_external_error,
)
from engine.commands.outcome import ItemDone, ItemFailed, ItemReleased, Rejected, Renewed
from webapp.api.blueprint import blueprint
from webapp.api.bodies import Field, json_body, names, number, request_id, text, variables, whole
from webapp.api.shapes import moment, refused
from webapp.auth.identity import current_actor
from webapp.db import command_connection

LEASE = Field(number(least=1, most=24 * 3600), 60.0)
NUMBER = Field(whole(least=1))


@blueprint.post("/external-tasks/acquire")
def acquire() -> Response:
    """Up to `limit` free tasks of these topics, leased to `worker_id` for `lease_seconds`."""
    sent = json_body(
        worker_id=Field(text()),
        topics=Field(names()),
        limit=Field(whole(least=1, most=100), 10),
        lease_seconds=LEASE,
    )
    leased = acquire_external_tasks(command_connection(), actor=current_actor(), **sent)
    if isinstance(leased, Rejected):
        return refused(leased)
    return jsonify(items=[leased_shape(item) for item in leased])


@blueprint.post("/external-tasks/<uuid:task_id>/complete")
def complete_external(task_id: UUID) -> Response:
    sent = json_body(lease_number=NUMBER, variables=Field(variables, {}))
    return _answer(complete_external_task(command_connection(), task_id, actor=current_actor(), request_id=request_id(), **sent))


@blueprint.post("/external-tasks/<uuid:task_id>/fail")
def fail_external(task_id: UUID) -> Response:
    """Spends the attempt. `retry_in` (seconds) overrides what the model says about the next one."""
    sent = json_body(
        lease_number=NUMBER,
        error=Field(text(longest=1_000_000)),
        retry_in=Field(number(most=366 * 24 * 3600, nullable=True), None),
    )
    return _answer(fail_external_task(command_connection(), task_id, actor=current_actor(), request_id=request_id(), **sent))


@blueprint.post("/external-tasks/<uuid:task_id>/error")
def throw_external(task_id: UUID) -> Response:
    """A BPMN error: caught by a boundary event, else an incident."""
    sent = json_body(
        lease_number=NUMBER,
        code=Field(text()),
        message=Field(text(longest=4_000, empty=True), ""),
        variables=Field(variables, {}),
    )
    return _answer(throw_external_error(command_connection(), task_id, actor=current_actor(), request_id=request_id(), **sent))


@blueprint.post("/external-tasks/<uuid:task_id>/renew")
def renew_external(task_id: UUID) -> Response:
    sent = json_body(lease_number=NUMBER, lease_seconds=LEASE)
    return _answer(renew_external_task(command_connection(), task_id, actor=current_actor(), request_id=request_id(), **sent))


@blueprint.post("/external-tasks/<uuid:task_id>/release")
def release_external(task_id: UUID) -> Response:
    sent = json_body(lease_number=NUMBER)
    return _answer(release_external_task(command_connection(), task_id, actor=current_actor(), request_id=request_id(), **sent))


def _answer(outcome: ItemDone | ItemFailed | ItemReleased | Renewed | Rejected) -> Response:
    match outcome:
        case Rejected():
            return refused(outcome)
        case ItemDone():
            return jsonify(id=outcome.item_id, status="completed", lease_number=outcome.lease_number)
        case ItemFailed():
            return jsonify(id=outcome.item_id, status=outcome.status, attempts=outcome.attempts, available_at=moment(outcome.available_at))
        case ItemReleased():
            return jsonify(id=outcome.item_id, status="available")
        case Renewed():
            [(item_id, expires_at)] = outcome.expires_at.items()
            return jsonify(id=item_id, status="leased", lease_expires_at=moment(expires_at))


def leased_shape(item: LeasedTask) -> dict[str, Any]:
    return {
        "id": item.id,
        "topic": item.topic,
        "element_id": item.element_id,
        "process_instance_id": item.instance_id,
        "business_key": item.business_key,
        "variables": item.variables,
        "lease_number": item.lease_number,
        "lease_expires_at": moment(item.lease_expires_at),
        "attempts": item.attempts,
        "max_attempts": item.max_attempts,
        "headers": dict(item.headers),
    }
