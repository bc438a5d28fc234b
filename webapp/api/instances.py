"""Process instances: started, listed, shown with what stands in them, cancelled; and their history."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask import Response, abort, jsonify, url_for

from engine.commands.cancel import cancel_instance
from engine.commands.outcome import Rejected
from engine.commands.start import start_instance
from engine.core.lifecycle import INSTANCE
from engine.queries.api import ApiInstance, InstanceListFilter, api_details, api_history, api_instance, api_instances
from engine.queries.instance import Event, SubscriptionRow, subscriptions
from engine.queries.near_misses import NearMessage, near_of_waiting
from engine.queries.rows import reading
from webapp.api.blueprint import blueprint
from webapp.api.bodies import Field, json_body, one_of, query, request_id, text, variables, whole
from webapp.api.shapes import listed, moment, refused
from webapp.auth.identity import current_actor
from webapp.db import command_connection, reader


@blueprint.post("/process-definitions/<key>/start")
def start(key: str) -> Response:
    """201 with the new instance. `version` names one that is not the latest."""
    sent = json_body(
        variables=Field(variables, {}),
        business_key=Field(text(nullable=True), None),
        version=Field(whole(least=1, most=2**31 - 1, nullable=True), None),
    )
    outcome = start_instance(command_connection(), key, actor=current_actor(), request_id=request_id(), **sent)
    if isinstance(outcome, Rejected):
        return refused(outcome)
    response = answer_with(outcome.instance_id)
    response.status_code = 201
    response.headers["Location"] = url_for("api.show_instance", instance_id=outcome.instance_id)
    return response


@blueprint.get("/process-instances")
def list_instances() -> Response:
    asked = query(
        status=Field(one_of(*INSTANCE), ""),
        process_definition_key=Field(text(), None),
        business_key=Field(text(), None),
        cursor=Field(text(), None),
        limit=Field(whole(least=1, most=200), 50),
    )
    cursor, limit = asked.pop("cursor"), asked.pop("limit")
    with reading(reader()) as conn:
        page = api_instances(conn, current_actor(), InstanceListFilter(**asked), cursor=cursor, limit=limit)
    return listed(page, instance_shape)


@blueprint.get("/process-instances/<uuid:instance_id>")
def show_instance(instance_id: UUID) -> Response:
    return answer_with(instance_id)


@blueprint.get("/process-instances/<uuid:instance_id>/history")
def history(instance_id: UUID) -> Response:
    asked = query(cursor=Field(text(), None), limit=Field(whole(least=1, most=1000), 200))
    actor = current_actor()
    with reading(reader()) as conn:
        if api_instance(conn, actor, instance_id) is None:
            abort(404)
        page = api_history(conn, instance_id, tenant_id=actor.tenant_id, **asked)
    return listed(page, event_shape)


@blueprint.get("/process-instances/<uuid:instance_id>/near-misses")
def near_misses_of_instance(instance_id: UUID) -> Response:
    """Each message that it waits for, with the messages that nearly fit, the nearest first."""
    query()
    actor = current_actor()
    with reading(reader()) as conn:
        if api_instance(conn, actor, instance_id) is None:
            abort(404)
        waiting = subscriptions(conn, instance_id, tenant_id=actor.tenant_id)
        found = near_of_waiting(conn, waiting, tenant_id=actor.tenant_id)
    return jsonify(items=[waiting_shape(row, near) for row, near in found])


@blueprint.post("/process-instances/<uuid:instance_id>/cancel")
def cancel(instance_id: UUID) -> Response:
    sent = json_body(reason=Field(text(longest=1000, empty=True), ""))
    outcome = cancel_instance(command_connection(), instance_id, actor=current_actor(), reason=sent["reason"], request_id=request_id())
    return refused(outcome) if isinstance(outcome, Rejected) else answer_with(instance_id)


def answer_with(instance_id: UUID) -> Response:
    """The instance with what stands in it, if this actor may see it."""
    with reading(reader()) as conn:
        found = api_instance(conn, current_actor(), instance_id)
        if found is None:
            abort(404)
        details = api_details(conn, instance_id)
    variables = details.variables if found.final_variables is None else plain(found.final_variables)
    return jsonify(
        instance_shape(found) | {"variables": variables, "tokens": details.tokens, "incidents": details.incidents, "called": details.called}
    )


def plain(stored: dict[str, Any]) -> dict[str, Any]:
    """Stored variables, name -> {type, value}, as name -> value."""
    return {name: variable["value"] for name, variable in stored.items()}


def instance_shape(found: ApiInstance) -> dict[str, Any]:
    return {
        "id": found.id,
        "root_id": found.root_id,
        "parent_id": found.parent_id,
        "definition_key": found.definition_key,
        "version": found.version,
        "status": found.status,
        "business_key": found.business_key,
        "started_at": moment(found.started_at),
        "ended_at": moment(found.ended_at),
    }


def waiting_shape(waits: SubscriptionRow, near: tuple[NearMessage, ...]) -> dict[str, Any]:
    return {
        "element_id": waits.element_id,
        "message_name": waits.message_name,
        "correlation_key": waits.correlation_key,
        "since": moment(waits.created_at),
        "near_misses": [
            {
                "reason": each.reason,
                "says": each.says,
                "message_id": each.message_id,
                "message_name": each.message_name,
                "correlation_key": each.correlation_key,
                "published_at": moment(each.published_at),
                "expires_at": moment(each.expires_at),
            }
            for each in near
        ],
    }


def event_shape(event: Event) -> dict[str, Any]:
    return {
        "id": event.id,
        "at": moment(event.at),
        "kind": event.kind,
        "element_id": event.element_id,
        "actor": event.actor,
        "item_id": event.item_id,
        "data": event.data,
    }
