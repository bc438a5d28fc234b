"""Whether this process lives, whether it can work, and what it has counted."""

from __future__ import annotations

import hmac
import logging
import time
from ipaddress import ip_address
from typing import Any

import psycopg
from flask import Blueprint, Flask, Response, abort, current_app, g, jsonify, request
from flask.blueprints import BlueprintSetupState
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from engine.config import Settings
from engine.queries.destinations import lags
from engine.queries.rows import reading
from webapp.auth.identity import public
from webapp.db import reader

log = logging.getLogger("baton.web")
blueprint = Blueprint("health", __name__)

REQUESTS = Counter("baton_web_requests_total", "Answered requests.", ("endpoint", "method", "status"))
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
SECONDS = Histogram("baton_web_request_seconds", "Time to answer.", ("endpoint",))


@blueprint.get("/health/live")
@public
def live() -> Any:
    """The process answers. Says nothing about the database, so a database restart restarts no web server."""
    return jsonify(status="live")


@blueprint.get("/health/ready")
@public
def ready() -> Any:
    """A query works and the schema is there."""
    try:
        reader().execute(text("SELECT 1 FROM person LIMIT 1"))
    except (SQLAlchemyError, psycopg.Error) as error:
        log.warning("not_ready error=%s", type(error).__name__)
        return jsonify(status="unavailable"), 503
    return jsonify(status="ready")


@blueprint.get("/metrics")
@public
def metrics() -> Any:
    """Prometheus. For a bearer of BATON_METRICS_TOKEN; where none is set, for the machine itself. Others see a 404."""
    settings: Settings = current_app.config["BATON"]
    if not _may_read(settings.metrics_token):
        abort(404)
    return Response(generate_latest() + _outbox(), mimetype=CONTENT_TYPE_LATEST)


def _outbox() -> bytes:
    """The lag of each destination, read when it is asked for: it is that of the database, not of this process."""
    try:
        with reading(reader()) as conn:
            found = lags(conn)
    except (SQLAlchemyError, psycopg.Error) as error:
        log.warning("lag_unknown error=%s", type(error).__name__)
        return b""
    registry = CollectorRegistry()
    gauge = Gauge(
        "baton_outbox_lag_seconds",
        "How long the oldest delivery is due; destination is empty for what no registered one covers.",
        ("tenant", "kind", "destination"),
        registry=registry,
    )
    for lag in found:
        gauge.labels(lag.tenant_id, lag.kind, lag.name).set(lag.seconds)
    return generate_latest(registry)


def _may_read(token: str | None) -> bool:
    if token is not None:
        return hmac.compare_digest(request.headers.get("Authorization", "").encode(), f"Bearer {token}".encode())
    # Behind a proxy on this machine everybody comes from loopback, so a forwarded request is never the machine itself.
    if "X-Forwarded-For" in request.headers or "Forwarded" in request.headers:
        return False
    return request.remote_addr is not None and ip_address(request.remote_addr).is_loopback


@blueprint.record_once
def count_requests(state: BlueprintSetupState) -> None:
    app = state.app
    assert isinstance(app, Flask), "expected the application itself"

    def begin() -> None:
        g.began = time.monotonic()

    def end(response: Response) -> Response:
        endpoint = request.endpoint or "none"
        method = request.method if request.method in METHODS else "other"  # anybody may invent methods, each a counter for ever
        REQUESTS.labels(endpoint, method, response.status_code).inc()
        if endpoint != "live.stream" and "began" in g:
            SECONDS.labels(endpoint).observe(time.monotonic() - g.began)
        return response

    app.before_request_funcs.setdefault(None, []).insert(0, begin)
    app.after_request(end)
