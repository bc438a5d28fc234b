"""Durable work and what is stuck: jobs, incidents, and the retry that a person gives. For operators."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask import Response, abort, jsonify

from engine.commands.may import may
from engine.commands.outcome import Rejected
from engine.commands.retry import retry_item
from engine.core.lifecycle import WORK
from engine.queries.alarms import alarms
from engine.queries.rows import reading
from engine.queries.work import JOB_KINDS, FailedItem, WorkItem, failed_items, work_items
from webapp.api.blueprint import blueprint
from webapp.api.bodies import Field, json_body, one_of, query, request_id, text, truth, uuid, whole
from webapp.api.shapes import listed, moment, refused
from webapp.auth.identity import current_actor
from webapp.db import command_connection, reader


@blueprint.get("/jobs")
def list_jobs() -> Response:
    """Jobs and external tasks, newest first."""
    actor = current_actor()
    if not may(actor, "see", "job"):
        abort(403)
    asked = query(
        status=Field(one_of(*WORK), ""),
        kind=Field(one_of(*JOB_KINDS, "external"), ""),
        topic=Field(text(), ""),
        due=Field(truth, False),
        process_instance_id=Field(uuid, None),
        cursor=Field(text(), None),
        limit=Field(whole(least=1, most=200), 50),
    )
    asked["instance_id"] = asked.pop("process_instance_id")
    with reading(reader()) as conn:
        page = work_items(conn, tenant_id=actor.tenant_id, **asked)
    return listed(page, job_shape)


@blueprint.get("/incidents")
def list_incidents() -> Response:
    """What waits for a person, newest first. `item_kind` and `item_id` say what a retry is asked for."""
    actor = current_actor()
    if not may(actor, "see", "incident"):
        abort(403)
    asked = query(
        process_definition_key=Field(text(), ""),
        process_instance_id=Field(uuid, None),
        cursor=Field(text(), None),
        limit=Field(whole(least=1, most=200), 50),
    )
    key, instance_id = asked.pop("process_definition_key"), asked.pop("process_instance_id")
    with reading(reader()) as conn:
        page = failed_items(conn, tenant_id=actor.tenant_id, key=key, instance_id=instance_id, **asked)
    return listed(page, incident_shape)


@blueprint.get("/alarms")
def list_alarms() -> Response:
    """What the overview shows above its numbers: about the whole database, whoever's cases they are."""
    if not may(current_actor(), "see", "job"):
        abort(403)
    with reading(reader()) as conn:
        found = alarms(conn)
    return jsonify(items=[{"name": alarm.name, "about": alarm.about, "seconds": alarm.seconds} for alarm in found])


@blueprint.post("/jobs/<uuid:item_id>/retry")
def retry_job(item_id: UUID) -> Response:
    return _retry("job", item_id)


@blueprint.post("/external-tasks/<uuid:item_id>/retry")
def retry_external_task(item_id: UUID) -> Response:
    return _retry("external_task", item_id)


def _retry(kind: str, item_id: UUID) -> Response:
    sent = json_body(attempts=Field(whole(least=1, most=100), 1))
    outcome = retry_item(command_connection(), kind, item_id, actor=current_actor(), attempts=sent["attempts"], request_id=request_id())
    if isinstance(outcome, Rejected):
        return refused(outcome)
    return jsonify(id=outcome.item_id, status="available", attempts_left=outcome.attempts_left)


def job_shape(item: WorkItem) -> dict[str, Any]:
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


def incident_shape(item: FailedItem) -> dict[str, Any]:
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
