"""What stands in one instance, list by list, and why nothing is happening. For whoever may see the instance."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict
from uuid import UUID

from flask import Response, abort, jsonify

from engine.queries import instance as one
from engine.queries.api import api_instance
from engine.queries.instance_lists import Awaited, ScopedVariable, StandingToken, subscriptions_of, tokens_of, variables_of
from engine.queries.processes import ElementCounts, element_counts, source
from engine.queries.resting import Suspension, pause_of, standing, suspension
from engine.queries.rows import Connection, reading
from engine.queries.turn import turn_of
from engine.queries.why import Waiting, why
from webapp.api.blueprint import blueprint
from webapp.api.describing import Raw, Sent, operation, paged
from webapp.api.files import drawing_file, model_file
from webapp.api.reasons import ReasonShape, reason_shape
from webapp.api.schemas import Listed, Moment, words
from webapp.api.shapes import each, listed, shaped
from webapp.auth.identity import current_actor
from webapp.db import reader

WAITS_FOR = words("message", "signal")


class StandingTokenShape(TypedDict):
    """`calls`: the instance that it has called and waits for. `flow_id`: the flow that it came by."""

    id: UUID
    scope_id: UUID
    element_id: str
    flow_id: str | None
    status: str
    arrived_at: Moment
    calls: UUID | None


class InstanceVariableShape(TypedDict):
    """`scope_element`: the subprocess that it belongs to; null for the process itself."""

    name: str
    type: str
    value: Any
    revision: int
    scope_id: UUID
    scope_element: str | None


class AwaitedShape(TypedDict):
    id: UUID
    kind: Annotated[str, WAITS_FOR]
    token_id: UUID | None
    element_id: str
    message_name: str
    correlation_key: str
    created_at: Moment


class SuspensionShape(TypedDict):
    """`along`: it was suspended together with its version."""

    suspended_by: str
    suspended_by_name: str
    suspended_at: Moment
    reason: str
    along: bool


class WaitingTokenShape(TypedDict):
    """`reasons`: what it waits for; `besides`: what else could move it; `stuck`: nothing goes on here without a person."""

    token_id: UUID
    element_id: str
    stuck: bool
    reasons: list[ReasonShape]
    besides: list[ReasonShape]


class StandingShape(TypedDict):
    """`mark`: what is being done to the case as a whole. `suspension`: by whom and why it rests."""

    id: UUID
    status: str
    mark: Annotated[str, words("suspending", "suspended", "cancelling")] | None
    revision: int
    started_by: str
    started_by_name: str
    ended_by: str | None
    ended_by_name: str | None
    suspension: SuspensionShape | None
    waiting: list[WaitingTokenShape]


class ElementCountsShape(TypedDict):
    """`tokens` counts the failed ones too."""

    element_id: str
    tokens: int
    failed: int
    incidents: int


class InstanceElementsShape(TypedDict):
    """`flows`: sequence flow -> how often it was taken, from the last 5,000 events."""

    elements: list[ElementCountsShape]
    flows: dict[str, int]


@blueprint.get("/process-instances/<uuid:instance_id>/standing")
@operation(scope="read", answers=StandingShape)
def instance_standing(instance_id: UUID) -> Response:
    """Where an instance stands, and why nothing is happening: for each token what it waits for, the stuck ones first."""
    actor = current_actor()
    with reading(reader()) as conn:
        seen_or_404(conn, instance_id)
        found = one.instance(conn, instance_id, tenant_id=actor.tenant_id)
        assert found is not None, "it was just seen, in the same snapshot"
        rests = suspension(conn, found.root_id)
        waiting = _waiting(conn, found, actor.tenant_id)
    return jsonify(
        shaped(StandingShape, found, suspension=None if rests is None else suspension_shape(rests), waiting=each(waiting, waiting_token))
    )


def _waiting(conn: Connection, found: one.Instance, tenant_id: str) -> tuple[Waiting, ...]:
    work = one.work(conn, found.id)
    stopped = standing(conn, tenant_id=tenant_id) if work else []
    return why(
        one.tokens(conn, found.id),
        tasks=one.tasks(conn, found.id),
        work=work,
        subscriptions=one.subscriptions(conn, found.id, tenant_id=tenant_id),
        incidents=one.incidents(conn, found.id),
        turn=turn_of(conn, found.root_id) if any("exclusive" in row.held for row in work) else None,
        paused=lambda item: pause_of(stopped, item, found.definition_key),
    )


@blueprint.get("/process-instances/<uuid:instance_id>/tokens")
@operation(scope="read", query=paged(), answers=Listed[StandingTokenShape])
def instance_tokens(instance_id: UUID, asked: Sent) -> Response:
    """The tokens of an instance, oldest first."""
    with reading(reader()) as conn:
        seen_or_404(conn, instance_id)
        return listed(tokens_of(conn, instance_id, **asked), token_shape)


@blueprint.get("/process-instances/<uuid:instance_id>/variables")
@operation(scope="read", query=paged(), answers=Listed[InstanceVariableShape])
def instance_variables(instance_id: UUID, asked: Sent) -> Response:
    """The variables of an instance with their types: those of the process first, each scope's by name.

    Those of an instance that is over are in the instance itself, and in its history.
    """
    with reading(reader()) as conn:
        seen_or_404(conn, instance_id)
        return listed(variables_of(conn, instance_id, **asked), scoped_variable_shape)


@blueprint.get("/process-instances/<uuid:instance_id>/subscriptions")
@operation(scope="read", query=paged(), answers=Listed[AwaitedShape])
def instance_subscriptions(instance_id: UUID, asked: Sent) -> Response:
    """The messages and signals that an instance waits for, oldest first."""
    with reading(reader()) as conn:
        seen_or_404(conn, instance_id)
        return listed(subscriptions_of(conn, instance_id, **asked), awaited_shape)


@blueprint.get("/process-instances/<uuid:instance_id>/elements")
@operation(scope="read", answers=InstanceElementsShape)
def instance_elements(instance_id: UUID) -> Response:
    """What its diagram carries: tokens and incidents by element, and the sequence flows that were taken."""
    with reading(reader()) as conn:
        seen_or_404(conn, instance_id)
        counts = element_counts(conn, instance_id=instance_id)
        return jsonify(elements=each(counts, element_counts_shape), flows=one.flows_taken(conn, instance_id))


@blueprint.get("/process-instances/<uuid:instance_id>/xml")
@operation(scope="read", answers=Raw("application/octet-stream"))
def instance_xml(instance_id: UUID) -> Response:
    """The model that an instance runs by, as it was deployed."""
    with reading(reader()) as conn:
        found = source(conn, seen_or_404(conn, instance_id))
    return model_file(found)


@blueprint.get("/process-instances/<uuid:instance_id>/drawing")
@operation(scope="read", answers=Raw("application/octet-stream"))
def instance_drawing(instance_id: UUID) -> Response:
    """The same with a diagram: its own, or one that was laid out. 404 says why there is none."""
    with reading(reader()) as conn:
        definition_id = seen_or_404(conn, instance_id)
    return drawing_file(definition_id)


def seen_or_404(conn: Connection, instance_id: UUID) -> UUID:
    """The definition of an instance that this actor may see."""
    actor = current_actor()
    found = one.instance(conn, instance_id, tenant_id=actor.tenant_id)
    if found is None or api_instance(conn, actor, instance_id) is None:
        abort(404)
    return found.definition_id


def token_shape(token: StandingToken) -> StandingTokenShape:
    return shaped(StandingTokenShape, token)


def scoped_variable_shape(variable: ScopedVariable) -> InstanceVariableShape:
    return shaped(InstanceVariableShape, variable)


def awaited_shape(awaited: Awaited) -> AwaitedShape:
    return shaped(AwaitedShape, awaited)


def suspension_shape(found: Suspension) -> SuspensionShape:
    return shaped(SuspensionShape, found)


def element_counts_shape(found: ElementCounts) -> ElementCountsShape:
    return shaped(ElementCountsShape, found)


def waiting_token(found: Waiting) -> WaitingTokenShape:
    return {
        "token_id": found.token.id,
        "element_id": found.token.element_id,
        "stuck": found.stuck,
        "reasons": each(found.reasons, reason_shape),
        "besides": each(found.besides, reason_shape),
    }
