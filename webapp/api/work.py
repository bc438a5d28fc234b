"""Durable work and what is stuck: jobs, incidents, and the retry that a person gives. For operators."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict
from uuid import UUID

from flask import Response, jsonify

from engine.commands.outcome import Refusal, Rejected
from engine.commands.retry import retry_item
from engine.core.lifecycle import WORK
from engine.queries.alarms import alarms
from engine.queries.rows import reading
from engine.queries.work import JOB_KINDS, FailedItem, WorkItem, failed_items, work_items
from webapp.api.blueprint import blueprint
from webapp.api.bodies import Field, one_of, request_id, text, truth, uuid, whole
from webapp.api.describing import Sent, operation, paged
from webapp.api.schemas import Items, Listed, Moment, words
from webapp.api.shapes import CASE_OVER, listed, moment, refused
from webapp.auth.identity import current_actor
from webapp.db import command_connection, reader

ATTEMPTS = {"attempts": Field(whole(least=1, most=100), 1, about="How many more it gets.")}


ITEM_KINDS = ("job", "external_task", "delivery", "token")


class JobShape(TypedDict):
    """`due_at`: what the model says; `available_at`: from when it may be acquired; `held`: why it is not."""

    id: UUID
    kind: Annotated[str, words(*JOB_KINDS, "external")]
    topic: str
    element_id: str | None
    status: Annotated[str, words(*WORK)]
    held: list[str]
    due_at: Moment
    available_at: Moment
    priority: int
    attempts: int
    max_attempts: int
    lease_number: int
    lease_owner: str | None
    lease_expires_at: Moment | None
    last_error: str | None
    process_instance_id: UUID | None
    process_definition_key: str | None
    business_key: str | None
    created_at: Moment


class IncidentShape(TypedDict):
    """`item_kind` and `item_id` say what a retry is asked for."""

    id: UUID
    kind: str
    message: str
    detail: str
    item_kind: Annotated[str, words(*ITEM_KINDS)]
    item_id: UUID
    element_id: str | None
    process_instance_id: UUID | None
    process_definition_key: str | None
    business_key: str | None
    attempts: int | None
    max_attempts: int | None
    created_at: Moment


class AlarmShape(TypedDict):
    name: str
    about: str
    seconds: float | None


class RetriedShape(TypedDict):
    id: UUID
    status: Literal["available"]
    attempts_left: int


@blueprint.get("/jobs")
@operation(
    scope="read",
    needs=("see", "job"),
    query={
        "status": Field(one_of(*WORK), "", about="Without it: those that are not over."),
        "kind": Field(one_of(*JOB_KINDS, "external"), ""),
        "topic": Field(text(), ""),
        "due": Field(truth, False, about="Only what could be acquired now."),
        "process_instance_id": Field(uuid, None),
        **paged(),
    },
    answers=Listed[JobShape],
)
def list_jobs(asked: Sent) -> Response:
    """Jobs and external tasks, newest first."""
    asked["instance_id"] = asked.pop("process_instance_id")
    with reading(reader()) as conn:
        page = work_items(conn, tenant_id=current_actor().tenant_id, **asked)
    return listed(page, job_shape)


@blueprint.get("/incidents")
@operation(
    scope="read",
    needs=("see", "incident"),
    query={
        "process_definition_key": Field(text(), ""),
        "process_instance_id": Field(uuid, None),
        "item_kind": Field(one_of(*ITEM_KINDS), ""),
        "q": Field(text(), "", about="Part of the error or of the business key, or an element."),
        **paged(),
    },
    answers=Listed[IncidentShape],
)
def list_incidents(asked: Sent) -> Response:
    """What waits for a person, newest first."""
    for name, called in (("process_definition_key", "key"), ("process_instance_id", "instance_id"), ("item_kind", "work")):
        asked[called] = asked.pop(name)
    with reading(reader()) as conn:
        page = failed_items(conn, tenant_id=current_actor().tenant_id, **asked)
    return listed(page, incident_shape)


@blueprint.get("/alarms")
@operation(scope="read", needs=("see", "job"), answers=Items[AlarmShape])
def list_alarms() -> Response:
    """What the overview shows above its numbers: about the whole database, whoever's cases they are."""
    with reading(reader()) as conn:
        found = alarms(conn)
    return jsonify(items=[{"name": alarm.name, "about": alarm.about, "seconds": alarm.seconds} for alarm in found])


@blueprint.post("/jobs/<uuid:item_id>/retry")
@operation(scope="operate", body=ATTEMPTS, answers=RetriedShape, refusals=(Refusal.NOT_FAILED, *CASE_OVER))
def retry_job(item_id: UUID, sent: Sent) -> Response:
    """Give a failed job new attempts."""
    return retried("job", item_id, sent["attempts"])


@blueprint.post("/external-tasks/<uuid:item_id>/retry")
@operation(scope="operate", body=ATTEMPTS, answers=RetriedShape, refusals=(Refusal.NOT_FAILED, *CASE_OVER))
def retry_external_task(item_id: UUID, sent: Sent) -> Response:
    """Give a failed external task new attempts."""
    return retried("external_task", item_id, sent["attempts"])


def retried(kind: str, item_id: UUID, attempts: int) -> Response:
    """New attempts for an item of this kind."""
    outcome = retry_item(command_connection(), kind, item_id, actor=current_actor(), attempts=attempts, request_id=request_id())
    if isinstance(outcome, Rejected):
        return refused(outcome)
    return jsonify(id=outcome.item_id, status="available", attempts_left=outcome.attempts_left)


def job_shape(item: WorkItem) -> JobShape:
    return {
        "id": item.id,
        "kind": item.kind,
        "topic": item.topic,
        "element_id": item.element_id,
        "status": item.status,
        "held": item.held,
        "due_at": moment(item.due_at),
        "available_at": moment(item.available_at),
        "priority": item.priority,
        "attempts": item.attempts,
        "max_attempts": item.max_attempts,
        "lease_number": item.lease_number,
        "lease_owner": item.lease_owner,
        "lease_expires_at": moment(item.lease_expires_at),
        "last_error": item.last_error,
        "process_instance_id": item.instance_id,
        "process_definition_key": item.definition_key,
        "business_key": item.business_key,
        "created_at": moment(item.created_at),
    }


def incident_shape(item: FailedItem) -> IncidentShape:
    return {
        "id": item.incident_id,
        "kind": item.kind,
        "message": item.message,
        "detail": item.detail,
        "item_kind": item.work,
        "item_id": item.id,
        "element_id": item.element_id,
        "process_instance_id": item.instance_id,
        "process_definition_key": item.definition_key,
        "business_key": item.business_key,
        "attempts": item.attempts,
        "max_attempts": item.max_attempts,
        "created_at": moment(item.created_at),
    }
