"""Definitions: deployed together or not at all, and listed."""

from __future__ import annotations

from typing import TypedDict
from uuid import UUID

from flask import Response, jsonify

from engine.commands.delete_version import delete_version
from engine.commands.deploy import deploy
from engine.commands.outcome import Deployed, DeployedDecision, DeployedDefinition, DeployedForm, Refusal, Rejected
from engine.queries.catalogue import ProcessVersion, process_versions
from engine.queries.rows import reading
from webapp.api.blueprint import blueprint
from webapp.api.bodies import Field, request_id, text, truth
from webapp.api.describing import Sent, Upload, operation, paged
from webapp.api.schemas import Listed, Moment
from webapp.api.shapes import ModelProblemShape, each, listed, model_problem, refused, shaped
from webapp.auth.identity import current_actor
from webapp.db import command_connection, reader
from webapp.versions import version_or_404


class DeployedShape(TypedDict):
    """`unchanged`: identical to the latest version, so no new one was made."""

    id: UUID
    key: str
    version: int
    name: str
    file: str
    unchanged: bool
    warnings: list[ModelProblemShape]


class DeploymentShape(TypedDict):
    """`deployment_id` is null when nothing was new."""

    deployment_id: UUID | None
    definitions: list[DeployedShape]
    decisions: list[DeployedShape]
    forms: list[DeployedShape]


class DeletedVersionShape(TypedDict):
    """`latest_version`: which is the newest now, if another one is."""

    id: UUID
    key: str
    version: int
    latest_version: int | None


class DefinitionShape(TypedDict):
    id: UUID
    key: str
    version: int
    name: str
    status: str
    latest: bool
    deployed_at: Moment


@blueprint.post("/deployments")
@operation(
    scope="deploy",
    body=Upload("file", {"name": Field(text(empty=True), "", about="What to call it.")}, about="BPMN, DMN and form files, one or more."),
    answers={201: DeploymentShape, 200: DeploymentShape},
)
def create_deployment(sent: Sent) -> Response:
    """Deploy files, all or none.

    201, or 200 when every file was deployed before; 422 lists every problem of every file.
    """
    outcome = deploy(command_connection(), sent["file"], actor=current_actor(), name=sent["name"], request_id=request_id())
    if isinstance(outcome, Rejected):
        return refused(outcome)
    response = jsonify(deployment_shape(outcome))
    response.status_code = 200 if outcome.deployment_id is None else 201
    return response


@blueprint.post("/process-definitions/<key>/versions/<int:version>/delete")
@operation(
    scope="deploy",
    body={"reason": Field(text(longest=500), example="It asked for the wrong form.")},
    answers=DeletedVersionShape,
    refusals=(Refusal.DEFINITION_IN_USE, Refusal.DEFINITION_DELETING),
)
def delete(key: str, version: int, sent: Sent) -> Response:
    """Delete a version of a process by which no instance runs.

    It stays there for the histories, with the status `deleting`.
    """
    found = version_or_404(key, version)
    outcome = delete_version(command_connection(), found.id, actor=current_actor(), reason=sent["reason"], request_id=request_id())
    if isinstance(outcome, Rejected):
        return refused(outcome)
    return jsonify(id=outcome.definition_id, key=outcome.key, version=outcome.version, latest_version=outcome.newest)


@blueprint.get("/process-definitions")
@operation(
    scope="read",
    query={
        "key": Field(text(), None, about="Every version of this one."),
        "q": Field(text(), "", about="Part of a key or a name."),
        "startable": Field(truth, None, about="Only those that can be started by hand now, or only the others."),
        **paged(usual=200),
    },
    answers=Listed[DefinitionShape],
)
def list_definitions(asked: Sent) -> Response:
    """The latest version of each process by key, or every version of one, the newest first."""
    with reading(reader()) as conn:
        return listed(process_versions(conn, tenant_id=current_actor().tenant_id, **asked), definition_shape)


def deployment_shape(deployed: Deployed) -> DeploymentShape:
    return {
        "deployment_id": deployed.deployment_id,
        "definitions": each(deployed.definitions, _deployed),
        "decisions": each(deployed.decisions, _deployed),
        "forms": each(deployed.forms, _deployed),
    }


def _deployed(one: DeployedDefinition | DeployedDecision | DeployedForm) -> DeployedShape:
    return {
        "id": one.id,
        "key": one.key,
        "version": one.version,
        "name": one.name,
        "file": one.file,
        "unchanged": one.unchanged,
        "warnings": each(one.warnings, model_problem),
    }


def definition_shape(found: ProcessVersion) -> DefinitionShape:
    return shaped(DefinitionShape, found)
