"""One task: its page, claim, unclaim, assign, complete.

A change that was made answers 303 (or, for htmx, the row in its new state). A change that somebody else made impossible
answers 409 with the same sentence everywhere: who, what, when, and the next free task of the kind.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask import Blueprint, Flask, Response, abort, flash, make_response, redirect, render_template, request, url_for
from flask.blueprints import BlueprintSetupState

from engine.commands.complete_task import complete_task
from engine.commands.outcome import FieldProblem, Refusal, Rejected, TaskCompleted
from engine.commands.tasks import assign as assign_task
from engine.commands.tasks import claim as claim_task
from engine.commands.tasks import unclaim as unclaim_task
from engine.queries.inbox import inbox_row, next_free
from engine.queries.task import task_detail
from webapp.auth.identity import current_actor
from webapp.db import command_connection, reader
from webapp.forms.fields import Control, Form, read_form
from webapp.security import stale_form, wants_fragment
from webapp.tasks.page import (
    TaskForm,
    here,
    instance_url,
    load_form,
    page_context,
    standing_refusal,
    stored_beside,
    way_back,
    with_name,
)

blueprint = Blueprint("tasks", __name__)


@blueprint.get("/tasks/<uuid:task_id>")
def show(task_id: UUID) -> Any:
    return render_template("tasks/show.html", **page_context(load_form(task_id)))


@blueprint.get("/tasks/<uuid:task_id>/standing")
def standing(task_id: UUID) -> Any:
    """Who has it now: the part of the page that may change while somebody types."""
    context = page_context(load_form(task_id))
    return render_template("tasks/_standing.html", **context)


@blueprint.post("/tasks/<uuid:task_id>/claim")
def claim(task_id: UUID) -> Any:
    outcome = claim_task(command_connection(), task_id, actor=current_actor(), request_id=_request_id())
    if isinstance(outcome, Rejected):
        return _lost_row(task_id, outcome) if wants_fragment() else _lost(task_id, outcome, "claim")
    if wants_fragment():
        return _row(task_id)
    return _to_task(task_id)


@blueprint.post("/tasks/<uuid:task_id>/unclaim")
def unclaim(task_id: UUID) -> Any:
    outcome = unclaim_task(command_connection(), task_id, actor=current_actor(), request_id=_request_id())
    if isinstance(outcome, Rejected):
        return _lost(task_id, outcome, "unclaim")
    flash("You gave it back: anybody of its candidates may claim it now.", "ok")
    return _to_task(task_id)


@blueprint.post("/tasks/<uuid:task_id>/assign")
def assign(task_id: UUID) -> Any:
    assignee = request.form.get("assignee", "").strip()
    if not assignee:
        return _assign_again(task_id, "Choose who shall have it.")
    outcome = assign_task(command_connection(), task_id, actor=current_actor(), assignee=assignee, request_id=_request_id())
    if isinstance(outcome, Rejected):
        match outcome.refusal:
            case Refusal.INVALID:
                return _assign_again(task_id, f"Nobody called “{assignee}” can sign in.")
            case Refusal.NOT_ALLOWED:
                return _assign_again(task_id, f"“{assignee}” is not a candidate of this task.", status=403)
        return _lost(task_id, outcome, "assign")
    if task_detail(reader(), current_actor(), task_id) is None:
        return redirect(way_back(), code=303)
    return _to_task(task_id)


@blueprint.post("/tasks/<uuid:task_id>/complete")
def complete(task_id: UUID) -> Any:
    found = load_form(task_id)
    form, values = read_form(found.fields, request.form, found.variables)
    # Who came too late hears that, not what is wrong with the form: nothing of it would be used.
    if form.problems and found.task.mine:
        return _form_again(found, form, 422, refused="Not completed")
    if form.problems:
        return _too_late(found, form)
    outcome = complete_task(command_connection(), task_id, actor=current_actor(), variables=values, request_id=_request_id())
    match outcome:
        case TaskCompleted():
            return _completed(found, outcome)
        case Rejected(refusal=Refusal.INVALID):
            return _form_again(found, _with_problems(form, outcome), 422, refused="Not completed")
    return _lost(task_id, outcome, "complete", form=form)


@stale_form(complete)
def press_again(task_id: UUID) -> Any:
    """An honest press from a page that was too old: everything typed stands there again, to be pressed knowingly."""
    found = load_form(task_id)
    form, _ = read_form(found.fields, request.form, found.variables)
    typed = Form(tuple(Control(control.field, control.text) for control in form.controls))
    return _form_again(found, typed, 400, refused="", stale=True)


# ---- answers


def _row(task_id: UUID) -> Any:
    """The row as it stands now, for whoever pressed in a list."""
    row = inbox_row(reader(), current_actor(), task_id)
    if row is None:
        abort(404)
    return render_template("tasks/row.html", row=row, refusal=None, offer=None, back=way_back(), here=here())


def _lost_row(task_id: UUID, rejected: Rejected) -> Any:
    row = inbox_row(reader(), current_actor(), task_id)
    if row is None:
        abort(404)
    offer = next_free(reader(), current_actor(), task_id)
    page = render_template("tasks/row.html", row=row, refusal=with_name(rejected), offer=offer, back=way_back(), here=here())
    return make_response(page, rejected.status)


def _lost(task_id: UUID, rejected: Rejected, wanted: str, *, form: Form | None = None) -> Any:
    """The whole page for who came too late; what they typed stays readable beside what was stored."""
    if rejected.refusal in (Refusal.NOT_FOUND, Refusal.NOT_ALLOWED):
        abort(rejected.status)
    found = load_form(task_id)
    page = render_template(
        "tasks/lost.html",
        task=found.task,
        found=found,
        wanted=wanted,
        form=form,
        refusal=with_name(rejected),
        offer=next_free(reader(), current_actor(), task_id),
        back=way_back(),
        here=here(),
    )
    return make_response(page, rejected.status)


def _too_late(found: TaskForm, form: Form) -> Any:
    """The form has problems, and the task is not this person's: the second is what they must hear."""
    rejected = standing_refusal(found.task, current_actor()) or Rejected(Refusal.NOT_CLAIMED, item_id=found.task.id)
    return _lost(found.task.id, rejected, "complete", form=form)


def _completed(found: TaskForm, done: TaskCompleted) -> Response | Any:
    """Back to the same list; the next step of this case is offered there if it is mine."""
    label = f"{found.task.name}, {found.task.business_key}" if found.task.business_key else found.task.name
    flash(label, "completed")
    if done.next_task_id is not None:
        flash(str(done.next_task_id), "next")
    return redirect(way_back(), code=303)


def _form_again(found: TaskForm, form: Form, status: int, *, refused: str, stale: bool = False) -> Any:
    return make_response(render_template("tasks/show.html", refused=refused, stale=stale, **page_context(found, form)), status)


def _assign_again(task_id: UUID, problem: str, *, status: int = 422) -> Any:
    context = page_context(load_form(task_id))
    return make_response(render_template("tasks/show.html", assign_problem=problem, **context), status)


def _with_problems(form: Form, rejected: Rejected) -> Form:
    """The command's own objections, at the fields that they are about."""
    said = {problem.field: problem.message for problem in rejected.problems if isinstance(problem, FieldProblem)}
    return Form(tuple(Control(control.field, control.text, said.get(control.field.id, "")) for control in form.controls))


def _to_task(task_id: UUID) -> Any:
    return redirect(url_for("tasks.show", task_id=task_id, back=way_back()), code=303)


def _request_id() -> str | None:
    """The id that the pressed button carried. Longer ones than any page makes are not worth keeping."""
    return request.form.get("request_id", "")[:100] or None


@blueprint.record_once
def _globals(state: BlueprintSetupState) -> None:
    """Names that the task's templates use."""
    app = state.app
    assert isinstance(app, Flask), "expected the application itself"
    app.jinja_env.globals.update(stored_beside=stored_beside, instance_url=instance_url)
