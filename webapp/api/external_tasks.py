"""External tasks: workers outside acquire them under a lease and answer under its number (R4)."""

from __future__ import annotations

from typing import Any, Literal, TypedDict
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
from engine.commands.outcome import ItemDone, ItemFailed, ItemReleased, Refusal, Rejected, Renewed
from webapp.api.blueprint import blueprint
from webapp.api.bodies import Field, names, number, request_id, text, variables, whole
from webapp.api.describing import Sent, operation
from webapp.api.schemas import Items, Moment
from webapp.api.shapes import CASE_OVER, moment, refused
from webapp.auth.identity import current_actor
from webapp.db import command_connection
from webapp.outside import note_worker

LEASE = Field(number(least=1, most=24 * 3600), 60.0, about="For how long it is leased.")
NUMBER = Field(whole(least=1), about="The `lease_number` that it was acquired under.", example=1)


class LeasedTaskShape(TypedDict):
    """`variables`: as the task's scope sees them, then its inputs. `headers`: texts of the model."""

    id: UUID
    topic: str
    element_id: str
    process_instance_id: UUID
    business_key: str | None
    variables: dict[str, Any]
    lease_number: int
    lease_expires_at: Moment
    attempts: int
    max_attempts: int
    headers: dict[str, str]


class CompletedItemShape(TypedDict):
    id: UUID
    status: Literal["completed"]
    lease_number: int


class FailedItemShape(TypedDict):
    """`available`: it is tried again at `available_at`; `failed`: an incident stands beside it."""

    id: UUID
    status: Literal["available", "failed"]
    attempts: int
    available_at: Moment | None


class ReleasedItemShape(TypedDict):
    id: UUID
    status: Literal["available"]


class RenewedItemShape(TypedDict):
    id: UUID
    status: Literal["leased"]
    lease_expires_at: Moment


@blueprint.post("/external-tasks/acquire")
@operation(
    scope="external_tasks",
    body={
        "worker_id": Field(text(), about="Who asks, as the Workers page calls them.", example="printer-1"),
        "topics": Field(names(), example=["print"]),
        "limit": Field(whole(least=1, most=100), 10),
        "lease_seconds": LEASE,
    },
    answers=Items[LeasedTaskShape],
    once=False,
)
def acquire(sent: Sent) -> Response:
    """Lease up to `limit` free tasks of these topics.

    Asked again, it leases what is free then.
    """
    note_worker(sent["worker_id"])
    leased = acquire_external_tasks(command_connection(), actor=current_actor(), **sent)
    if isinstance(leased, Rejected):
        return refused(leased)
    return jsonify(items=[leased_shape(item) for item in leased])


@blueprint.post("/external-tasks/<uuid:task_id>/complete")
@operation(
    scope="external_tasks",
    body={"lease_number": NUMBER, "variables": Field(variables, {})},
    answers=CompletedItemShape,
    refusals=(Refusal.LEASE_LOST, *CASE_OVER),
)
def complete_external(task_id: UUID, sent: Sent) -> Response:
    """Complete a leased task with its results."""
    return _answer(complete_external_task(command_connection(), task_id, actor=current_actor(), request_id=request_id(), **sent))


@blueprint.post("/external-tasks/<uuid:task_id>/fail")
@operation(
    scope="external_tasks",
    body={
        "lease_number": NUMBER,
        "error": Field(text(longest=1_000_000), example="The printer is on fire."),
        "retry_in": Field(number(most=366 * 24 * 3600, nullable=True), None, about="Seconds; overrides what the model says."),
    },
    answers=FailedItemShape,
    refusals=(Refusal.LEASE_LOST, *CASE_OVER),
)
def fail_external(task_id: UUID, sent: Sent) -> Response:
    """Report that an attempt failed. It is spent."""
    return _answer(fail_external_task(command_connection(), task_id, actor=current_actor(), request_id=request_id(), **sent))


@blueprint.post("/external-tasks/<uuid:task_id>/error")
@operation(
    scope="external_tasks",
    body={
        "lease_number": NUMBER,
        "code": Field(text(), example="out_of_paper"),
        "message": Field(text(longest=4_000, empty=True), ""),
        "variables": Field(variables, {}),
    },
    answers=CompletedItemShape | FailedItemShape,
    refusals=(Refusal.LEASE_LOST, *CASE_OVER),
)
def throw_external(task_id: UUID, sent: Sent) -> Response:
    """Throw a BPMN error from a leased task: caught by a boundary event, else an incident."""
    return _answer(throw_external_error(command_connection(), task_id, actor=current_actor(), request_id=request_id(), **sent))


@blueprint.post("/external-tasks/<uuid:task_id>/renew")
@operation(
    scope="external_tasks",
    body={"lease_number": NUMBER, "lease_seconds": LEASE},
    answers=RenewedItemShape,
    refusals=(Refusal.LEASE_LOST,),
)
def renew_external(task_id: UUID, sent: Sent) -> Response:
    """Renew a lease: it then ends `lease_seconds` from now.

    Asked again, it moves the end once more.
    """
    return _answer(renew_external_task(command_connection(), task_id, actor=current_actor(), request_id=request_id(), **sent))


@blueprint.post("/external-tasks/<uuid:task_id>/release")
@operation(scope="external_tasks", body={"lease_number": NUMBER}, answers=ReleasedItemShape, refusals=(Refusal.LEASE_LOST,))
def release_external(task_id: UUID, sent: Sent) -> Response:
    """Give a leased task back, and its attempt with it."""
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


def leased_shape(item: LeasedTask) -> LeasedTaskShape:
    return {
        "id": item.id,
        "topic": item.topic,
        "element_id": item.element_id,
        "process_instance_id": item.instance_id,
        "business_key": item.business_key,
        "variables": dict(item.variables),
        "lease_number": item.lease_number,
        "lease_expires_at": moment(item.lease_expires_at),
        "attempts": item.attempts,
        "max_attempts": item.max_attempts,
        "headers": dict(item.headers),
    }
