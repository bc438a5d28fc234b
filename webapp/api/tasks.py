"""User tasks: lists, one, and what may be done to one."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any
from uuid import UUID

from flask import Response, abort, jsonify

from engine.bpmn.definition import FormField
from engine.commands.complete_task import complete_task
from engine.commands.outcome import Rejected
from engine.commands.tasks import assign, claim, unclaim
from engine.core.lifecycle import USER_TASK
from engine.db.forms import FoundForm, NoForm
from engine.queries.api import ApiTask, TaskFilter, api_task, api_tasks
from engine.queries.rows import reading
from webapp.api.blueprint import blueprint
from webapp.api.bodies import Field, json_body, one_of, query, request_id, text, uuid, variables, whole
from webapp.api.shapes import each, listed, moment, refused
from webapp.auth.identity import current_actor
from webapp.db import command_connection, reader
from webapp.tasks.page import load_form


@blueprint.get("/tasks")
def list_tasks() -> Response:
    asked = query(
        status=Field(one_of(*USER_TASK), ""),
        assignee=Field(text(), None),
        candidate_group=Field(text(), None),
        process_definition_key=Field(text(), None),
        process_instance_id=Field(uuid, None),
        business_key=Field(text(), None),
        cursor=Field(text(), None),
        limit=Field(whole(least=1, most=200), 50),
    )
    cursor, limit = asked.pop("cursor"), asked.pop("limit")
    with reading(reader()) as conn:
        page = api_tasks(conn, current_actor(), TaskFilter(**asked), cursor=cursor, limit=limit)
    return listed(page, task_shape)


@blueprint.get("/tasks/<uuid:task_id>")
def show_task(task_id: UUID) -> Response:
    return _task(task_id)


@blueprint.get("/tasks/<uuid:task_id>/form")
def show_form(task_id: UUID) -> Response:
    """The fields that the page of the task has, and which deployed form they are of."""
    found = load_form(task_id)
    form = found.deployed if isinstance(found.deployed, FoundForm) else None
    missing = found.deployed if isinstance(found.deployed, NoForm) else None
    return jsonify(
        key=form.form.key if form else None,
        version=form.version if form else None,
        missing=missing.name if missing else None,
        fields=each(found.fields, _field),
    )


def _field(field: FormField) -> dict[str, Any]:
    told = asdict(replace(field, default=None))
    told["values"] = [{"value": value, "label": label} for value, label in field.values]
    return {name: value for name, value in told.items() if name not in ("default", "date_pattern", "lines")}


@blueprint.post("/tasks/<uuid:task_id>/claim")
def claim_task(task_id: UUID) -> Response:
    json_body()
    return _answer(task_id, claim(command_connection(), task_id, actor=current_actor(), request_id=request_id()))


@blueprint.post("/tasks/<uuid:task_id>/unclaim")
def unclaim_task(task_id: UUID) -> Response:
    json_body()
    return _answer(task_id, unclaim(command_connection(), task_id, actor=current_actor(), request_id=request_id()))


@blueprint.post("/tasks/<uuid:task_id>/assign")
def assign_task(task_id: UUID) -> Response:
    sent = json_body(assignee=Field(text(nullable=True)))
    outcome = assign(command_connection(), task_id, actor=current_actor(), assignee=sent["assignee"], request_id=request_id())
    return _answer(task_id, outcome)


@blueprint.post("/tasks/<uuid:task_id>/complete")
def complete(task_id: UUID) -> Response:
    sent = json_body(variables=Field(variables, {}))
    outcome = complete_task(command_connection(), task_id, actor=current_actor(), variables=sent["variables"], request_id=request_id())
    return _answer(task_id, outcome)


def _answer(task_id: UUID, outcome: Any) -> Response:
    return refused(outcome) if isinstance(outcome, Rejected) else _task(task_id)


def _task(task_id: UUID) -> Response:
    found = api_task(reader(), current_actor(), task_id)
    if found is None:
        abort(404)
    return jsonify(task_shape(found))


def task_shape(task: ApiTask) -> dict[str, Any]:
    return asdict(task) | {"due_at": moment(task.due_at), "created_at": moment(task.created_at)}
