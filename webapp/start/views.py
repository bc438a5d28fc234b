"""Start a process: what may be started, its form, and where the case that began is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flask import Blueprint, abort, flash, make_response, redirect, render_template, request, url_for

from engine.bpmn.definition import FormField, Node, ProcessDefinition, StartConfig, occurs
from engine.commands.outcome import FieldProblem, InstanceStarted, Refusal, Rejected
from engine.commands.start import start_instance
from engine.db.definitions import DefinitionRefused, compiled
from engine.db.forms import FoundForm, NoForm
from engine.queries.rows import reading
from engine.queries.start_page import Startable, startable, startable_process
from webapp.auth.identity import current_actor
from webapp.db import command_connection, reader
from webapp.forms.deployed import deployed_form, drawn_before
from webapp.forms.fields import Control, Form, fresh_form, read_form
from webapp.security import stale_form
from webapp.tasks.page import instance_url

blueprint = Blueprint("start", __name__)


@dataclass(frozen=True, slots=True)
class StartForm:
    """A process with the fields of its none start event. `readable` False: today's rules refuse the stored model."""

    process: Startable
    fields: tuple[FormField, ...]
    readable: bool = True
    deployed: FoundForm | NoForm | None = None


@blueprint.get("/start")
def index() -> Any:
    with reading(reader()) as conn:
        processes = startable(conn, current_actor())
    return render_template("start/index.html", processes=processes, here="start")


@blueprint.get("/start/<key>")
def show(key: str) -> Any:
    found = load_start(key)
    return _page(found, fresh_form(found.fields, {}))


@blueprint.post("/start/<key>")
def begin(key: str) -> Any:
    found = load_start(key)
    form, values = read_form(found.fields, request.form, {})
    business_key = request.form.get("business_key", "").strip()
    if form.problems:
        return _page(found, form, 422, business_key=business_key)
    outcome = start_instance(
        command_connection(),
        key,
        actor=current_actor(),
        variables=values,
        business_key=business_key or None,
        request_id=request.form.get("request_id", "")[:100] or None,
    )
    match outcome:
        case InstanceStarted():
            return _started(found, outcome)
        case Rejected(refusal=Refusal.NOT_FOUND | Refusal.NOT_ALLOWED):
            abort(outcome.status)
    return _refused(found, form, outcome, business_key)


@stale_form(begin)
def press_again(key: str) -> Any:
    """An honest press from a page that was too old: everything typed stands there again."""
    found = load_start(key)
    form, _ = read_form(found.fields, request.form, {})
    typed = Form(tuple(Control(control.field, control.text) for control in form.controls))
    return _page(found, typed, 400, business_key=request.form.get("business_key", "").strip(), stale=True)


def load_start(key: str) -> StartForm:
    """What its form asks for; 404 for what nobody starts by hand."""
    with reading(reader()) as conn:
        process = startable_process(conn, current_actor(), key)
    if process is None:
        abort(404)
    try:
        definition = compiled(command_connection(), process.definition_id)
    except DefinitionRefused:
        return StartForm(process, (), readable=False)
    node = _none_start(definition)
    deployed = deployed_form(node, process.definition_id, {})
    if isinstance(deployed, FoundForm):
        return StartForm(process, deployed.form.fields, deployed=deployed)
    fields = node.config.fields if node is not None and isinstance(node.config, StartConfig) else ()
    return StartForm(process, fields, deployed=deployed)


def _none_start(definition: ProcessDefinition) -> Node | None:
    """The start event that people start."""
    starts = (definition.nodes[node_id] for node_id in definition.starts.get(None, ()))
    return next((node for node in starts if isinstance(node.config, StartConfig) and not occurs(node.config)), None)


def _started(found: StartForm, started: InstanceStarted) -> Any:
    """The next step if it is mine, else the case itself."""
    flash(f"You started {found.process.name}." + (" It has ended already: it had nothing to wait for." if started.ended else ""), "ok")
    if started.next_task_id is not None:
        return redirect(url_for("tasks.show", task_id=started.next_task_id), code=303)
    return redirect(instance_url(started.instance_id) or url_for("inbox.index"), code=303)


def _refused(found: StartForm, form: Form, rejected: Rejected, business_key: str) -> Any:
    """The form as typed, with the command's objections at their fields, or one sentence above it."""
    said = {problem.field: problem.message for problem in rejected.problems if isinstance(problem, FieldProblem)}
    marked = Form(tuple(Control(control.field, control.text, said.get(control.field.id, "")) for control in form.controls))
    key_problem = said.get("business_key", "")
    return _page(found, marked, rejected.status, business_key=business_key, refusal=rejected, key_problem=key_problem)


def _page(found: StartForm, form: Form, status: int = 200, **more: Any) -> Any:
    drawn = {"deployed": found.deployed, "drawn": drawn_before(found.deployed)}
    context = {"business_key": "", "refusal": None, "key_problem": "", "stale": False, **drawn, **more}
    return make_response(render_template("start/show.html", found=found, process=found.process, form=form, here="start", **context), status)
