"""Instances: the list, and the page of one: where it stands, why it waits, what it knows, what happened."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask import Response, abort, render_template, request, url_for

from engine.commands.cancel import cancel_instance
from engine.commands.may import InstanceView, may
from engine.commands.outcome import Rejected
from engine.core.lifecycle import INSTANCE
from engine.db.workers import SILENT_AFTER_SECONDS
from engine.queries import instance as one
from engine.queries.api import api_instance
from engine.queries.crew import workers
from engine.queries.instances import InstanceFilter, count_instances
from engine.queries.instances import instances as found_instances
from engine.queries.near_misses import near_of_waiting
from engine.queries.processes import definitions, element_counts
from engine.queries.resting import pause_of, standing, suspension
from engine.queries.rows import reading
from engine.queries.turn import turn_of
from engine.queries.why import why
from webapp.auth.identity import current_actor, is_operator
from webapp.db import command_connection, reader
from webapp.fragments import tagged
from webapp.operations import actions
from webapp.operations.blueprint import blueprint
from webapp.operations.drawings import drawing_response
from webapp.operations.listing import Listing, after, asked
from webapp.operations.model_text import outline
from webapp.operations.processes import counts_shape, model_response
from webapp.operations.words import condition_of, element_name, model_of

REASON = 500
PARTS = {
    "head": "operations/_instance_head.html",
    "why": "operations/_instance_why.html",
    "steps": "operations/_instance_steps.html",
    "rest": "operations/_instance.html",
}


@blueprint.get("/instances")
def instances() -> str:
    return render_template("operations/instances.html", **_list(), here="instances")


@blueprint.get("/instances/list")
def instances_list() -> Response:
    context = _list()
    shown = [context["list"].page, context["list"].asked, context["total"]]
    return tagged(shown, lambda: render_template("operations/_instances_list.html", **context))


def _list() -> dict[str, Any]:
    choices = asked("q", "key", "version", "status", "incidents", "element")
    tenant = current_actor().tenant_id
    version = choices.get("version", "")
    wanted = InstanceFilter(
        q=choices.get("q", ""),
        key=choices.get("key", ""),
        version=int(version) if version.isascii() and version.isdigit() and len(version) < 10 else None,
        status=choices.get("status", ""),
        incidents=bool(choices.get("incidents")),
        element_id=choices.get("element", ""),
    )
    with reading(reader()) as conn:
        page = found_instances(conn, wanted, tenant_id=tenant, cursor=after())
        total = count_instances(conn, wanted, tenant_id=tenant)
        processes = definitions(conn, tenant_id=tenant)
    return {
        "list": Listing("operations.instances", "operations.instances_list", choices, page, after()),
        "total": total,
        "processes": processes,
        "statuses": tuple(INSTANCE),
    }


@blueprint.get("/instances/<uuid:instance_id>")
def instance(instance_id: UUID) -> str:
    return render_template("operations/instance.html", **_instance(instance_id), here="instances")


@blueprint.get("/instances/<uuid:instance_id>/part")
def instance_part(instance_id: UUID) -> Response:
    """One of the parts of the page that change; the drawing between them stays and follows the counts in `steps`."""
    template = PARTS.get(request.args.get("part", ""))
    if template is None:
        abort(404)
    context = _instance(instance_id)
    return tagged([template, _shown(context)], lambda: render_template(template, **context))


@blueprint.get("/instances/<uuid:instance_id>/model")
def instance_model(instance_id: UUID) -> Response:
    return model_response(_seen(instance_id).definition_id)


@blueprint.get("/instances/<uuid:instance_id>/drawing")
def instance_drawing(instance_id: UUID) -> Response:
    return drawing_response(_seen(instance_id).definition_id)


@blueprint.post("/instances/<uuid:instance_id>/cancel")
def cancel(instance_id: UUID) -> Response:
    """For good. The reason goes into the history."""
    reason = request.form.get("reason", "").strip()[:REASON]
    outcome = cancel_instance(command_connection(), instance_id, actor=current_actor(), reason=reason, request_id=actions.request_id())
    back = url_for("operations.instance", instance_id=instance_id)
    if isinstance(outcome, Rejected):
        return actions.refused(outcome, back=back, what="cancel the instance")
    if outcome.finishing:
        return actions.done("The instance is being cancelled. It is large, so a job withdraws what is left of it.", back=back)
    return actions.done("The instance is cancelled.", back=back)


def _seen(instance_id: UUID) -> one.Instance:
    """The instance, if this actor may see it; else 404, the same as for one that is not there (R13)."""
    actor = current_actor()
    with reading(reader()) as conn:
        found = one.instance(conn, instance_id, tenant_id=actor.tenant_id)
        if found is None or api_instance(conn, actor, instance_id) is None:
            abort(404)
    return found


def _instance(instance_id: UUID) -> dict[str, Any]:
    actor = current_actor()
    found = _seen(instance_id)
    everything = bool(request.args.get("all"))
    with reading(reader()) as conn:
        tokens = one.tokens(conn, instance_id)
        tasks = one.tasks(conn, instance_id)
        work = one.work(conn, instance_id)
        turn = turn_of(conn, found.root_id) if any("exclusive" in row.held for row in work) else None
        stop = suspension(conn, found.root_id)
        stopped = standing(conn, tenant_id=actor.tenant_id) if work else []
        incidents = one.incidents(conn, instance_id)
        subscriptions = one.subscriptions(conn, instance_id, tenant_id=actor.tenant_id)
        near = near_of_waiting(conn, subscriptions, tenant_id=actor.tenant_id)
        called = one.called(conn, instance_id)
        variables = one.variables(conn, instance_id)
        timeline = one.timeline(conn, instance_id, tenant_id=actor.tenant_id, cursor=after(), everything=everything)
        counts = element_counts(conn, instance_id=instance_id)
        taken = one.flows_taken(conn, instance_id)
        crew = [worker for worker in workers(conn) if worker.age_seconds <= SILENT_AFTER_SECONDS]
    model = model_of(found.definition_id)
    return {
        "instance": found,
        "tokens": tokens,
        "tasks": tasks,
        "task_names": {task.id: task.name for task in tasks},
        "work": work,
        "turn": turn,
        "suspension": stop,
        "pauses": stopped,
        "incidents": incidents,
        "subscriptions": subscriptions,
        "near": {row.id: found for row, found in near},
        "called": called,
        "variables": variables,
        "timeline": timeline,
        "timeline_after": after(),
        "everything": everything,
        "counts_json": counts_shape(counts) | {"taken": taken},
        "waiting": why(
            tokens,
            tasks=tasks,
            work=work,
            subscriptions=subscriptions,
            incidents=incidents,
            turn=turn,
            paused=lambda item: pause_of(stopped, item, found.definition_key),
        ),
        "steps": outline(model) if model else (),
        "by_element": {row.element_id: row for row in counts},
        "name_in": element_name,
        "name_of": lambda element: element_name(found.definition_id, element),
        "incoming": lambda element: len(model.nodes[element].incoming) if model and element in model.nodes else "the",
        "condition": lambda event: condition_of(model, event),
        "alive": bool(crew),
        "knows": lambda kind, topic: any([kind, topic] in worker.kinds for worker in crew),
        "asks_to_suspend": bool(request.args.get("suspend")) and found.status == "running",
        "asks_to_cancel": bool(request.args.get("cancel")) and found.status == "running",
        "may_cancel": may(actor, "cancel", InstanceView(actor.tenant_id, found.started_by)),
        "may_operate": is_operator(actor),
    }


def _coarse(seconds: float) -> int:
    """A wait as its sentence shows it to within a few seconds, so that an unchanged page is 304 in between."""
    return int(seconds) // (5 if abs(seconds) < 60 else 30)


def _shown(context: dict[str, Any]) -> list[Any]:
    """What the entity tag is made of: rows, without the seconds that only the clock moves."""
    found = context["instance"]
    moving = [(row.id, row.status, row.attempts, row.lease_number, row.lease_expires_at, row.available_at) for row in context["work"]]
    return [
        (found.status, found.mark, found.revision, found.ended_at),
        context["tokens"],
        context["tasks"],
        moving,
        context["turn"],
        [row.id for row in context["incidents"]],
        [(row.id, row.same_name) for row in context["subscriptions"]],
        [near.message_id for found in context["near"].values() for near in found],
        context["variables"],
        [event.id for event in context["timeline"].items],
        [_coarse(row.wait_seconds) for row in context["work"]],
        context["alive"],
        context["called"],
        context["asks_to_cancel"],
        context["suspension"],
        context["pauses"],
        [row.held for row in context["work"]],
        context["everything"],
    ]
