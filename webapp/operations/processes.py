"""Definitions, their versions, and one version's diagram with what stands where."""

from __future__ import annotations

from collections import Counter
from typing import Any

from flask import Response, abort, render_template, request, url_for

from engine.bpmn.definition import PART
from engine.commands.delete_version import delete_version
from engine.commands.outcome import Rejected
from engine.queries.processes import ElementCounts, definitions, element_counts, source
from engine.queries.resting import suspension
from engine.queries.rows import reading
from engine.queries.schedules import schedules
from webapp.auth.identity import current_actor
from webapp.db import command_connection, reader
from webapp.fragments import tagged
from webapp.operations import actions
from webapp.operations.blueprint import blueprint
from webapp.operations.drawings import drawing_response
from webapp.operations.files import file_response
from webapp.operations.listing import asked
from webapp.operations.model_text import Step, outline
from webapp.operations.words import model_of
from webapp.versions import version_or_404

REASON = 500  # characters


@blueprint.get("/processes")
def processes() -> str:
    return render_template("operations/processes.html", **_list(), here="processes")


@blueprint.get("/processes/list")
def processes_list() -> Response:
    context = _list()
    return tagged([context["rows"], context["asked"]], lambda: render_template("operations/_processes_list.html", **context))


def _list() -> dict[str, Any]:
    wanted = asked("q")
    with reading(reader()) as conn:
        found = definitions(conn, tenant_id=current_actor().tenant_id, **wanted)
    return {"rows": found, "asked": wanted}


@blueprint.get("/processes/<key>")
def process_latest(key: str) -> str:
    return _page(key, None)


@blueprint.get("/processes/<key>/<int(max=2147483647):version>")
def process(key: str, version: int) -> str:
    return _page(key, version)


@blueprint.post("/processes/<key>/<int(max=2147483647):version>/delete")
def delete_process(key: str, version: int) -> Response:
    """For good. Refused while instances of it run."""
    row = version_or_404(key, version)
    reason = request.form.get("reason", "").strip()[:REASON]
    outcome = delete_version(command_connection(), row.id, actor=current_actor(), reason=reason, request_id=actions.request_id())
    back = url_for("operations.process", key=key, version=version)
    if isinstance(outcome, Rejected):
        return actions.refused(outcome, back=back, what=f"delete version {version}")
    then = f" Version {outcome.newest} is the newest again, and starts as it did." if outcome.newest is not None else ""
    return actions.done(f"Version {version} is deleted.{then}", back=back)


@blueprint.get("/processes/<key>/<int(max=2147483647):version>/elements")
def process_elements(key: str, version: int) -> Response:
    """The outline with counts: the text beside the diagram, and its equivalent."""
    shown = _shown(key, version)
    return tagged(shown["counts"], lambda: render_template("operations/_process_elements.html", **shown))


@blueprint.get("/processes/<key>/<int(max=2147483647):version>/model")
def process_model(key: str, version: int) -> Response:
    row = version_or_404(key, version)
    return model_response(row.id)


@blueprint.get("/processes/<key>/<int(max=2147483647):version>/drawing")
def process_drawing(key: str, version: int) -> Response:
    return drawing_response(version_or_404(key, version).id)


def model_response(definition_id: Any) -> Response:
    with reading(reader()) as conn:
        return file_response(source(conn, definition_id), "bpmn")


def counts_shape(counts: list[ElementCounts]) -> dict[str, Any]:
    """What static/js/diagram.js draws on the elements. What is done around one that is not drawn counts at that one."""
    drawn: dict[str, Counter[str]] = {}
    for row in counts:
        drawn.setdefault(row.element_id.partition(PART)[0], Counter()).update({"tokens": row.tokens, "incidents": row.incidents})
    return {"elements": drawn}


def _page(key: str, version: int | None) -> str:
    return render_template("operations/process.html", **_shown(key, version), here="processes")


def _shown(key: str, version: int | None) -> dict[str, Any]:
    tenant = current_actor().tenant_id
    with reading(reader()) as conn:
        versions = definitions(conn, tenant_id=tenant, key=key)
        row = next((found for found in versions if found.version == version or (version is None and found.latest)), None)
        if row is None:
            abort(404)
        counts = element_counts(conn, definition_id=row.id)
        timed = schedules(conn, row.id)
        stop = suspension(conn, row.id)
    model = model_of(row.id)
    steps: tuple[Step, ...] = outline(model) if model else ()
    return {
        "counts_json": counts_shape(counts),
        "row": row,
        "versions": versions,
        "counts": counts,
        "schedules": timed,
        "step_names": {key: node.name or key for key, node in model.nodes.items()} if model else {},
        "by_element": {found.element_id: found for found in counts},
        "steps": steps,
        "model": model,
        "suspension": stop if row.status == "suspended" else None,
        "asks_to_suspend": bool(request.args.get("suspend")) and row.status == "active",
        "asks_to_delete": bool(request.args.get("delete")) and row.status != "deleting",
    }
