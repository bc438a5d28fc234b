"""Process definitions: listed, shown, started; and deployments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import Response, jsonify, request

from engine.commands.deploy import deploy
from engine.commands.may import may
from engine.commands.outcome import Deployed, Rejected
from engine.commands.start import start_instance
from engine.queries.rest.definitions import (
    DEFINITIONS,
    DEPLOYMENTS,
    RestDefinition,
    count_definitions,
    count_deployments,
    newest_definition,
    rest_definition,
    rest_definitions,
    rest_deployment,
    rest_deployments,
    xml_of,
)
from engine.queries.rest.executions import execution, local_variables
from engine.queries.rows import reading
from webapp.auth.identity import current_actor
from webapp.db import command_connection, reader
from webapp.engine_rest.blueprint import blueprint, known, missing, refuse, told
from webapp.engine_rest.instances import instance_of
from webapp.engine_rest.listing import listed, wanted
from webapp.engine_rest.reading import Sent, body, query, uuid_of
from webapp.engine_rest.shapes import definition_shape, deployment_shape, instance_shape
from webapp.engine_rest.values import write_variables

UNSUPPORTED_AT_START = ("startInstructions", "caseInstanceId")


@blueprint.get("/process-definition")
@blueprint.get("/process-definition/")
def list_definitions() -> Response:
    asked = wanted(query(), DEFINITIONS)
    with listed(), reading(reader()) as conn:
        return jsonify([definition_shape(each) for each in rest_definitions(conn, asked, tenant_id=current_actor().tenant_id)])


@blueprint.get("/process-definition/count")
def count_all_definitions() -> Response:
    asked = wanted(query(), DEFINITIONS)
    with reading(reader()) as conn:
        return jsonify(count=count_definitions(conn, asked, tenant_id=current_actor().tenant_id))


@blueprint.get("/process-definition/<definition_id>")
def show_definition(definition_id: str) -> Response:
    return jsonify(definition_shape(_by_id(definition_id)))


@blueprint.get("/process-definition/key/<key>")
def show_newest(key: str) -> Response:
    return jsonify(definition_shape(_by_key(key)))


@blueprint.get("/process-definition/key/<key>/tenant-id/<tenant>")
def show_newest_of_tenant(key: str, tenant: str) -> Response:
    return jsonify(definition_shape(_by_key(key, tenant)))


@blueprint.get("/process-definition/<definition_id>/xml")
def show_xml(definition_id: str) -> Response:
    return _xml(_by_id(definition_id))


@blueprint.get("/process-definition/key/<key>/xml")
def show_newest_xml(key: str) -> Response:
    return _xml(_by_key(key))


@blueprint.post("/process-definition/<definition_id>/start")
def start(definition_id: str) -> Response:
    return _start(_by_id(definition_id), exactly=True)


@blueprint.post("/process-definition/key/<key>/start")
def start_newest(key: str) -> Response:
    return _start(_by_key(key))


@blueprint.post("/process-definition/key/<key>/tenant-id/<tenant>/start")
def start_newest_of_tenant(key: str, tenant: str) -> Response:
    return _start(_by_key(key, tenant))


def _start(definition: RestDefinition, *, exactly: bool = False) -> Response:
    """The new instance; with `withVariablesInReturn` with what its process scope has now."""
    sent = body()
    for name in UNSUPPORTED_AT_START:
        if sent.values.get(name):
            raise told(400, f"{name} is not supported")
    outcome = known(
        start_instance(
            command_connection(),
            definition.key,
            actor=current_actor(),
            variables=sent.variables("variables"),
            business_key=sent.text("businessKey"),
            version=definition.version if exactly else None,
        ),
        what=f"instantiate process definition {definition.id}",
    )
    found = instance_of(outcome.instance_id)
    assert found is not None, "who starts an instance may see it"
    shape = instance_shape(found)
    if sent.truth("withVariablesInReturn"):
        process = execution(reader(), current_actor(), found.id)
        shape["variables"] = write_variables(local_variables(reader(), process)) if process is not None else {}
    return jsonify(shape)


def _by_id(definition_id: str) -> RestDefinition:
    id = uuid_of(definition_id)
    found = rest_definition(reader(), id, tenant_id=current_actor().tenant_id) if id is not None else None
    if found is None:
        raise missing("process definition", definition_id)
    return found


def _by_key(key: str, tenant: str = "") -> RestDefinition:
    """The newest version. A tenant must be the actor's own."""
    mine = current_actor().tenant_id
    found = newest_definition(reader(), key, tenant_id=mine) if "\0" not in key and tenant in ("", mine) else None
    if found is None:
        of_tenant = f" and tenant-id: {tenant}" if tenant else ""
        raise told(404, f"No matching process definition with key: {key}{of_tenant}")
    return found


def _xml(definition: RestDefinition) -> Response:
    if not may(current_actor(), "see", "definition"):
        raise told(403, "not allowed: files are for operators")
    return jsonify(id=definition.id, bpmn20Xml=xml_of(reader(), definition.id).decode("utf-8", "replace"))


# ---- deployments

SETTINGS = (
    "deployment-name",
    "enable-duplicate-filtering",
    "deploy-changed-only",
    "deployment-source",
    "deployment-activation-time",
    "tenant-id",
    "name",
)


@blueprint.post("/deployment/create")
def create_deployment() -> Response:
    """Files under any names of their own. Those that are unchanged get no new version, asked for or not."""
    if request.mimetype != "multipart/form-data":
        raise told(415, f"expected multipart/form-data, found {request.mimetype or 'no content type'}")
    sent = _settings()
    uploads = [upload for _, upload in request.files.items(multi=True)]
    if not uploads:
        raise told(400, "No deployment resources contained in the form upload.")
    files = [(upload.filename or f"file {place}", upload.read()) for place, upload in enumerate(uploads, start=1)]
    outcome = deploy(command_connection(), files, actor=current_actor(), name=(sent.text("deployment-name") or "")[:255])
    if isinstance(outcome, Rejected):
        if outcome.problems:
            raise told(403 if outcome.status == 403 else 400, _problems(outcome))
        refuse(outcome, what="deploy")
    return _deployed(outcome)


def _settings() -> Sent:
    unknown = sorted(set(request.form) - set(SETTINGS))
    if unknown:
        raise told(400, f"{', '.join(unknown)}: expected files, and of settings {', '.join(SETTINGS)}")
    sent = Sent({name: value for name, value in request.form.items() if value})
    if sent.has("deployment-activation-time"):
        raise told(400, "deployment-activation-time is not supported")
    if sent.has("tenant-id") and sent.text("tenant-id") != current_actor().tenant_id:
        raise told(400, "tenant-id: expected the tenant of whoever deploys, or none")
    return sent


def _problems(rejected: Rejected) -> str:
    """Every problem of the files, one to a line."""
    said = []
    for each in rejected.problems:
        place = f"{getattr(each, 'file', '') or ''}:{getattr(each, 'line', None) or ''}".strip(":")
        what, why = getattr(each, "what", None) or getattr(each, "message", ""), getattr(each, "why", None)
        said.append(f"{place}: {what}" + (f"; expected {why}" if why else ""))
    return "\n".join(said)[:16_000]


def _deployed(outcome: Deployed) -> Response:
    """What is new in it. Nothing new: the deployment that brought the unchanged version."""
    tenant = current_actor().tenant_id
    brought = [rest_definition(reader(), each.id, tenant_id=tenant) for each in outcome.definitions]
    versions = [(each, found) for each, found in zip(outcome.definitions, brought, strict=True) if found is not None]
    deployment_id = outcome.deployment_id or next((found.deployment_id for _, found in versions), None)
    found = rest_deployment(reader(), deployment_id, tenant_id=tenant) if deployment_id is not None else None
    shape: dict[str, Any] = deployment_shape(found) if found is not None else dict(_NO_DEPLOYMENT)
    new = {str(version.id): definition_shape(version) for each, version in versions if not each.unchanged}
    return jsonify(
        shape
        | {
            "deployedProcessDefinitions": new or None,
            "deployedCaseDefinitions": None,
            "deployedDecisionDefinitions": None,
            "deployedDecisionRequirementsDefinitions": None,
        }
    )


_NO_DEPLOYMENT: Mapping[str, Any] = {"links": [], "id": None, "name": None, "source": None, "deploymentTime": None, "tenantId": None}
"""Decisions and forms alone, all of them unchanged."""


@blueprint.get("/deployment")
def list_deployments() -> Response:
    _operators()
    asked = wanted(query(), DEPLOYMENTS)
    with listed(), reading(reader()) as conn:
        return jsonify([deployment_shape(each) for each in rest_deployments(conn, asked, tenant_id=current_actor().tenant_id)])


@blueprint.get("/deployment/count")
def count_all_deployments() -> Response:
    _operators()
    asked = wanted(query(), DEPLOYMENTS)
    with reading(reader()) as conn:
        return jsonify(count=count_deployments(conn, asked, tenant_id=current_actor().tenant_id))


@blueprint.get("/deployment/<deployment_id>")
def show_deployment(deployment_id: str) -> Response:
    _operators()
    id = uuid_of(deployment_id)
    found = rest_deployment(reader(), id, tenant_id=current_actor().tenant_id) if id is not None else None
    if found is None:
        raise missing("Deployment", deployment_id)
    return jsonify(deployment_shape(found))


def _operators() -> None:
    if not may(current_actor(), "see", "deployment"):
        raise told(403, "not allowed: deployments are for operators")
