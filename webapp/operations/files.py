"""The file of a version, as it was deployed, for who wants to have it."""

from __future__ import annotations

from flask import Response, abort, make_response, request

from engine.queries.decisions import DecisionSource
from engine.queries.processes import Source


def file_response(found: Source | DecisionSource | None, extension: str) -> Response:
    """It never changes, so the browser keeps it; nor is it ever rendered by the browser itself. 404 for None."""
    if found is None:
        abort(404)
    tag = found.content_hash.hex()[:32]
    if request.if_none_match.contains(tag):
        response = Response(status=304)
    else:
        response = make_response(found.xml)
        response.mimetype = "application/octet-stream"  # not XML: a model's markup must not become a page of ours
        name = "".join(sign if sign.isalnum() or sign in "-._" else "_" for sign in f"{found.key}-{found.version}.{extension}")
        response.headers.set("Content-Disposition", "attachment", filename=name)
    response.set_etag(tag)
    response.headers["Cache-Control"] = "private, max-age=86400"
    return response
