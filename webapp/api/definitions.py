"""Definitions: deployed together or not at all, and listed."""

from __future__ import annotations

from typing import Any

from flask import Response, jsonify, request

from engine.commands.delete_version import delete_version
from engine.commands.deploy import deploy
from engine.commands.outcome import Deployed, DeployedDecision, DeployedDefinition, DeployedForm, Rejected
from engine.queries.api import ApiDefinition, api_definitions
from engine.queries.rows import reading
from webapp.api.blueprint import blueprint
from webapp.api.bodies import Field, json_body, query, request_id, text
from webapp.api.shapes import a_problem, each, moment, refused
from webapp.auth.identity import current_actor
from webapp.db import command_connection, reader
from webapp.errors import problem
from webapp.versions import version_or_404


@blueprint.post("/deployments")
def create_deployment() -> Response:
    """Multipart field `file`, one or more. 201, or 200 when every file was deployed before; 422 lists every problem."""
    if request.mimetype != "multipart/form-data":
        return problem(415, "unsupported_media_type", f"expected multipart/form-data, found {request.mimetype or 'no content type'}")
    unknown = sorted({*request.files, *request.form} - {"file", "name", "csrf_token"})
    if unknown:
        named = [{"field": name, "message": "unknown field; expected file or name"} for name in unknown]
        return problem(422, "invalid", f"unknown field: {', '.join(unknown)}", problems=named)
    uploads = request.files.getlist("file")
    if not uploads:
        missing = [{"field": "file", "message": "expected at least one BPMN, DMN or form file, found none"}]
        return problem(422, "invalid", "file: expected at least one BPMN, DMN or form file, found none", problems=missing)
    texts = {
        "name": request.form.get("name", ""),
        **{f"file {place}": upload.filename or "" for place, upload in enumerate(uploads, start=1)},
    }
    if nul := [{"field": field, "message": "expected text without the character U+0000"} for field, text in texts.items() if "\0" in text]:
        return problem(422, "invalid", f"{nul[0]['field']}: {nul[0]['message']}", problems=nul)
    files = [(upload.filename or f"file {place}", upload.read()) for place, upload in enumerate(uploads, start=1)]
    outcome = deploy(command_connection(), files, actor=current_actor(), name=request.form.get("name", "")[:255], request_id=request_id())
    if isinstance(outcome, Rejected):
        return refused(outcome)
    response = jsonify(deployment_shape(outcome))
    response.status_code = 200 if outcome.deployment_id is None else 201
    return response


@blueprint.post("/process-definitions/<key>/versions/<int:version>/delete")
def delete(key: str, version: int) -> Response:
    """`{"reason"}`; 409 `definition_in_use` while instances of it run. Which version is the newest now, if another one is."""
    sent = json_body(reason=Field(text(longest=500)))
    found = version_or_404(key, version)
    outcome = delete_version(command_connection(), found.id, actor=current_actor(), reason=sent["reason"], request_id=request_id())
    if isinstance(outcome, Rejected):
        return refused(outcome)
    return jsonify(id=outcome.definition_id, key=outcome.key, version=outcome.version, latest_version=outcome.newest)


@blueprint.get("/process-definitions")
def list_definitions() -> Response:
    """The latest version of each, for whoever may start them; with `key`, every version of one."""
    asked = query(key=Field(text(), None))
    with reading(reader()) as conn:
        found = api_definitions(conn, tenant_id=current_actor().tenant_id, **asked)
    return jsonify(items=each(found, definition_shape), next_cursor=None)


def deployment_shape(deployed: Deployed) -> dict[str, Any]:
    return {
        "deployment_id": deployed.deployment_id,
        "definitions": each(deployed.definitions, _deployed),
        "decisions": each(deployed.decisions, _deployed),
        "forms": each(deployed.forms, _deployed),
    }


def _deployed(one: DeployedDefinition | DeployedDecision | DeployedForm) -> dict[str, Any]:
    return {
        "id": one.id,
        "key": one.key,
        "version": one.version,
        "name": one.name,
        "file": one.file,
        "unchanged": one.unchanged,
        "warnings": each(one.warnings, a_problem),
    }


def definition_shape(found: ApiDefinition) -> dict[str, Any]:
    return {
        "id": found.id,
        "key": found.key,
        "version": found.version,
        "name": found.name,
        "status": found.status,
        "latest": found.latest,
        "deployed_at": moment(found.deployed_at),
    }
