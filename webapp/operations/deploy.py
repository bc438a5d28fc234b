"""Deploy BPMN files: all of them or none, with every problem by file, element and line."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask import Response, abort, make_response, redirect, render_template, request, url_for

from engine.bpmn.calls import called_in_vain, calls_of
from engine.bpmn.definition import Problem
from engine.commands.deploy import deploy
from engine.commands.outcome import Deployed, FieldProblem, Rejected
from engine.queries.processes import definition, deployed_in, keys_deployed
from engine.queries.rows import reading
from webapp.auth.identity import current_actor
from webapp.db import command_connection, reader
from webapp.operations import actions
from webapp.operations.blueprint import blueprint
from webapp.operations.words import model_of


@blueprint.get("/deploy")
def deploy_form() -> str:
    """The form; after a deployment that brought nothing new, what it was the same as."""
    return render_template("operations/deploy.html", problems=(), refusal=None, same=_same(), here="deploy")


@blueprint.post("/deploy")
def deploy_files() -> Response:
    uploads = [upload for upload in request.files.getlist("file") if upload.filename]
    if not uploads:
        missing = (FieldProblem("file", "Choose at least one BPMN file."),)
        return make_response(render_template("operations/deploy.html", problems=missing, refusal=None, same=(), here="deploy"), 422)
    files = [(upload.filename or "", upload.read()) for upload in uploads]
    outcome = deploy(
        command_connection(), files, actor=current_actor(), name=request.form.get("name", "").strip()[:255],
        request_id=actions.request_id(),
    )  # fmt: skip
    if isinstance(outcome, Rejected):
        return _refused(outcome)
    return make_response(redirect(_result_url(outcome), code=303))


@blueprint.get("/deployments/<uuid:deployment_id>")
def deployment(deployment_id: UUID) -> str:
    """What one deployment brought, with what its author should know."""
    with reading(reader()) as conn:
        rows = deployed_in(conn, deployment_id, tenant_id=current_actor().tenant_id)
    if not rows:
        abort(404)
    models = [(row, model) for row in rows if (model := model_of(row.id)) is not None]
    with reading(reader()) as conn:
        called = {key for _, model in models for _, key in calls_of(model)}
        there = keys_deployed(conn, called, tenant_id=current_actor().tenant_id)
    warnings = [(row, warning) for row, model in models for warning in (*model.warnings, *called_in_vain(model, there))]
    return render_template("operations/deployment.html", rows=rows, warnings=warnings, same=_same(), here="deploy")


def _refused(rejected: Rejected) -> Response:
    if rejected.status in (403, 404):
        abort(rejected.status)
    problems: tuple[Problem | FieldProblem, ...] = rejected.problems
    page = render_template("operations/deploy.html", problems=problems, refusal=rejected, same=(), here="deploy")
    return make_response(page, rejected.status)


def _result_url(outcome: Deployed) -> str:
    same = [f"{one.key}/{one.version}" for one in outcome.definitions if one.unchanged]
    if outcome.deployment_id is None:
        return url_for("operations.deploy_form", same=same)
    return url_for("operations.deployment", deployment_id=outcome.deployment_id, same=same)


def _same() -> tuple[Any, ...]:
    """The versions that the address names, if they are there."""
    found = []
    with reading(reader()) as conn:
        for one in request.args.getlist("same")[:50]:
            key, _, version = one.rpartition("/")
            if "\0" not in key and version.isascii() and version.isdigit() and len(version) < 10:
                found.append(definition(conn, key, int(version), tenant_id=current_actor().tenant_id))
    return tuple(row for row in found if row is not None)
