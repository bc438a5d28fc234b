"""The JSON of the API, field by field. Stable: tests from outside rely on these names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, TypeVar

from flask import Response, jsonify

from engine.bpmn.definition import Problem
from engine.commands.outcome import FieldProblem, Rejected
from engine.queries.rows import Page
from webapp.errors import problem

T = TypeVar("T")


def moment(at: datetime | None) -> str | None:
    """RFC 3339 with the offset."""
    return at.isoformat() if at else None


def refused(rejected: Rejected) -> Response:
    """A refusal as problem+json. `by` is a username, `by_name` what people call them; R13 has seen to it that they may be told."""
    return problem(
        rejected.status,
        rejected.refusal.value,
        rejected.detail,
        by=rejected.by,
        by_name=rejected.by_name,
        at=moment(rejected.at),
        problems=[a_problem(found) for found in rejected.problems] or None,
    )


def a_problem(found: Problem | FieldProblem) -> dict[str, Any]:
    match found:
        case FieldProblem():
            return {"field": found.field, "message": found.message}
        case Problem():
            return {"file": found.file, "element_id": found.element_id, "line": found.line, "what": found.what, "why": found.why}


def listed(page: Page[T], shape: Callable[[T], dict[str, Any]]) -> Response:
    return jsonify(items=each(page.items, shape), next_cursor=page.next_cursor)


def each(items: Iterable[T], shape: Callable[[T], dict[str, Any]]) -> list[dict[str, Any]]:
    return [shape(item) for item in items]
