"""What rests: cases and versions are suspended and resumed, work is paused and goes on; and the page that lists all of it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask import Response, render_template, request, url_for

from engine.commands.outcome import Rejected
from engine.commands.pause import KINDS, pause_work, unpause_work
from engine.commands.suspend import resume_instance, suspend_instance
from engine.commands.suspend_definition import resume_definition, suspend_definition
from engine.queries.resting import MOST, pauses, suspended
from engine.queries.rows import reading
from webapp.auth.identity import current_actor
from webapp.db import command_connection, reader
from webapp.fragments import tagged
from webapp.operations import actions
from webapp.operations.blueprint import blueprint
from webapp.versions import version_or_404

REASON = 500  # characters


@blueprint.get("/pauses")
def pauses_page() -> str:
    return render_template("operations/pauses.html", **_context(), here="pauses")


@blueprint.get("/pauses/list")
def pauses_list() -> Response:
    context = _context()
    return tagged([context["pauses"], context["suspended"]], lambda: render_template("operations/_pauses_list.html", **context))


def _context() -> dict[str, Any]:
    tenant = current_actor().tenant_id
    with reading(reader()) as conn:
        return {"pauses": pauses(conn, tenant_id=tenant), "suspended": suspended(conn, tenant_id=tenant), "kinds": KINDS, "most": MOST}


@blueprint.post("/pauses/add")
def pause() -> Response:
    kind, topic = request.form.get("kind", ""), request.form.get("topic", "").strip()
    outcome = pause_work(command_connection(), kind, topic, actor=current_actor(), reason=_reason(), request_id=actions.request_id())
    back = actions.back_to(url_for("operations.pauses_page"))
    if isinstance(outcome, Rejected):
        return actions.refused(outcome, back=back, what="pause this work")
    return actions.done("It is paused. What is running ends as it would; nothing more is begun.", back=back)


@blueprint.post("/pauses/remove")
def unpause() -> Response:
    kind, topic = request.form.get("kind", ""), request.form.get("topic", "")
    outcome = unpause_work(command_connection(), kind, topic, actor=current_actor(), request_id=actions.request_id())
    back = actions.back_to(url_for("operations.pauses_page"))
    if isinstance(outcome, Rejected):
        return actions.refused(outcome, back=back, what="let this work go on")
    return actions.done("It goes on.", back=back)


@blueprint.post("/instances/<uuid:instance_id>/suspend")
def suspend(instance_id: UUID) -> Response:
    outcome = suspend_instance(command_connection(), instance_id, actor=current_actor(), reason=_reason(), request_id=actions.request_id())
    back = actions.back_to(url_for("operations.instance", instance_id=instance_id))
    if isinstance(outcome, Rejected):
        return actions.refused(outcome, back=back, what="suspend the instance")
    return actions.done("The instance is suspended. Nothing in it moves until it is resumed.", back=back)


@blueprint.post("/instances/<uuid:instance_id>/resume")
def resume(instance_id: UUID) -> Response:
    outcome = resume_instance(command_connection(), instance_id, actor=current_actor(), reason=_reason(), request_id=actions.request_id())
    back = actions.back_to(url_for("operations.instance", instance_id=instance_id))
    if isinstance(outcome, Rejected):
        return actions.refused(outcome, back=back, what="resume the instance")
    return actions.done("The instance goes on. A timer whose time has passed fires once.", back=back)


@blueprint.post("/processes/<key>/<int(max=2147483647):version>/suspend")
def suspend_process(key: str, version: int) -> Response:
    with_cases = bool(request.form.get("with_cases"))
    outcome = suspend_definition(
        command_connection(),
        version_or_404(key, version).id,
        actor=current_actor(),
        reason=_reason(),
        with_cases=with_cases,
        request_id=actions.request_id(),
    )
    back = actions.back_to(url_for("operations.process", key=key, version=version))
    if isinstance(outcome, Rejected):
        return actions.refused(outcome, back=back, what=f"suspend version {version}")
    then = " Its running instances are being suspended, one after another." if with_cases else " Its running instances go on."
    return actions.done(f"Version {version} is suspended: nothing starts by it.{then}", back=back)


@blueprint.post("/processes/<key>/<int(max=2147483647):version>/resume")
def resume_process(key: str, version: int) -> Response:
    outcome = resume_definition(
        command_connection(), version_or_404(key, version).id, actor=current_actor(), reason=_reason(), request_id=actions.request_id()
    )
    back = actions.back_to(url_for("operations.process", key=key, version=version))
    if isinstance(outcome, Rejected):
        return actions.refused(outcome, back=back, what=f"resume version {version}")
    then = " The instances that were suspended with it go on, one after another." if outcome.with_cases else ""
    return actions.done(f"Version {version} starts again.{then}", back=back)


def _reason() -> str:
    return request.form.get("reason", "").strip()[:REASON]
