"""Every error as a calm page, as problem+json under /api, or as Camunda's under /engine-rest. Never a stack trace, never a
driver's message."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any

import psycopg
from flask import Flask, Response, current_app, flash, g, jsonify, render_template, request
from flask_wtf.csrf import CSRFError
from psycopg_pool import PoolTimeout
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolExhausted
from werkzeug.exceptions import HTTPException

from engine.ids import new_id
from webapp.auth.scopes import MissingScope
from webapp.security import honest_but_stale, is_api, is_engine_rest

log = logging.getLogger("baton.web")

PAGES = (400, 403, 404, 405, 409, 413, 415, 422, 429, 500, 503)
REASONS = {
    400: "bad_request",
    401: "not_signed_in",
    403: "not_allowed",
    404: "not_found",
    405: "method_not_allowed",
    409: "conflict",
    413: "too_large",
    415: "unsupported_media_type",
    422: "invalid",
    429: "too_many_requests",
    503: "unavailable",
}
LOST = (psycopg.OperationalError, psycopg.InterfaceError)  # connection lost, server restarting, statement timed out


def init_app(app: Flask) -> None:
    app.register_error_handler(CSRFError, forged)
    app.register_error_handler(MissingScope, beyond_scope)
    app.register_error_handler(HTTPException, http_error)
    app.register_error_handler(DBAPIError, database_error)
    app.register_error_handler(psycopg.Error, database_error)
    app.register_error_handler(PoolExhausted, unavailable)
    app.register_error_handler(PoolTimeout, unavailable)
    app.register_error_handler(Exception, bug)


def problem(status: int, reason: str, detail: str = "", **more: Any) -> Response:
    """application/problem+json (RFC 9457) with a machine-readable `reason`."""
    body = {"type": "about:blank", "status": status, "reason": reason, "detail": detail or reason.replace("_", " ")}
    response = jsonify(body | {name: value for name, value in more.items() if value is not None})
    response.status_code = status
    response.mimetype = "application/problem+json"
    return response


def rest_exception(status: int, message: str) -> Response:
    """The error of /engine-rest, as Camunda 7 has it. Its content type is `application/json`, and nothing more."""
    response = jsonify(type="RestException", message=message, code=status)
    response.status_code = status
    return response


def told(status: int, reason: str, detail: str = "", **more: Any) -> Response:
    """An error in the shape of whoever asks."""
    if is_engine_rest():
        return rest_exception(status, detail or reason.replace("_", " "))
    return problem(status, reason, detail, **more) if is_api() else error_page(status)


def http_error(error: HTTPException) -> Any:
    """4xx and deliberate 5xx. An exception that already carries its response passes through."""
    if error.response is not None:
        return error.response
    status = error.code or 500
    response = told(status, REASONS.get(status, "error"), error.description or "")
    for name in ("Allow", "Retry-After"):
        if value := error.get_response().headers.get(name):
            response.headers[name] = value
    return response


def beyond_scope(error: MissingScope) -> Any:
    """An API key that is limited asked for more: which scope is missing, also as RFC 6750 says it."""
    response = told(403, "missing_scope", error.description or "", scope=error.scope)
    named = f', scope="{error.scope}"' if error.scope else ""
    response.headers["WWW-Authenticate"] = f'Bearer realm="baton", error="insufficient_scope"{named}'
    return response


def forged(error: CSRFError) -> Any:
    """A change without this session's token did nothing (S69)."""
    log.info("csrf_refused path=%s endpoint=%s", request.path, request.endpoint)
    if is_api():
        return problem(400, "csrf", error.description or "")
    token = request.form.get("csrf_token") or request.headers.get("X-CSRFToken")
    if not honest_but_stale(token):
        return error_page(400, template="errors/csrf.html")
    if request.headers.get("HX-Request") == "true":
        flash("Nothing was done: the page was no longer current. Please press again.", "warn")
        return Response(status=400, headers={"HX-Refresh": "true"})
    view: Any = current_app.view_functions[request.endpoint or ""]
    if (again := getattr(view, "when_stale", None)) is not None:
        return again(**(request.view_args or {}))
    kept = [(name, value) for name, value in request.form.items(multi=True) if name != "csrf_token"]
    return error_page(400, template="errors/again.html", kept=kept)


def database_error(error: Exception) -> Any:
    """A lost connection is a moment's trouble, not a bug: 503, and pressing again is safe."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    return unavailable(error) if isinstance(cause, LOST) else bug(error)


def unavailable(error: Exception) -> Any:
    log.warning("database_unavailable path=%s error=%s", request.path, type(error).__name__)
    response = told(503, "unavailable", "The database cannot be reached at the moment. Repeating the request is safe.")
    response.headers["Retry-After"] = "2"
    return response


def bug(error: Exception) -> Any:
    reference = _reference()
    log.error("unexpected_error reference=%s path=%s", reference, request.path, exc_info=error)
    return told(500, "internal_error", f"Nothing was half done. Reference {reference}.", reference=reference)


def error_page(status: int, *, template: str | None = None, **context: Any) -> Response:
    """The page of an error. It asks the database nothing: it must render when there is none."""
    name = template or f"errors/{status if status in PAGES else 400 if status < 500 else 500}.html"
    html = render_template(name, status=status, reference=_reference(), at=datetime.now(UTC), **context)
    return Response(html, status=status)


def _reference() -> str:
    """A short name for this request, the same in the log and on the page."""
    if "reference" not in g:
        g.reference = str(new_id())[-12:]
    return str(g.reference)
