"""User tasks: lists, one, and what may be done to one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypedDict
from uuid import UUID

from flask import Response, abort, jsonify

from engine.bpmn.definition import FormField
from engine.commands.complete_task import complete_task
from engine.commands.outcome import Refusal, Rejected
from engine.commands.tasks import assign, claim, unclaim
from engine.core.lifecycle import USER_TASK
from engine.db.forms import FoundForm, NoForm
from engine.queries.api import ApiTask, TaskFilter, api_task, api_tasks
from engine.queries.rows import reading
from webapp.api.blueprint import blueprint
from webapp.api.bodies import Field, one_of, request_id, text, uuid, variables
from webapp.api.describing import Sent, operation, paged
from webapp.api.schemas import Listed, Moment, words
from webapp.api.shapes import CASE_OVER, each, listed, moment, refused
from webapp.auth.identity import current_actor
from webapp.db import command_connection, reader
from webapp.tasks.page import load_form

TASK_OVER = (Refusal.ALREADY_COMPLETED, Refusal.ALREADY_CANCELLED, *CASE_OVER)


class TaskShape(TypedDict):
    id: UUID
    name: str
    element_id: str
    status: Annotated[str, words(*USER_TASK)]
    assignee: str | None
    candidate_groups: list[str]
    process_instance_id: UUID
    root_instance_id: UUID
    business_key: str | None
    priority: int
    due_at: Moment | None
    created_at: Moment


class ChoiceShape(TypedDict):
    value: str
    label: str


class FormFieldShape(TypedDict):
    """One field. `pattern`: a regular expression of RE2 that finds something in the text; `ticked`: only true will do."""

    id: str
    label: str
    type: str
    values: list[ChoiceShape]
    required: bool
    readonly: bool
    minimum: str | None
    maximum: str | None
    min_length: int | None
    max_length: int | None
    description: str
    pattern: str | None
    decimals: int | None
    ticked: bool


class TaskFormShape(TypedDict):
    """`key`: of the deployed form; `missing`: the one that is not deployed."""

    key: str | None
    version: int | None
    missing: str | None
    fields: list[FormFieldShape]


@blueprint.get("/tasks")
@operation(
    scope="read",
    query={
        "status": Field(one_of(*USER_TASK), "", about="Without it: open and claimed."),
        "assignee": Field(text(), None),
        "candidate_group": Field(text(), None),
        "process_definition_key": Field(text(), None),
        "process_instance_id": Field(uuid, None),
        "business_key": Field(text(), None),
        **paged(),
    },
    answers=Listed[TaskShape],
)
def list_tasks(asked: Sent) -> Response:
    """The user tasks that you may see, oldest first."""
    cursor, limit = asked.pop("cursor"), asked.pop("limit")
    with reading(reader()) as conn:
        page = api_tasks(conn, current_actor(), TaskFilter(**asked), cursor=cursor, limit=limit)
    return listed(page, task_shape)


@blueprint.get("/tasks/<uuid:task_id>")
@operation(scope="read", answers=TaskShape)
def show_task(task_id: UUID) -> Response:
    """One user task."""
    return answer_with_task(task_id)


@blueprint.get("/tasks/<uuid:task_id>/form")
@operation(scope="read", answers=TaskFormShape)
def show_form(task_id: UUID) -> Response:
    """The fields that the page of the task has, and which deployed form they are of."""
    found = load_form(task_id)
    return jsonify(form_shape(found.deployed, found.fields))


def form_shape(deployed: FoundForm | NoForm | None, fields: Sequence[FormField]) -> TaskFormShape:
    form = deployed if isinstance(deployed, FoundForm) else None
    missing = deployed if isinstance(deployed, NoForm) else None
    return {
        "key": form.form.key if form else None,
        "version": form.version if form else None,
        "missing": missing.name if missing else None,
        "fields": each(fields, _field),
    }


def _field(field: FormField) -> FormFieldShape:
    return {
        "id": field.id,
        "label": field.label,
        "type": field.type,
        "values": [{"value": value, "label": label} for value, label in field.values],
        "required": field.required,
        "readonly": field.readonly,
        "minimum": field.minimum,
        "maximum": field.maximum,
        "min_length": field.min_length,
        "max_length": field.max_length,
        "description": field.description,
        "pattern": field.pattern,
        "decimals": field.decimals,
        "ticked": field.ticked,
    }


@blueprint.post("/tasks/<uuid:task_id>/claim")
@operation(scope="tasks", answers=TaskShape, of="show_task", refusals=(Refusal.ALREADY_CLAIMED, *TASK_OVER))
def claim_task(task_id: UUID) -> Response:
    """Claim a task: it is yours until you complete it or give it back."""
    return _answer(task_id, claim(command_connection(), task_id, actor=current_actor(), request_id=request_id()))


@blueprint.post("/tasks/<uuid:task_id>/unclaim")
@operation(scope="tasks", answers=TaskShape, of="show_task", refusals=(Refusal.NOT_CLAIMED, Refusal.NOT_YOURS, *TASK_OVER))
def unclaim_task(task_id: UUID) -> Response:
    """Give a claimed task back to its candidates."""
    return _answer(task_id, unclaim(command_connection(), task_id, actor=current_actor(), request_id=request_id()))


@blueprint.post("/tasks/<uuid:task_id>/assign")
@operation(
    scope="tasks",
    of="show_task",
    body={"assignee": Field(text(nullable=True), about="A username; null gives it back to its candidates.", example="bo")},
    answers=TaskShape,
    refusals=(Refusal.NOT_YOURS, Refusal.NOT_CLAIMED, *TASK_OVER),
)
def assign_task(task_id: UUID, sent: Sent) -> Response:
    """Give a task to a person."""
    outcome = assign(command_connection(), task_id, actor=current_actor(), assignee=sent["assignee"], request_id=request_id())
    return _answer(task_id, outcome)


@blueprint.post("/tasks/<uuid:task_id>/complete")
@operation(
    scope="tasks",
    of="show_task",
    body={"variables": Field(variables, {}, example={"approved": True})},
    answers=TaskShape,
    refusals=(Refusal.NOT_CLAIMED, Refusal.NOT_YOURS, *TASK_OVER),
)
def complete(task_id: UUID, sent: Sent) -> Response:
    """Complete a task with what it sets, and take its process further."""
    outcome = complete_task(command_connection(), task_id, actor=current_actor(), variables=sent["variables"], request_id=request_id())
    return _answer(task_id, outcome)


def _answer(task_id: UUID, outcome: Any) -> Response:
    return refused(outcome) if isinstance(outcome, Rejected) else answer_with_task(task_id)


def answer_with_task(task_id: UUID) -> Response:
    """The task, if this actor may see it."""
    found = api_task(reader(), current_actor(), task_id)
    if found is None:
        abort(404)
    return jsonify(task_shape(found))


def task_shape(task: ApiTask) -> TaskShape:
    return {
        "id": task.id,
        "name": task.name,
        "element_id": task.element_id,
        "status": task.status,
        "assignee": task.assignee,
        "candidate_groups": task.candidate_groups,
        "process_instance_id": task.process_instance_id,
        "root_instance_id": task.root_instance_id,
        "business_key": task.business_key,
        "priority": task.priority,
        "due_at": moment(task.due_at),
        "created_at": moment(task.created_at),
    }
