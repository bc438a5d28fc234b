"""One version of a process: what its page shows, its file and drawing, its schedule; the form that it starts with; deployments."""

from __future__ import annotations

from typing import Annotated, TypedDict
from uuid import UUID

from flask import Response, abort, jsonify

from engine.queries.deployments import DeploymentRow, deployment, deployments
from engine.queries.forms import DeployedFormRow
from engine.queries.processes import DeployedRow, element_counts, source
from engine.queries.resting import suspension
from engine.queries.rows import reading
from engine.queries.schedules import ProcessSchedule, ScheduleRow, schedules, schedules_of_all
from webapp.api.blueprint import blueprint
from webapp.api.bodies import Field, text
from webapp.api.describing import Raw, Sent, operation, paged
from webapp.api.files import drawing_file, model_file
from webapp.api.schemas import Items, Listed, Moment, words
from webapp.api.shapes import ModelProblemShape, each, listed, model_problem, shaped
from webapp.api.standing import SuspensionShape, suspension_shape
from webapp.api.tasks import TaskFormShape, form_shape
from webapp.auth.identity import current_actor
from webapp.db import reader
from webapp.operations.deploy import brought_by
from webapp.operations.model_text import Step, outline
from webapp.operations.words import model_of
from webapp.start.views import load_start
from webapp.versions import version_or_404

STATUSES = ("active", "suspended", "deleting")


class VersionShape(TypedDict):
    """`running`, `tasks`, `incidents`: counted up to 10,000. `has_none_start`: it can be started by hand."""

    id: UUID
    key: str
    version: int
    name: str
    status: Annotated[str, words(*STATUSES)]
    latest: bool
    versions: int
    resource_name: str
    documentation: str
    has_none_start: bool
    deployed_by: str
    deployed_at: Moment
    running: int
    tasks: int
    incidents: int
    suspension: SuspensionShape | None


class ElementShape(TypedDict):
    """One element in words, with what stands there now. `kind`: in words. `depth`: how deep in subprocesses."""

    id: str
    name: str
    kind: str
    depth: int
    attached_to: str | None
    tokens: int
    failed: int
    incidents: int


class ScheduleShape(TypedDict):
    """A start timer that is to come. `missed`: occurrences that passed without a start before this one. `last_…`: of the last start."""

    job_id: UUID
    element_id: str
    status: str
    due_at: Moment
    missed: int
    last_due_at: Moment | None
    last_fired_at: Moment | None
    last_instance_id: UUID | None


class ProcessScheduleShape(ScheduleShape):
    """`held`: why it does not start although it is due."""

    key: str
    version: int
    held: list[str]


class DeploymentRowShape(TypedDict):
    """`processes`, `decisions`, `forms`: how many versions it brought."""

    id: UUID
    name: str
    deployed_by: str
    deployed_by_name: str
    deployed_at: Moment
    processes: int
    decisions: int
    forms: int


class BroughtShape(TypedDict):
    id: UUID
    key: str
    version: int
    name: str
    resource_name: str


class DeploymentDetailShape(TypedDict):
    """What one deployment brought; what was unchanged is not among it. `warnings`: as things are deployed now."""

    id: UUID
    name: str
    deployed_by: str
    deployed_at: Moment
    definitions: list[BroughtShape]
    decisions: list[BroughtShape]
    forms: list[BroughtShape]
    warnings: list[ModelProblemShape]


@blueprint.get("/process-definitions/<key>/form")
@operation(scope="start", answers=TaskFormShape)
def show_start_form(key: str) -> Response:
    """The fields that the page of a process asks for when it is started by hand, and which deployed form they are of."""
    found = load_start(key)
    return jsonify(form_shape(found.deployed, found.fields))


@blueprint.get("/process-definitions/<key>/versions/<int:version>")
@operation(scope="read", needs=("see", "definition"), answers=VersionShape)
def show_version(key: str, version: int) -> Response:
    """One version of a process with how much of it runs, waits and is stuck."""
    row = version_or_404(key, version)
    with reading(reader()) as conn:
        stop = suspension(conn, row.id) if row.status == "suspended" else None
    return jsonify(shaped(VersionShape, row, deployed_at=row.created_at, suspension=stop and suspension_shape(stop)))


@blueprint.get("/process-definitions/<key>/versions/<int:version>/elements")
@operation(scope="read", needs=("see", "definition"), answers=Items[ElementShape])
def version_elements(key: str, version: int) -> Response:
    """Every element of a version in the order in which a token meets it, with what stands there now.

    Empty for a model that today's rules refuse.
    """
    row = version_or_404(key, version)
    with reading(reader()) as conn:
        counted = {found.element_id: found for found in element_counts(conn, definition_id=row.id)}
    model = model_of(row.id)

    def element(step: Step) -> ElementShape:
        here = counted.get(step.id)
        counts = {name: getattr(here, name) if here else 0 for name in ("tokens", "failed", "incidents")}
        return shaped(ElementShape, step, **counts)

    return jsonify(items=each(outline(model), element) if model else [])


@blueprint.get("/process-definitions/<key>/versions/<int:version>/xml")
@operation(scope="read", needs=("see", "definition"), answers=Raw("application/octet-stream"))
def version_xml(key: str, version: int) -> Response:
    """The model of a version, as it was deployed."""
    row = version_or_404(key, version)
    with reading(reader()) as conn:
        return model_file(source(conn, row.id))


@blueprint.get("/process-definitions/<key>/versions/<int:version>/drawing")
@operation(scope="read", needs=("see", "definition"), answers=Raw("application/octet-stream"))
def version_drawing(key: str, version: int) -> Response:
    """The same with a diagram: its own, or one that was laid out. 404 says why there is none."""
    return drawing_file(version_or_404(key, version).id)


@blueprint.get("/process-definitions/<key>/versions/<int:version>/schedules")
@operation(scope="read", needs=("see", "definition"), answers=Items[ScheduleShape])
def version_schedules(key: str, version: int) -> Response:
    """When a version starts by itself: its start timers that are to come, the next first."""
    row = version_or_404(key, version)
    with reading(reader()) as conn:
        return jsonify(items=each(schedules(conn, row.id), schedule_shape))


@blueprint.get("/schedules")
@operation(
    scope="read",
    needs=("see", "definition"),
    query={"process_definition_key": Field(text(), None), **paged()},
    answers=Listed[ProcessScheduleShape],
)
def list_schedules(asked: Sent) -> Response:
    """The start timers of all processes that are to come, the next first. What waits inside an instance is among the jobs."""
    key = asked.pop("process_definition_key")
    with reading(reader()) as conn:
        return listed(schedules_of_all(conn, tenant_id=current_actor().tenant_id, key=key, **asked), process_schedule_shape)


@blueprint.get("/deployments")
@operation(scope="read", needs=("see", "deployment"), query=paged(), answers=Listed[DeploymentRowShape])
def list_deployments(asked: Sent) -> Response:
    """Who deployed what and when, newest first."""
    with reading(reader()) as conn:
        return listed(deployments(conn, tenant_id=current_actor().tenant_id, **asked), deployment_row_shape)


@blueprint.get("/deployments/<uuid:deployment_id>")
@operation(scope="read", needs=("see", "deployment"), answers=DeploymentDetailShape)
def show_deployment(deployment_id: UUID) -> Response:
    """What one deployment brought, and what its author should know."""
    with reading(reader()) as conn:
        found = deployment(conn, deployment_id, tenant_id=current_actor().tenant_id)
    if found is None:
        abort(404)
    brought = brought_by(deployment_id)
    return jsonify(
        shaped(
            DeploymentDetailShape,
            found,
            definitions=each(brought.rows, brought_shape),
            decisions=each(brought.tables, brought_shape),
            forms=each(brought.forms, brought_shape),
            warnings=[model_problem(warning) for _, warning in brought.warnings],
        )
    )


def schedule_shape(row: ScheduleRow) -> ScheduleShape:
    return shaped(ScheduleShape, row)


def process_schedule_shape(row: ProcessSchedule) -> ProcessScheduleShape:
    return shaped(ProcessScheduleShape, row)


def deployment_row_shape(row: DeploymentRow) -> DeploymentRowShape:
    return shaped(DeploymentRowShape, row)


def brought_shape(row: DeployedRow | DeployedFormRow) -> BroughtShape:
    return shaped(BroughtShape, row)
