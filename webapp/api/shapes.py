"""The JSON of the API, field by field. Stable: tests from outside rely on these names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, TypedDict, TypeVar, cast, overload

from flask import Response, jsonify

from engine.bpmn.definition import Problem
from engine.commands.outcome import FieldProblem, Refusal, Rejected
from engine.queries.rows import Page
from webapp.errors import problem

T = TypeVar("T")
Shape = TypeVar("Shape")

CASE_OVER = (Refusal.INSTANCE_ENDED, Refusal.INSTANCE_SUSPENDED, Refusal.INSTANCE_CANCELLING)
"""What any change of a case may be refused with."""


class ModelProblemShape(TypedDict):
    """What is wrong in a model, and where."""

    file: str | None
    element_id: str | None
    line: int | None
    what: str
    why: str


class FieldProblemShape(TypedDict):
    """What is wrong in what was sent. `field` is empty for the body as a whole."""

    field: str
    message: str


@overload
def moment(at: datetime) -> str: ...
@overload
def moment(at: datetime | None) -> str | None: ...
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


def a_problem(found: Problem | FieldProblem) -> ModelProblemShape | FieldProblemShape:
    match found:
        case FieldProblem():
            return {"field": found.field, "message": found.message}
        case Problem():
            return model_problem(found)


def model_problem(found: Problem) -> ModelProblemShape:
    return {"file": found.file, "element_id": found.element_id, "line": found.line, "what": found.what, "why": found.why}


def shaped(kind: type[Shape], row: object, /, **more: Any) -> Shape:
    """A TypedDict from the attributes of `row` that are called as its fields; `more`: those that are called or written otherwise."""
    names = [*kind.__required_keys__, *kind.__optional_keys__]  # type: ignore[attr-defined]  # what every TypedDict has
    found = {name: getattr(row, name) for name in names if name not in more} | more
    return cast(Shape, {name: moment(value) if isinstance(value, datetime) else value for name, value in found.items()})


def listed(page: Page[T], shape: Callable[[T], Shape]) -> Response:
    return jsonify(items=each(page.items, shape), next_cursor=page.next_cursor)


def each(items: Iterable[T], shape: Callable[[T], Shape]) -> list[Shape]:
    return [shape(item) for item in items]
