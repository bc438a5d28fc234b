"""Durable work one by one, leases and who holds them, and new attempts for much at once. For operators."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict
from uuid import UUID

from flask import Response, abort, jsonify

from engine.commands.leases import release_by_operator
from engine.commands.outcome import Refusal, Rejected
from engine.commands.retry import retry_item
from engine.core.lifecycle import WORK
from engine.queries.instance import item_history
from engine.queries.rows import reading
from engine.queries.work import (
    LateCompletion,
    LeaseRow,
    counts_by_status,
    failed_items,
    late_completions,
    lease_counts,
    leases,
    work_item,
    work_items,
)
from webapp.api.blueprint import blueprint
from webapp.api.bodies import Field, Wrong, accepting, kind_of, one_of, request_id, text, truth, uuid
from webapp.api.describing import Sent, operation, paged
from webapp.api.instances import EventShape, event_shape
from webapp.api.schemas import Items, Listed, Moment, words
from webapp.api.shapes import CASE_OVER, a_problem, each, listed, refused, shaped
from webapp.api.work import ATTEMPTS, ITEM_KINDS, IncidentShape, JobShape, RetriedShape, incident_shape, job_shape, retried
from webapp.auth.identity import current_actor
from webapp.db import command_connection, reader

LEASED = ("job", "external_task", "delivery")
MOST_AT_ONCE = 200


class LeaseShape(TypedDict):
    """`host`, `pid`, `heartbeat_at`: of the worker that holds it; null where a program outside does. `expires_at` may have passed."""

    work: Annotated[str, words(*LEASED)]
    id: UUID
    kind: str
    topic: str
    element_id: str | None
    process_instance_id: UUID | None
    business_key: str | None
    owner: str
    host: str | None
    pid: int | None
    heartbeat_at: Moment | None
    lease_number: int
    attempts: int
    max_attempts: int
    leased_at: Moment
    expires_at: Moment


class WorkCountsShape(TypedDict):
    """Each counted up to 1,000; 1,001 means more."""

    available: int
    leased: int
    failed: int


class LeaseCountsShape(TypedDict):
    """All of them, those that ended and were not taken back yet, those that end within ten seconds; each up to 1,001."""

    total: int
    ended: int
    soon: int


class ReleasedShape(TypedDict):
    """It is available again at once; failed, if that was its last attempt."""

    id: UUID
    outcome: Literal["released"]


class LateShape(TypedDict):
    """An answer that came after its lease was gone, and changed nothing."""

    at: Moment
    command: str
    item_id: UUID | None
    actor: str
    detail: dict[str, Any]


class RetryResultShape(TypedDict):
    """What came of one item: `reason` is null if it has new attempts, else why not."""

    item_kind: Annotated[str, words(*ITEM_KINDS)]
    item_id: UUID
    reason: str | None
    detail: str
    by: str | None


@accepting(
    {
        "type": "array",
        "minItems": 1,
        "maxItems": MOST_AT_ONCE,
        "items": {
            "type": "object",
            "properties": {"item_kind": {"type": "string", "enum": list(ITEM_KINDS)}, "item_id": {"type": "string", "format": "uuid"}},
            "required": ["item_kind", "item_id"],
            "additionalProperties": False,
        },
    }
)
def items(value: Any) -> list[tuple[str, UUID]]:
    """[{item_kind, item_id}], as incidents name them."""
    if not isinstance(value, list) or not 0 < len(value) <= MOST_AT_ONCE:
        raise Wrong(f"expected a list of 1 to {MOST_AT_ONCE} items, found {len(value) if isinstance(value, list) else kind_of(value)}")
    found = []
    for item in value:
        if not isinstance(item, dict) or set(item) != {"item_kind", "item_id"} or item["item_kind"] not in ITEM_KINDS:
            raise Wrong(f"expected objects of item_kind ({', '.join(ITEM_KINDS)}) and item_id")
        found.append((str(item["item_kind"]), uuid(item["item_id"])))
    return found


@blueprint.get("/external-tasks")
@operation(
    scope="read",
    needs=("see", "external_task"),
    query={
        "status": Field(one_of(*WORK), "", about="Without it: those that are not over."),
        "topic": Field(text(), ""),
        "due": Field(truth, False, about="Only what could be acquired now."),
        "process_instance_id": Field(uuid, None),
        **paged(),
    },
    answers=Listed[JobShape],
)
def list_external_tasks(asked: Sent) -> Response:
    """External tasks, newest first."""
    asked["instance_id"] = asked.pop("process_instance_id")
    with reading(reader()) as conn:
        return listed(work_items(conn, tenant_id=current_actor().tenant_id, kind="external", **asked), job_shape)


@blueprint.get("/jobs/counts")
@operation(scope="read", needs=("see", "job"), answers=WorkCountsShape)
def count_jobs() -> Response:
    """How many jobs and external tasks there are in each status that is not final."""
    with reading(reader()) as conn:
        return jsonify(counts_by_status(conn, tenant_id=current_actor().tenant_id))


@blueprint.get("/jobs/<uuid:item_id>")
@operation(scope="read", needs=("see", "job"), answers=JobShape)
def show_job(item_id: UUID) -> Response:
    """One job that is not over."""
    return _item("job", item_id)


@blueprint.get("/external-tasks/<uuid:item_id>")
@operation(scope="read", needs=("see", "external_task"), answers=JobShape)
def show_external_task(item_id: UUID) -> Response:
    """One external task that is not over."""
    return _item("external_task", item_id)


@blueprint.get("/jobs/<uuid:item_id>/history")
@operation(scope="read", needs=("see", "job"), answers=Items[EventShape])
def job_history(item_id: UUID) -> Response:
    """What happened to a job, attempt by attempt, newest first, up to 200; after its end too, as far back as the history goes."""
    return _past(item_id, "job")


@blueprint.get("/external-tasks/<uuid:item_id>/history")
@operation(scope="read", needs=("see", "external_task"), answers=Items[EventShape])
def external_task_history(item_id: UUID) -> Response:
    """What happened to an external task, attempt by attempt, newest first, up to 200; after its end too."""
    return _past(item_id, "external_task")


@blueprint.get("/incidents/<uuid:incident_id>")
@operation(scope="read", needs=("see", "incident"), answers=IncidentShape)
def show_incident(incident_id: UUID) -> Response:
    """One incident that is open."""
    with reading(reader()) as conn:
        found = failed_items(conn, tenant_id=current_actor().tenant_id, incident_id=incident_id, limit=1).items
    if not found:
        abort(404)
    return jsonify(incident_shape(found[0]))


@blueprint.post("/incidents/retry")
@operation(
    scope="operate",
    needs=("retry", "incident"),
    body={"items": Field(items, about="As incidents name them: `item_kind` and `item_id`; up to 200."), **ATTEMPTS},
    answers=Items[RetryResultShape],
)
def retry_many(sent: Sent) -> Response:
    """Give new attempts to much at once, each for itself: the answer says of every item what came of it."""
    key = request_id()
    results = []
    for place, (kind, item_id) in enumerate(sent["items"]):
        outcome = retry_item(
            command_connection(),
            kind,
            item_id,
            actor=current_actor(),
            attempts=sent["attempts"],
            request_id=None if key is None else f"{key}.{place}",
        )
        results.append(_result(kind, item_id, outcome if isinstance(outcome, Rejected) else None))
    return jsonify(items=results)


def _result(kind: str, item_id: UUID, rejected: Rejected | None) -> RetryResultShape:
    if rejected is None:
        return {"item_kind": kind, "item_id": item_id, "reason": None, "detail": "", "by": None}
    detail = rejected.detail or "; ".join(str(a_problem(found)) for found in rejected.problems)
    return {"item_kind": kind, "item_id": item_id, "reason": rejected.refusal.value, "detail": detail, "by": rejected.by}


@blueprint.post("/tokens/<uuid:token_id>/retry")
@operation(scope="operate", answers=RetriedShape, refusals=(Refusal.NOT_FAILED, *CASE_OVER))
def retry_token(token_id: UUID) -> Response:
    """Let a token that could not go on try again."""
    return retried("token", token_id, 1)


@blueprint.get("/leases")
@operation(
    scope="read",
    needs=("see", "lease"),
    query={
        "q": Field(text(), "", about="A business key, host, owner, element or instance id."),
        "work": Field(one_of(*LEASED), ""),
        "owner": Field(text(), "", about="A worker's id, or what a program calls itself."),
        "expired": Field(truth, False, about="Only those that ended and were not taken back yet."),
        **paged(),
    },
    answers=Listed[LeaseShape],
)
def list_leases(asked: Sent) -> Response:
    """Everything that is leased: what ended first, then what ends soonest."""
    with reading(reader()) as conn:
        return listed(leases(conn, tenant_id=current_actor().tenant_id, **asked), lease_shape)


@blueprint.get("/leases/counts")
@operation(scope="read", needs=("see", "lease"), answers=LeaseCountsShape)
def count_leases() -> Response:
    """How many leases there are."""
    with reading(reader()) as conn:
        return jsonify(shaped(LeaseCountsShape, lease_counts(conn, tenant_id=current_actor().tenant_id)))


@blueprint.post("/leases/<work>/<uuid:item_id>/release")
@operation(
    scope="operate",
    body={"reason": Field(text(longest=500, empty=True), "", example="Its worker hangs.")},
    answers=ReleasedShape,
    refusals=(Refusal.NOT_LEASED,),
)
def release_lease(work: str, item_id: UUID, sent: Sent) -> Response:
    """End a lease now; `work` is job, external_task or delivery.

    Its attempt stays spent; whoever holds it is refused when they answer.
    """
    if work not in LEASED:
        abort(404)
    outcome = release_by_operator(
        command_connection(), work, item_id, actor=current_actor(), reason=sent["reason"], request_id=request_id()
    )
    if isinstance(outcome, Rejected):
        return refused(outcome)
    return jsonify(id=item_id, outcome="released")


@blueprint.get("/late-completions")
@operation(scope="read", needs=("see", "lease"), query=paged(), answers=Listed[LateShape])
def list_late_completions(asked: Sent) -> Response:
    """Completions, failures and renewals of the last day that came after their lease was gone, newest first."""
    with reading(reader()) as conn:
        return listed(late_completions(conn, tenant_id=current_actor().tenant_id, **asked), late_shape)


def _item(work: str, item_id: UUID) -> Response:
    with reading(reader()) as conn:
        found = work_item(conn, work, item_id, tenant_id=current_actor().tenant_id)
    if found is None:
        abort(404)
    return jsonify(job_shape(found))


def _past(item_id: UUID, work: str) -> Response:
    """404 for an item that the history does not know as such."""
    with reading(reader()) as conn:
        found = item_history(conn, item_id, tenant_id=current_actor().tenant_id, limit=200)
    if not found or any(event.kind.startswith(_OTHERS[work]) for event in found):
        abort(404)
    return jsonify(items=each(found, event_shape))


# An id is that of one thing, so one event of another kind says that it is not the one asked for.
_OTHERS = {"job": ("external_task_", "delivery_", "task_"), "external_task": ("job_", "delivery_", "task_")}


def lease_shape(row: LeaseRow) -> LeaseShape:
    return shaped(LeaseShape, row, process_instance_id=row.instance_id, lease_number=row.number)


def late_shape(row: LateCompletion) -> LateShape:
    return shaped(LateShape, row)
