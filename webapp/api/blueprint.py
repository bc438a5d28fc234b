"""The API's blueprint, and what holds for each of its routes."""

from __future__ import annotations

from flask import Blueprint, Response, abort, request

from engine.queries.rows import BadCursor
from webapp.errors import problem

blueprint = Blueprint("api", __name__, url_prefix="/api/v1")

JSON_BYTES = 2 * 1024 * 1024
"""The largest JSON body. Deployments are multipart and have the application's own limit."""


@blueprint.before_request
def limit_json() -> None:
    if request.mimetype != "multipart/form-data":
        request.max_content_length = JSON_BYTES
        # The check of a session's CSRF token has opened the body under the wider limit of forms.
        if (request.content_length or 0) > JSON_BYTES:
            abort(413)


@blueprint.after_request
def name_the_state(response: Response) -> Response:
    """A strong ETag of the body; 304 for whoever has it already."""
    if request.method in ("GET", "HEAD") and response.status_code == 200 and not response.is_streamed:
        response.add_etag()
        response.make_conditional(request)
    return response


@blueprint.after_app_request
def name_the_scheme(response: Response) -> Response:
    """A 401 says how to sign in (RFC 9110, section 11.6.1)."""
    if response.status_code == 401 and request.path.startswith("/api/"):
        response.headers["WWW-Authenticate"] = 'Bearer realm="baton"'
    if response.status_code == 401 and request.path.startswith("/engine-rest/"):
        response.headers["WWW-Authenticate"] = 'Basic realm="baton", Bearer realm="baton"'
    return response


@blueprint.errorhandler(BadCursor)
def bad_cursor(error: BadCursor) -> Response:
    return problem(422, "invalid", "cursor: expected the next_cursor of this list", problems=[{"field": "cursor", "message": str(error)}])
