"""Deploy BPMN, DMN and form files: all of them or none, with every problem by file, element and line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from flask import Response, abort, make_response, redirect, render_template, request, url_for

from engine.bpmn.calls import bound_in_vain, called_in_vain, calls_of, decided_in_vain, decisions_of
from engine.bpmn.definition import Problem
from engine.commands.deploy import deploy
from engine.commands.outcome import Deployed, FieldProblem, Rejected
from engine.db.decisions import graph_of
from engine.dmn.definition import DecisionGraph
from engine.forms.reader import read_forms
from engine.forms.references import FormsThere, formed_in_vain, keys_and_files
from engine.queries.crew import known_handlers
from engine.queries.decisions import decision_keys, decisions, decisions_deployed_in
from engine.queries.forms import DeployedFormRow, form_version, forms_deployed_in, forms_there
from engine.queries.processes import DeployedRow, definition, deployed_in, keys_deployed
from engine.queries.rows import reading
from webapp.auth.identity import current_actor
from webapp.db import command_connection, reader
from webapp.operations import actions
from webapp.operations.blueprint import blueprint
from webapp.operations.words import model_of


@blueprint.get("/deploy")
def deploy_form() -> str:
    """The form; after a deployment that brought nothing new, what it was the same as."""
    return _form()


@blueprint.post("/deploy")
def deploy_files() -> Response:
    uploads = [upload for upload in request.files.getlist("file") if upload.filename]
    if not uploads:
        missing = (FieldProblem("file", "Choose at least one BPMN, DMN or form file."),)
        return make_response(_form(problems=missing), 422)
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
    brought = brought_by(deployment_id)
    if not brought.everything:
        abort(404)
    told = {"rows": brought.rows, "tables": brought.tables, "forms": brought.forms, "first": brought.everything[0]}
    return render_template("operations/deployment.html", **told, warnings=brought.warnings, **_unchanged(), here="deploy")


@dataclass(frozen=True, slots=True)
class Brought:
    """What one deployment brought: processes, decisions, forms; and what is worth knowing of each, as things are deployed now."""

    rows: list[DeployedRow]
    tables: list[DeployedRow]
    forms: list[DeployedFormRow]
    warnings: list[tuple[DeployedRow | DeployedFormRow, Problem]]

    @property
    def everything(self) -> tuple[DeployedRow | DeployedFormRow, ...]:
        return (*self.rows, *self.tables, *self.forms)


def brought_by(deployment_id: UUID) -> Brought:
    """All of it, or nothing if there is no such deployment."""
    tenant = current_actor().tenant_id
    with reading(reader()) as conn:
        rows = deployed_in(conn, deployment_id, tenant_id=tenant)
        tables = decisions_deployed_in(conn, deployment_id, tenant_id=tenant)
        forms = forms_deployed_in(conn, deployment_id, tenant_id=tenant)
    models = [(row, model) for row in rows if (model := model_of(row.id)) is not None]
    keys, files = ({name for _, model in models for name in keys_and_files(model)[place]} for place in (0, 1))
    with reading(reader()) as conn:
        formed = FormsThere(*forms_there(conn, keys, files, tenant_id=tenant))
        called = {key for _, model in models for _, key in calls_of(model)}
        there = keys_deployed(conn, called, tenant_id=tenant)
        known = known_handlers(conn)
        decided = decision_keys(conn, {key for _, model in models for _, key in decisions_of(model)}, tenant_id=tenant)
    warnings: list[tuple[DeployedRow | DeployedFormRow, Problem]] = [
        (row, warning)
        for row, model in models
        for warning in (
            *model.warnings,
            *called_in_vain(model, there),
            *decided_in_vain(model, decided),
            *formed_in_vain(model, formed),
            *bound_in_vain(model, known),
        )
    ]
    warnings += _warnings_of(tables)
    warnings += [(form, warning) for form in forms for warning in read_forms([(form.resource_name, form.content)]).warnings]
    return Brought(rows, tables, forms, warnings)


def _form(*, problems: tuple[Problem | FieldProblem, ...] = (), refusal: Rejected | None = None) -> str:
    same = dict.fromkeys(("same", "same_decisions", "same_forms"), ()) if problems or refusal else _unchanged()
    return render_template("operations/deploy.html", problems=problems, refusal=refusal, **same, here="deploy")


def _unchanged() -> dict[str, tuple[Any, ...]]:
    """What the address names as the same as before."""
    return {"same": _same(), "same_decisions": _same_decisions(), "same_forms": _same_forms()}


def _warnings_of(tables: list[DeployedRow]) -> list[tuple[DeployedRow, Problem]]:
    """Those of each file of decisions, once."""
    found = []
    for row in {table.resource_name: table for table in tables}.values():
        graph = graph_of(command_connection(), row.id)
        found += [(row, warning) for warning in graph.warnings] if isinstance(graph, DecisionGraph) else []
    return found


def _refused(rejected: Rejected) -> Response:
    if rejected.status in (403, 404):
        abort(rejected.status)
    problems: tuple[Problem | FieldProblem, ...] = rejected.problems
    return make_response(_form(problems=problems, refusal=rejected), rejected.status)


def _result_url(outcome: Deployed) -> str:
    same = [f"{one.key}/{one.version}" for one in outcome.definitions if one.unchanged]
    decided = [f"{one.key}/{one.version}" for one in outcome.decisions if one.unchanged]
    formed = [f"{one.key}/{one.version}" for one in outcome.forms if one.unchanged]
    if outcome.deployment_id is None:
        return url_for("operations.deploy_form", same=same, decided=decided, formed=formed)
    return url_for("operations.deployment", deployment_id=outcome.deployment_id, same=same, decided=decided, formed=formed)


def _same() -> tuple[Any, ...]:
    """The versions that the address names, if they are there."""
    with reading(reader()) as conn:
        found = [definition(conn, key, version, tenant_id=current_actor().tenant_id) for key, version in _named("same")]
    return tuple(row for row in found if row is not None)


def _same_decisions() -> tuple[Any, ...]:
    """The same for decisions."""
    with reading(reader()) as conn:
        wanted = _named("decided")
        found = {key: decisions(conn, tenant_id=current_actor().tenant_id, key=key) for key, _ in wanted}
    return tuple(row for key, version in wanted for row in found[key] if row.version == version)


def _same_forms() -> tuple[Any, ...]:
    """And for forms."""
    with reading(reader()) as conn:
        found = [form_version(conn, key, version, tenant_id=current_actor().tenant_id) for key, version in _named("formed")]
    return tuple(row for row in found if row is not None)


def _named(argument: str) -> list[tuple[str, int]]:
    """Keys and versions in the address."""
    pairs = [one.rpartition("/") for one in request.args.getlist(argument)[:50]]
    good = [(key, version) for key, _, version in pairs if "\0" not in key and version.isascii() and version.isdigit()]
    return [(key, int(version)) for key, version in good if len(version) < 10]
