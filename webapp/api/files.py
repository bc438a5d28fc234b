"""Files as they were deployed, and drawings, for programs. Never of a kind that a browser would render as a page of ours."""

from __future__ import annotations

from uuid import UUID

from flask import Response, abort, make_response

from engine.queries.decisions import DecisionSource
from engine.queries.processes import Source
from webapp.errors import problem
from webapp.operations.drawings import drawing_of


def model_file(found: Source | DecisionSource | None) -> Response:
    """The file of a version. 404 for None."""
    if found is None:
        abort(404)
    return file_of(found.xml, f"{found.key}-{found.version}.{'bpmn' if isinstance(found, Source) else 'dmn'}")


def file_of(content: bytes, name: str) -> Response:
    response = make_response(content)
    response.mimetype = "application/octet-stream"
    safe = "".join(sign if sign.isalnum() or sign in "-._" else "_" for sign in name)
    response.headers.set("Content-Disposition", "attachment", filename=safe)
    return response


def drawing_file(definition_id: UUID) -> Response:
    """The model with a diagram, or 404 with the reason why there is none."""
    drawing = drawing_of(definition_id)
    if drawing is None or drawing.xml is None:
        return problem(404, "not_found", drawing.note if drawing is not None else "")
    return file_of(drawing.xml, "drawing.bpmn")
