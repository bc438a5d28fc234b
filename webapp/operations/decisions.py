"""Decisions, their versions, and one version's table with how it was made last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flask import Response, abort, render_template, request, url_for

from engine.core.known import NotDecidable
from engine.db.decisions import graph_of
from engine.dmn.definition import Decision, DecisionGraph, DecisionTable, LiteralExpression
from engine.queries.decisions import DecisionRow, Evaluation, decision_source, decisions, evaluation, evaluations
from engine.queries.rows import reading
from webapp.auth.identity import current_actor
from webapp.db import command_connection, reader
from webapp.fragments import tagged
from webapp.operations.blueprint import blueprint
from webapp.operations.decision_words import POLICIES, feel_text, inputs_text
from webapp.operations.files import file_response
from webapp.operations.listing import asked

SHOWN_RULES = 1_000
"""Rules of a table that its page shows; a person reads fewer, and the file has them all."""


@blueprint.get("/decisions")
def decision_list() -> str:
    return render_template("operations/decisions.html", **_list(), here="decisions")


@blueprint.get("/decisions/list")
def decision_rows() -> Response:
    context = _list()
    return tagged([context["rows"], context["asked"]], lambda: render_template("operations/_decisions_list.html", **context))


def _list() -> dict[str, Any]:
    wanted = asked("q")
    with reading(reader()) as conn:
        found = decisions(conn, tenant_id=current_actor().tenant_id, **wanted)
    return {"rows": found, "asked": wanted}


@blueprint.get("/decisions/<key>")
def decision_latest(key: str) -> str:
    return _page(key, None)


@blueprint.get("/decisions/<key>/<int(max=2147483647):version>")
def decision(key: str, version: int) -> str:
    return _page(key, version)


@blueprint.get("/decisions/<key>/<int(max=2147483647):version>/evaluations")
def decision_evaluations(key: str, version: int) -> Response:
    """How this version was made last, newest first."""
    row, _ = _versions(key, version)
    made = _made(row)
    if not request.args.get("evaluation"):
        made["chosen"] = None  # the table of the page marks none
    seen = [made["chosen"] and made["chosen"].id, *(each.id for each in made["evaluations"])]
    return tagged(seen, lambda: render_template("operations/_decision_evaluations.html", row=row, **made))


@blueprint.get("/decisions/<key>/<int(max=2147483647):version>/model")
def decision_model(key: str, version: int) -> Response:
    row, _ = _versions(key, version)
    with reading(reader()) as conn:
        return file_response(decision_source(conn, row.id), "dmn")


def _page(key: str, version: int | None) -> str:
    return render_template("operations/decision.html", **_shown(key, version), here="decisions")


def _versions(key: str, version: int | None) -> tuple[DecisionRow, list[DecisionRow]]:
    with reading(reader()) as conn:
        versions = decisions(conn, tenant_id=current_actor().tenant_id, key=key)
    row = next((found for found in versions if found.version == version or (version is None and found.latest)), None)
    if row is None:
        abort(404)
    return row, versions


def _shown(key: str, version: int | None) -> dict[str, Any]:
    row, versions = _versions(key, version)
    graph = graph_of(command_connection(), row.id)
    read = graph if isinstance(graph, DecisionGraph) else None
    decision = read.decisions[row.key] if read is not None else None
    table = decision.logic if decision is not None and isinstance(decision.logic, DecisionTable) else None
    made = _made(row)
    chosen = made["chosen"]
    return {
        **made,
        "row": row,
        "versions": versions,
        "why_not": graph.why if isinstance(graph, NotDecidable) else "",
        "decision": decision,
        "table": table,
        "literal": decision.logic if decision is not None and isinstance(decision.logic, LiteralExpression) else None,
        "rules_shown": SHOWN_RULES,
        "policy": POLICIES.get(table.hit_policy, "") if table is not None else "",
        "requirements": _requirements(read, decision),
        "matched": {rule["number"] for rule in chosen.data.get("rules", ())} if chosen is not None else set(),
    }


def _made(row: DecisionRow) -> dict[str, Any]:
    """How a version was made last; `chosen`: the evaluation that the address names, else the latest."""
    tenant, wanted = current_actor().tenant_id, request.args.get("evaluation", "")
    with reading(reader()) as conn:
        latest = evaluations(conn, row.id, tenant_id=tenant)
        chosen: Evaluation | None = latest[0] if latest else None
        if wanted.isascii() and wanted.isdigit() and len(wanted) < 19:
            chosen = evaluation(conn, row.id, int(wanted), tenant_id=tenant)
    here = url_for("operations.decision", key=row.key, version=row.version)
    return {"evaluations": latest, "chosen": chosen, "feel_text": feel_text, "inputs_text": inputs_text, "here_url": here}


# ---- what it requires


@dataclass(frozen=True, slots=True)
class Requirement:
    """One line of the requirements. `key`: of a decision; else it has no page."""

    what: str
    name: str
    key: str | None = None


def _requirements(graph: DecisionGraph | None, decision: Decision | None) -> list[Requirement]:
    """What the decision requires, and which decisions of its file require it."""
    if graph is None or decision is None:
        return []
    found = [Requirement("Decision", graph.decisions[key].name, key) for key in decision.decisions]
    found += [Requirement("Input", graph.inputs[key].name or key) for key in decision.inputs]
    found += [Requirement("Function", graph.knowledge[key].name) for key in decision.knowledge]
    by = [other for other in graph.decisions.values() if decision.key in other.decisions]
    return found + [Requirement("Required by", other.name, other.key) for other in by]
