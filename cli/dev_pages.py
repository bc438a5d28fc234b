"""The pages of the mail sink and of the sample service, under /dev. They exist only where `baton up` started these two."""

from __future__ import annotations

from datetime import UTC, datetime
from math import isfinite
from typing import Any

import httpx
from flask import Blueprint, abort, current_app, redirect, render_template, request, url_for

from engine.config import Settings
from webapp.auth.identity import operators_only

blueprint = Blueprint("dev", __name__, url_prefix="/dev")

SECONDS = 3.0
DELAYS = (0, 0.2, 1, 3, 10, 30)
FAILURES = (0, 10, 25, 50, 90, 100)


@blueprint.get("/mail")
def mails() -> Any:
    """What was sent, newest first."""
    items = _ask("GET", "/mails")["items"]
    return render_template("dev/mails.html", mails=[{**mail, "at": _time(mail["at"])} for mail in items])


@blueprint.get("/mail/<mail_id>")
def mail(mail_id: str) -> Any:
    """One mail."""
    found = _ask("GET", f"/mails/{mail_id}")
    return render_template("dev/mail.html", mail={**found, "at": _time(found["at"])})


@blueprint.get("/service")
def service() -> Any:
    """How the sample service answers, and its last calls."""
    calls = [{**call, "at": _time(call["at"])} for call in _ask("GET", "/calls")["items"][:50]]
    return render_template("dev/service.html", behaviour=_ask("GET", "/settings"), calls=calls, delays=DELAYS, failures=FAILURES)


@blueprint.post("/service")
@operators_only
def change_service() -> Any:
    """Set its delay and how often it fails."""
    try:
        wanted = {"delay_seconds": float(request.form["delay_seconds"]), "failure_percent": int(request.form["failure_percent"])}
    except ValueError:
        abort(422)
    if not isfinite(wanted["delay_seconds"]):
        abort(422)
    _ask("PUT", "/settings", wanted)
    return redirect(url_for("dev.service"), 303)


def _ask(method: str, path: str, body: Any = None) -> Any:
    """Ask the development services; their 404 and 422 are ours, and 503 when they do not answer."""
    settings: Settings = current_app.config["BATON"]
    try:
        answer = httpx.request(method, f"{settings.sample_service}{path}", json=body, timeout=SECONDS, trust_env=False)
    except httpx.HTTPError:
        abort(503)
    if answer.status_code != 200:
        abort(answer.status_code)
    return answer.json()


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
