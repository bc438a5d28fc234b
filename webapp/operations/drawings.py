"""What the diagram of a page draws: the model's own drawing, or one that is laid out when somebody first looks, and kept.

The model itself is never changed: `model` is the file as it was deployed.
"""

from __future__ import annotations

import hashlib
from urllib.parse import quote
from uuid import UUID

from flask import Response, abort, make_response, request

from engine.bpmn.xml import Unreadable
from engine.commands.drawings import keep_drawing
from engine.drawings.drawing import Drawing, draw
from engine.drawings.layout import has_drawing
from engine.queries.processes import Source, kept_drawing, source
from engine.queries.rows import reading
from webapp.db import command_connection, reader

NOTE = "Drawing-Note"  # a header: what static/js/diagram.js says below the drawing, or instead of it


def drawing_response(definition_id: UUID) -> Response:
    """XML for bpmn-js, or 404 and why there is none. A version never changes, so the browser keeps what is final."""
    drawing = drawing_of(definition_id)
    if drawing is None:
        abort(404)
    tag = hashlib.sha256((drawing.xml or b"") + drawing.note.encode()).hexdigest()[:32]
    if drawing.final and request.if_none_match.contains(tag):
        response = Response(status=304)
    else:
        response = make_response(drawing.xml or b"", 200 if drawing.xml is not None else 404)
        response.mimetype = "application/octet-stream"  # not XML: a model's markup must not become a page of ours
        response.headers.set("Content-Disposition", "attachment", filename="drawing.bpmn")
        response.headers[NOTE] = quote(drawing.note)
    response.set_etag(tag)
    response.headers["Cache-Control"] = "private, max-age=86400" if drawing.final and drawing.xml else "no-store"
    return response


def drawing_of(definition_id: UUID) -> Drawing | None:
    """The model's own drawing, or the one that is laid out and kept. None: there is no such version."""
    with reading(reader()) as conn:
        found = source(conn, definition_id)
        kept = kept_drawing(conn, definition_id)
    if found is None:
        return None
    return _own(found) or (Drawing(kept.xml, kept.note) if kept is not None else _laid_out(found))


def _own(found: Source) -> Drawing | None:
    """A file that today's rules cannot read is given as it is: bpmn-js says what it makes of it."""
    try:
        return Drawing(found.xml, "") if has_drawing(found.xml, found.key) else None
    except Unreadable:
        return Drawing(found.xml, "")


def _laid_out(found: Source) -> Drawing:
    drawing = draw(found.xml, found.key)
    if drawing.final:
        keep_drawing(command_connection(), found.id, xml=drawing.xml, note=drawing.note)
    return drawing
