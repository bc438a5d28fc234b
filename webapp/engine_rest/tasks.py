"""User tasks: listed, shown with what they see, claimed, given, completed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import Response, jsonify

from engine.commands.complete_task import complete_task
from engine.commands.outcome import Refusal, Rejected
from engine.commands.tasks import assign, claim, unclaim
from engine.core.values import Variable
from engine.queries.rest.executions import execution, local_variables
from engine.queries.rest.tasks import TASKS, RestTask, count_tasks, rest_task, rest_tasks, seen_by
from engine.queries.rows import reading
from webapp.auth.identity import current_actor
from webapp.db import command_connection, reader
from webapp.engine_rest.blueprint import blueprint, done, known, missing, refuse, told
from webapp.engine_rest.instances import data_of, named
from webapp.engine_rest.listing import listed, wanted
from webapp.engine_rest.reading import Sent, body, query, uuid_of
from webapp.engine_rest.shapes import task_shape
from webapp.engine_rest.values import write_value, write_variables

ASIDE = frozenset({"includeAssignedTasks"})
BY_CANDIDATE = ("candidateUser", "candidateGroup", "candidateGroups", "withCandidateUsers", "withCandidateGroups")


@blueprint.get("/task")
@blueprint.get("/task/")
def list_tasks() -> Response:
    return _list(query())


@blueprint.post("/task")
def query_tasks() -> Response:
    return _list(body(), query())


@blueprint.get("/task/count")
def count_all_tasks() -> Response:
    return _count(query())


@blueprint.post("/task/count")
def count_tasks_by_body() -> Response:
    return _count(body())


@blueprint.get("/task/<task_id>")
def show_task(task_id: str) -> Response:
    return jsonify(task_shape(_task(task_id)))


@blueprint.get("/task/<task_id>/variables")
@blueprint.get("/task/<task_id>/form-variables")
def task_variables(task_id: str) -> Response:
    """What it sees; with `variableNames` only those."""
    names = query().names("variableNames")
    seen = _seen(_task(task_id))
    return jsonify(write_variables({name: value for name, value in seen.items() if names is None or name in names}))


@blueprint.get("/task/<task_id>/variables/<name>")
def task_variable(task_id: str, name: str) -> Response:
    return jsonify(write_value(named(_seen(_task(task_id)), name)))


@blueprint.get("/task/<task_id>/variables/<name>/data")
def task_variable_data(task_id: str, name: str) -> Response:
    return data_of(named(_seen(_task(task_id)), name), name)


@blueprint.get("/task/<task_id>/localVariables")
def task_local_variables(task_id: str) -> Response:
    """Its inputs."""
    task = _task(task_id)
    found = execution(reader(), current_actor(), task.token_id) if task.token_id is not None else None
    return jsonify(write_variables(local_variables(reader(), found) if found is not None else {}))


@blueprint.get("/task/<task_id>/identity-links")
def identity_links(task_id: str) -> Response:
    task = _task(task_id)
    links = [{"userId": name, "groupId": None, "type": "candidate"} for name in task.candidate_users]
    links += [{"userId": None, "groupId": name, "type": "candidate"} for name in task.candidate_groups]
    if task.assignee is not None:
        links.append({"userId": task.assignee, "groupId": None, "type": "assignee"})
    return jsonify(links)


@blueprint.post("/task/<task_id>/claim")
def claim_task(task_id: str) -> Response:
    """For whoever asks: a claim in another's name would be a gift, which /assignee is for."""
    task, user = _task(task_id), body().text("userId")
    if user is not None and user != current_actor().username:
        raise told(400, f"userId: expected {current_actor().username}, who asks, found {user!r:.80}; give a task away by its assignee")
    known(claim(command_connection(), task.id, actor=current_actor(), request_id=None), what=f"claim task {task.id}")
    return done()


@blueprint.post("/task/<task_id>/unclaim")
def unclaim_task(task_id: str) -> Response:
    task = _task(task_id)
    known(unclaim(command_connection(), task.id, actor=current_actor(), request_id=None), what=f"unclaim task {task.id}")
    return done()


@blueprint.post("/task/<task_id>/assignee")
def set_assignee(task_id: str) -> Response:
    """Null gives it back to its candidates."""
    task, user = _task(task_id), body().text("userId")
    known(assign(command_connection(), task.id, actor=current_actor(), assignee=user, request_id=None), what=f"assign task {task.id}")
    return done()


@blueprint.post("/task/<task_id>/complete")
@blueprint.post("/task/<task_id>/submit-form")
def complete(task_id: str) -> Response:
    """A task that nobody has is claimed by who completes it: programs that complete tasks do not claim them before."""
    task, sent = _task(task_id), body()
    variables, what = sent.variables("variables"), f"complete task {task.id}"
    before = _seen(task) if sent.truth("withVariablesInReturn") else {}
    outcome: Any = complete_task(command_connection(), task.id, actor=current_actor(), variables=variables, request_id=None)
    if isinstance(outcome, Rejected) and outcome.refusal is Refusal.NOT_CLAIMED:
        known(claim(command_connection(), task.id, actor=current_actor(), request_id=None), what=what)
        outcome = complete_task(command_connection(), task.id, actor=current_actor(), variables=variables, request_id=None)
    if isinstance(outcome, Rejected):
        refuse(outcome, what=what)
    return jsonify(write_variables({**before, **variables})) if sent.truth("withVariablesInReturn") else done()


def _list(sent: Sent, page: Sent | None = None) -> Response:
    asked = wanted(_for_candidates(sent), TASKS, page=page, aside=ASIDE)
    with listed(), reading(reader()) as conn:
        return jsonify([task_shape(each) for each in rest_tasks(conn, current_actor(), asked)])


def _count(sent: Sent) -> Response:
    asked = wanted(_for_candidates(sent), TASKS, aside=ASIDE)
    with reading(reader()) as conn:
        return jsonify(count=count_tasks(conn, current_actor(), asked))


def _for_candidates(sent: Sent) -> Sent:
    """Who asks by candidates means tasks that nobody has, unless `includeAssignedTasks` says otherwise."""
    if sent.truth("includeAssignedTasks") or not any(sent.has(name) for name in BY_CANDIDATE):
        return sent
    return Sent({**sent.values, "unassigned": True})


def _task(task_id: str) -> RestTask:
    id = uuid_of(task_id)
    found = rest_task(reader(), current_actor(), id) if id is not None else None
    if found is None:
        raise missing("task", task_id)
    return found


def _seen(task: RestTask) -> Mapping[str, Variable]:
    return seen_by(reader(), task)
