"""Decisions with how they were made, and forms: deployed beside processes, listed and given as they were deployed."""

from __future__ import annotations

from typing import Any, TypedDict
from uuid import UUID

from flask import Response, abort

from engine.queries.catalogue import (
    DecisionVersion,
    FormVersion,
    decision_versions,
    form_content,
    form_versions,
)
from engine.queries.decisions import Evaluation, decision_source, evaluation_page
from engine.queries.rows import Connection, reading
from webapp.api.blueprint import blueprint
from webapp.api.bodies import Field, text
from webapp.api.describing import Raw, Sent, operation, paged
from webapp.api.files import file_of, model_file
from webapp.api.schemas import Listed, Moment
from webapp.api.shapes import listed, shaped
from webapp.auth.identity import current_actor
from webapp.db import reader

WHICH = {
    "key": Field(text(), None, about="Every version of this one."),
    "q": Field(text(), "", about="Part of a key or a name."),
}


class DecisionShape(TypedDict):
    id: UUID
    key: str
    version: int
    version_tag: str | None
    name: str
    resource_name: str
    documentation: str
    latest: bool
    deployed_at: Moment
    deployment_id: UUID


class EvaluationShape(TypedDict):
    """One time that a decision was made. `data`: its inputs, the rules that matched and its result."""

    id: int
    at: Moment
    process_instance_id: UUID | None
    element_id: str | None
    business_key: str | None
    data: dict[str, Any]


class DeployedFormShape(TypedDict):
    id: UUID
    key: str
    version: int
    version_tag: str | None
    resource_name: str
    latest: bool
    deployed_at: Moment
    deployment_id: UUID


@blueprint.get("/decision-definitions")
@operation(scope="read", needs=("see", "decision"), query={**WHICH, **paged()}, answers=Listed[DecisionShape])
def list_decisions(asked: Sent) -> Response:
    """The latest version of each decision by key, or every version of one, the newest first."""
    with reading(reader()) as conn:
        return listed(decision_versions(conn, tenant_id=current_actor().tenant_id, **asked), decision_shape)


@blueprint.get("/decision-definitions/<key>/versions/<int:version>/xml")
@operation(scope="read", needs=("see", "decision"), answers=Raw("application/octet-stream"))
def decision_xml(key: str, version: int) -> Response:
    """The file of a version of a decision, as it was deployed."""
    with reading(reader()) as conn:
        return model_file(decision_source(conn, _decision_or_404(conn, key, version)))


@blueprint.get("/decision-definitions/<key>/versions/<int:version>/evaluations")
@operation(scope="read", needs=("see", "decision"), query=paged(), answers=Listed[EvaluationShape])
def decision_evaluations(key: str, version: int, asked: Sent) -> Response:
    """How a version of a decision was made, newest first, as far back as the history goes."""
    with reading(reader()) as conn:
        decision_id = _decision_or_404(conn, key, version)
        return listed(evaluation_page(conn, decision_id, tenant_id=current_actor().tenant_id, **asked), evaluation_shape)


@blueprint.get("/forms")
@operation(scope="read", needs=("see", "form"), query={**WHICH, **paged()}, answers=Listed[DeployedFormShape])
def list_forms(asked: Sent) -> Response:
    """The latest version of each form by key, or every version of one, the newest first."""
    with reading(reader()) as conn:
        return listed(form_versions(conn, tenant_id=current_actor().tenant_id, **asked), deployed_form_shape)


@blueprint.get("/forms/<key>/versions/<int:version>/file")
@operation(scope="read", needs=("see", "form"), answers=Raw("application/octet-stream"))
def form_file(key: str, version: int) -> Response:
    """The file of a version of a form, as it was deployed."""
    with reading(reader()) as conn:
        found = form_content(conn, key, version, tenant_id=current_actor().tenant_id)
    if found is None:
        abort(404)
    return file_of(found.content, f"{found.key}-{found.version}.form")


def _decision_or_404(conn: Connection, key: str, version: int) -> UUID:
    every = decision_versions(conn, tenant_id=current_actor().tenant_id, key=key, limit=1_000).items
    found = next((one for one in every if one.version == version), None)
    if found is None:
        abort(404)
    return found.id


def decision_shape(found: DecisionVersion) -> DecisionShape:
    return shaped(DecisionShape, found)


def evaluation_shape(found: Evaluation) -> EvaluationShape:
    return shaped(EvaluationShape, found, process_instance_id=found.instance_id, data=dict(found.data))


def deployed_form_shape(found: FormVersion) -> DeployedFormShape:
    return shaped(DeployedFormShape, found)
