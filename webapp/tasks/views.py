"""One task: its page, and what can be done with it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask import Blueprint, abort, redirect, request, url_for

from engine.commands.outcome import Rejected
from engine.commands.tasks import claim as claim_task
from engine.queries.inbox import inbox_row
from webapp.auth.identity import current_actor
from webapp.db import command_connection, reader
from webapp.security import local_path

blueprint = Blueprint("tasks", __name__)


@blueprint.get("/tasks/<uuid:task_id>")
def show(task_id: UUID) -> Any:
    row = inbox_row(reader(), current_actor(), task_id)
    if row is None:
        abort(404)
    return row.name


@blueprint.post("/tasks/<uuid:task_id>/claim")
def claim(task_id: UUID) -> Any:
    outcome = claim_task(command_connection(), task_id, actor=current_actor(), request_id=request.form.get("request_id") or None)
    if isinstance(outcome, Rejected):
        abort(outcome.status)
    back = local_path(request.form.get("back"), url_for("inbox.index"))
    return redirect(url_for("tasks.show", task_id=task_id, back=back), code=303)
