"""Process instances: started, listed, shown with what stands in them, cancelled; and their history."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict
from uuid import UUID

from flask import Response, abort, jsonify, url_for

from engine.commands.cancel import cancel_instance
from engine.commands.outcome import Refusal, Rejected
from engine.commands.start import start_instance
from engine.core.lifecycle import INSTANCE
from engine.queries.api import ApiInstance, InstanceListFilter, api_details, api_history, api_instance, api_instances, count_api_instances
from engine.queries.instance import Event, SubscriptionRow, subscriptions
from engine.queries.near_misses import NearMessage, near_of_waiting
from engine.queries.rows import reading
from webapp.api.blueprint import blueprint
from webapp.api.bodies import Field, one_of, request_id, text, truth, uuid, variables, whole
from webapp.api.describing import Sent, operation, paged
from webapp.api.schemas import Items, Listed, Moment, words
from webapp.api.shapes import listed, moment, refused
from webapp.auth.identity import current_actor
from webapp.db import command_connection, reader


class InstanceShape(TypedDict):
    id: UUID
    root_id: UUID
    parent_id: UUID | None
    definition_key: str
    version: int
    status: Annotated[str, words(*INSTANCE)]
    business_key: str | None
    started_at: Moment
    ended_at: Moment | None


class CountShape(TypedDict):
    """Counted up to 1,000; 1,001 means more."""

    count: int


class TokenShape(TypedDict):
    element_id: str
    status: str


class InstanceIncidentShape(TypedDict):
    id: UUID
    kind: str
    element_id: str | None
    message: str
    created_at: Moment


class InstanceDetailShape(InstanceShape):
    """`variables`: of the process, by name; after the end as they were then. `called`: the instances that it called."""

    variables: dict[str, Any]
    tokens: list[TokenShape]
    incidents: list[InstanceIncidentShape]
    called: list[UUID]


class EventShape(TypedDict):
    id: int
    at: Moment
    kind: str
    element_id: str | None
    actor: str
    item_id: UUID | None
    data: dict[str, Any]


class NearMessageShape(TypedDict):
    """`says` is a sentence that tells what differs."""

    reason: Annotated[str, words("key", "name", "expired")]
    says: str
    message_id: UUID
    message_name: str
    correlation_key: str
    published_at: Moment
    expires_at: Moment


class WaitingShape(TypedDict):
    element_id: str | None
    message_name: str
    correlation_key: str
    since: Moment
    near_misses: list[NearMessageShape]


@blueprint.post("/process-definitions/<key>/start")
@operation(
    scope="start",
    body={
        "variables": Field(variables, {}, example={"amount": 120.5}),
        "business_key": Field(text(nullable=True), None, example="INV-2041"),
        "version": Field(whole(least=1, most=2**31 - 1, nullable=True), None, about="One that is not the latest."),
    },
    answers={201: InstanceDetailShape},
    refusals=(Refusal.DEFINITION_SUSPENDED, Refusal.DEFINITION_DELETING),
)
def start(key: str, sent: Sent) -> Response:
    """Start an instance of a process."""
    outcome = start_instance(command_connection(), key, actor=current_actor(), request_id=request_id(), **sent)
    if isinstance(outcome, Rejected):
        return refused(outcome)
    response = answer_with(outcome.instance_id)
    response.status_code = 201
    response.headers["Location"] = url_for("api.show_instance", instance_id=outcome.instance_id)
    return response


FILTERS = {
    "status": Field(one_of(*INSTANCE), ""),
    "process_definition_key": Field(text(), None),
    "version": Field(whole(least=1, most=2**31 - 1), None),
    "business_key": Field(text(), None),
    "q": Field(text(), "", about="An instance id, or the beginning of a business key."),
    "incidents": Field(truth, False, about="Only those with one open."),
    "element_id": Field(text(), "", about="Only running ones that stand there."),
    "parent_id": Field(uuid, None, about="Only those that this instance called."),
}


@blueprint.get("/process-instances")
@operation(scope="read", query={**FILTERS, **paged()}, answers=Listed[InstanceShape])
def list_instances(asked: Sent) -> Response:
    """The instances that you may see, newest first."""
    cursor, limit = asked.pop("cursor"), asked.pop("limit")
    with reading(reader()) as conn:
        page = api_instances(conn, current_actor(), InstanceListFilter(**asked), cursor=cursor, limit=limit)
    return listed(page, instance_shape)


@blueprint.get("/process-instances/count")
@operation(scope="read", query=FILTERS, answers=CountShape)
def count_instances(asked: Sent) -> Response:
    """How many instances that you may see there are, with the same filters."""
    with reading(reader()) as conn:
        return jsonify(count=count_api_instances(conn, current_actor(), InstanceListFilter(**asked)))


@blueprint.get("/process-instances/<uuid:instance_id>")
@operation(scope="read", answers=InstanceDetailShape)
def show_instance(instance_id: UUID) -> Response:
    """One instance with what stands in it."""
    return answer_with(instance_id)


@blueprint.get("/process-instances/<uuid:instance_id>/history")
@operation(scope="read", query=paged(most=1000, usual=200), answers=Listed[EventShape])
def history(instance_id: UUID, asked: Sent) -> Response:
    """What happened in an instance, oldest first."""
    actor = current_actor()
    with reading(reader()) as conn:
        if api_instance(conn, actor, instance_id) is None:
            abort(404)
        page = api_history(conn, instance_id, tenant_id=actor.tenant_id, **asked)
    return listed(page, event_shape)


@blueprint.get("/process-instances/<uuid:instance_id>/near-misses")
@operation(scope="read", answers=Items[WaitingShape])
def near_misses_of_instance(instance_id: UUID) -> Response:
    """Each message that an instance waits for, with the messages that nearly fit, the nearest first."""
    actor = current_actor()
    with reading(reader()) as conn:
        if api_instance(conn, actor, instance_id) is None:
            abort(404)
        waiting = subscriptions(conn, instance_id, tenant_id=actor.tenant_id)
        found = near_of_waiting(conn, waiting, tenant_id=actor.tenant_id)
    return jsonify(items=[waiting_shape(row, near) for row, near in found])


@blueprint.post("/process-instances/<uuid:instance_id>/cancel")
@operation(
    scope="operate",
    of="show_instance",
    body={"reason": Field(text(longest=1000, empty=True), "", example="Ordered twice.")},
    answers=InstanceDetailShape,
    refusals=(Refusal.INSTANCE_ENDED, Refusal.ALREADY_CANCELLED, Refusal.INSTANCE_CANCELLING, Refusal.CALLED_INSTANCE),
)
def cancel(instance_id: UUID, sent: Sent) -> Response:
    """Cancel an instance and all that it called."""
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


def instance_shape(found: ApiInstance) -> InstanceShape:
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


def waiting_shape(waits: SubscriptionRow, near: tuple[NearMessage, ...]) -> WaitingShape:
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


def event_shape(event: Event) -> EventShape:
    return {
        "id": event.id,
        "at": moment(event.at),
        "kind": event.kind,
        "element_id": event.element_id,
        "actor": event.actor,
        "item_id": event.item_id,
        "data": event.data,
    }
