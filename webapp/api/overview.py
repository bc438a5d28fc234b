"""What operations show of the whole: the numbers of the overview, what is due, the last day, workers, the audit, failed sign-ins."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict
from uuid import UUID

from flask import Response, abort, jsonify

from engine.queries.alarms import history_taken
from engine.queries.audit import AuditFilter, AuditRow, audit
from engine.queries.crew import ExternalWorkerRow, FailedLogins, WorkerRow, external_workers, failed_logins, worker, workers
from engine.queries.due import Lane
from engine.queries.overview import Bucket, overview, throughput
from engine.queries.resting import Suspended, suspended
from engine.queries.rows import reading
from webapp.api.blueprint import blueprint
from webapp.api.bodies import Field, instant, text, truth, whole
from webapp.api.describing import Sent, operation, paged
from webapp.api.schemas import Items, Listed, Moment, words
from webapp.api.shapes import each, listed, shaped
from webapp.auth.identity import current_actor
from webapp.db import reader


class LaneShape(TypedDict):
    """What is due and not leased, by kind and topic. `oldest_seconds`: how long the first of it has waited."""

    work: Annotated[str, words("job", "external_task", "delivery")]
    kind: str
    topic: str
    due: int
    oldest_at: Moment
    oldest_seconds: float


class OverviewShape(TypedDict):
    """The numbers, each counted up to 10,000. `history_bytes`: what the history takes, `history_since`: its first month."""

    running: int
    started_today: int
    tasks: int
    tasks_overdue: int
    leased: int
    expired: int
    expired_oldest_seconds: float | None
    failed: int
    incidents: int
    incident_instances: int
    late_refusals: int
    deliveries_waiting: int
    workers: int
    workers_alive: int
    failed_logins: int
    due: int
    oldest_due_seconds: float | None
    outbox_lag_seconds: float | None
    history_bytes: int
    history_since: str
    now: Moment
    lanes: list[LaneShape]


class SliceShape(TypedDict):
    """Steps that ended well, attempts that failed and are retried, items that used up all attempts."""

    at: Moment
    done: int
    retried: int
    exhausted: int


class WorkerShape(TypedDict):
    """One start of a worker. `kinds`: what it takes; `leases`: how much it holds; `longest_gap`: seconds that it hung, at most."""

    id: UUID
    host: str
    pid: int
    version: str
    started_at: Moment
    heartbeat_at: Moment
    age_seconds: float
    last_acquired_at: Moment | None
    slots: int
    busy: int
    kinds: Any
    draining: bool
    stopped_at: Moment | None
    longest_gap: float
    leases: int


class ExternalWorkerShape(TypedDict):
    """A name under which programs ask for external tasks. `present`: addresses of it within five minutes; two are two programs."""

    worker_id: str
    addresses: list[str]
    present: int
    first_seen_at: Moment
    last_seen_at: Moment
    leases: int


class AuditShape(TypedDict):
    """What somebody did to the work of others. `detail`: what the command found worth keeping."""

    id: int
    at: Moment
    actor: str
    actor_name: str
    action: str
    object_kind: str
    object_id: str
    reason: str
    detail: dict[str, Any]


class FailedSignInsShape(TypedDict):
    """Wrong passwords for one name from one address."""

    username: str
    address: str
    tries: int
    first_at: Moment
    last_at: Moment


class SuspendedShape(TypedDict):
    """A suspended case, or version with the number of its cases that went along (counted up to 1,000)."""

    id: UUID
    kind: Annotated[str, words("instance", "definition")]
    suspended_by_name: str
    suspended_at: Moment
    reason: str
    process_definition_key: str
    version: int
    business_key: str | None
    mark: str | None
    instances: int


@blueprint.get("/overview")
@operation(scope="read", needs=("see", "overview"), answers=OverviewShape)
def show_overview() -> Response:
    """Every number of the overview of operations, and what is due, the longest waiting first."""
    with reading(reader()) as conn:
        found = overview(conn, tenant_id=current_actor().tenant_id)
        history = history_taken(conn)
    own = ("due", "oldest_due_seconds", "outbox_lag_seconds")
    more = {name: getattr(found, name) for name in own} | {"history_bytes": history.bytes, "history_since": history.since}
    return jsonify(shaped(OverviewShape, found.numbers, **more, lanes=each(found.lanes, lane_shape)))


@blueprint.get("/overview/throughput")
@operation(
    scope="read",
    needs=("see", "overview"),
    query={
        "hours": Field(whole(least=1, most=24 * 7), 24, about="Back from now."),
        "slices": Field(whole(least=1, most=200), 48, about="Into how many equal parts."),
    },
    answers=Items[SliceShape],
)
def show_throughput(asked: Sent) -> Response:
    """What was done and what failed in the last hours, slice by slice, oldest first, empty ones included."""
    with reading(reader()) as conn:
        return jsonify(items=each(throughput(conn, tenant_id=current_actor().tenant_id, **asked), slice_shape))


@blueprint.get("/workers")
@operation(
    scope="read",
    needs=("see", "worker"),
    query={"stopped": Field(truth, False, about="Those that stopped within a week, too.")},
    answers=Items[WorkerShape],
)
def list_workers(asked: Sent) -> Response:
    """The workers, the silent ones first; up to 200."""
    with reading(reader()) as conn:
        return jsonify(items=each(workers(conn, stopped=asked["stopped"]), worker_shape))


@blueprint.get("/workers/<uuid:worker_id>")
@operation(scope="read", needs=("see", "worker"), answers=WorkerShape)
def show_worker(worker_id: UUID) -> Response:
    """One start of a worker."""
    with reading(reader()) as conn:
        found = worker(conn, worker_id)
    if found is None:
        abort(404)
    return jsonify(worker_shape(found))


@blueprint.get("/external-workers")
@operation(scope="read", needs=("see", "worker"), answers=Items[ExternalWorkerShape])
def list_external_workers() -> Response:
    """The programs outside that asked for external tasks within a day: names that several addresses share first; up to 200."""
    with reading(reader()) as conn:
        return jsonify(items=each(external_workers(conn, tenant_id=current_actor().tenant_id), external_worker_shape))


@blueprint.get("/audit")
@operation(
    scope="read",
    needs=("see", "audit"),
    query={
        "actor": Field(text(), None),
        "action": Field(text(), None, example="cancel"),
        "object_kind": Field(text(), None, example="instance"),
        "object_id": Field(text(), None),
        "since": Field(instant, None),
        "until": Field(instant, None, about="Not counting this moment."),
        **paged(),
    },
    answers=Listed[AuditShape],
)
def list_audit(asked: Sent) -> Response:
    """What people did to the work of others, and to definitions, newest first.

    What was done to people and keys only administrators see.
    """
    cursor, limit = asked.pop("cursor"), asked.pop("limit")
    with reading(reader()) as conn:
        return listed(audit(conn, current_actor(), AuditFilter(**asked), cursor=cursor, limit=limit), audit_shape)


@blueprint.get("/failed-sign-ins")
@operation(scope="read", needs=("see", "sign_in"), answers=Items[FailedSignInsShape])
def list_failed_sign_ins() -> Response:
    """Wrong passwords of the last day, by name and address, the latest first; up to 200."""
    with reading(reader()) as conn:
        return jsonify(items=each(failed_logins(conn, tenant_id=current_actor().tenant_id, limit=200), failed_sign_ins_shape))


@blueprint.get("/suspensions")
@operation(scope="read", needs=("see", "work"), answers=Items[SuspendedShape])
def list_suspensions() -> Response:
    """The cases and versions that people suspended, newest first; up to 200."""
    with reading(reader()) as conn:
        return jsonify(items=each(suspended(conn, tenant_id=current_actor().tenant_id), suspended_shape))


def lane_shape(lane: Lane) -> LaneShape:
    return shaped(LaneShape, lane)


def slice_shape(bucket: Bucket) -> SliceShape:
    return shaped(SliceShape, bucket)


def worker_shape(row: WorkerRow) -> WorkerShape:
    return shaped(WorkerShape, row)


def external_worker_shape(row: ExternalWorkerRow) -> ExternalWorkerShape:
    return shaped(ExternalWorkerShape, row)


def audit_shape(row: AuditRow) -> AuditShape:
    return shaped(AuditShape, row)


def failed_sign_ins_shape(row: FailedLogins) -> FailedSignInsShape:
    return shaped(FailedSignInsShape, row, username=row.username_key)


def suspended_shape(row: Suspended) -> SuspendedShape:
    return shaped(SuspendedShape, row, id=row.object_id, process_definition_key=row.key, instances=min(row.cases, 1_000))
