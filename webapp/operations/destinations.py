"""Destinations of deliveries: one page each, with its limits, its secret, its pause and a test; and the form for a new one."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from flask import Response, abort, current_app, make_response, render_template, request, url_for

from engine.commands.destinations import (
    MOST_AT_A_TIME,
    MOST_BYTES,
    MOST_SECONDS,
    Wanted,
    add_destination,
    change_destination,
    remove_destination,
    rotate_secret,
    send_test,
)
from engine.commands.outcome import Rejected
from engine.queries.crew import deliveries
from engine.queries.destinations import DestinationRow, destinations
from engine.queries.rows import reading
from engine.webhooks import signing_secret
from webapp.auth.identity import current_actor
from webapp.db import command_connection, reader
from webapp.operations import actions
from webapp.operations.blueprint import blueprint

REASON = 500
HOUR = 3600.0
NUMBERS = {"concurrency": int, "redirects": int, "seconds": float, "max_bytes": int}
LIMITS = {"most_at_a_time": MOST_AT_A_TIME, "most_seconds": MOST_SECONDS, "most_bytes": MOST_BYTES}


@blueprint.get("/outbox/destinations/new")
def new_destination() -> str:
    return _form({"kind": "http", "redirects": "0"})


@blueprint.post("/outbox/destinations/new")
def register_destination() -> Response:
    name = request.form.get("name", "").strip()
    wanted = _wanted()
    if isinstance(wanted, dict):
        return make_response(_form(request.form, problems=wanted), 422)
    outcome = add_destination(command_connection(), name, wanted, actor=current_actor(), reason=_reason(), request_id=actions.request_id())
    if isinstance(outcome, Rejected):
        if outcome.status == 422:
            return make_response(_form(request.form, problems=_by_field(outcome)), 422)
        return actions.refused(outcome, back=url_for("operations.outbox"), what="register the destination")
    return _shown(name, salt=outcome.salt, said=f"{name} is registered.")


@blueprint.get("/outbox/destinations/<name>")
def destination(name: str) -> Response:
    return _shown(name)


@blueprint.post("/outbox/destinations/<name>/change")
def change_one_destination(name: str) -> Response:
    row, wanted = _row(name), _wanted()
    if isinstance(wanted, dict):
        return make_response(_page(row, problems=wanted, typed=request.form), 422)
    outcome = change_destination(
        command_connection(), name, wanted, actor=current_actor(), as_of=_as_of(), reason=_reason(), request_id=actions.request_id()
    )
    if isinstance(outcome, Rejected) and outcome.status == 422:
        return make_response(_page(row, problems=_by_field(outcome), typed=request.form), 422)
    return _answer(name, outcome, f"{name} is changed. It holds for what is written, or sent, from now on.", "change the destination")


@blueprint.post("/outbox/destinations/<name>/rotate")
def rotate_one_secret(name: str) -> Response:
    """The new secret is shown in the answer to the press, once: there is no page to come back to."""
    try:
        overlap = float(request.form.get("hours", "24")) * HOUR
    except ValueError:
        overlap = -1.0
    outcome = rotate_secret(
        command_connection(), name, actor=current_actor(), overlap=overlap, reason=_reason(), request_id=actions.request_id()
    )
    if isinstance(outcome, Rejected):
        return _answer(name, outcome, "", "make another secret")
    return _shown(name, salt=outcome.salt, said="There is another secret. The old ones sign beside it until their time is over.")


@blueprint.post("/outbox/destinations/<name>/test")
def test_one_destination(name: str) -> Response:
    outcome = send_test(
        command_connection(), name, actor=current_actor(), to=request.form.get("to", "").strip(), request_id=actions.request_id()
    )
    return _answer(name, outcome, "A test is on its way; what became of it stands below.", "send a test")


@blueprint.post("/outbox/destinations/<name>/remove")
def remove_one_destination(name: str) -> Response:
    outcome = remove_destination(command_connection(), name, actor=current_actor(), reason=_reason(), request_id=actions.request_id())
    said = f"{name} is removed. What was written for it is still sent as it says."
    return _answer(name, outcome, said, "remove the destination", back=url_for("operations.outbox"))


def _answer(name: str, outcome: Any, said: str, what: str, *, back: str | None = None) -> Response:
    page = url_for("operations.destination", name=name)
    if isinstance(outcome, Rejected):
        return actions.refused(outcome, back=page, what=what)
    return actions.done(said, back=back or page)


def _row(name: str) -> DestinationRow:
    with reading(reader()) as conn:
        found = destinations(conn, tenant_id=current_actor().tenant_id, name=name)
    return found[0] if found else abort(404)


def _shown(name: str, *, salt: str | None = None, said: str | None = None) -> Response:
    key = current_app.config["BATON"].secret_key or str(current_app.secret_key)
    answer = make_response(_page(_row(name), secret=signing_secret(key, salt) if salt else None, said=said))
    if salt:
        answer.headers["Cache-Control"] = "no-store"
    return answer


def _page(row: DestinationRow, *, secret: str | None = None, said: str | None = None, problems: Any = None, typed: Any = None) -> str:
    with reading(reader()) as conn:
        sent = deliveries(conn, tenant_id=current_actor().tenant_id, to=row.name, limit=10).items
    return render_template(
        "operations/destination.html",
        row=row, sent=sent, secret=secret, said=said, problems=problems or {}, typed=typed or _typed(row), here="outbox", **LIMITS,
    )  # fmt: skip


def _form(typed: Any, *, problems: Any = None) -> str:
    return render_template("operations/new_destination.html", typed=typed, problems=problems or {}, here="outbox", **LIMITS)


def _typed(row: DestinationRow) -> dict[str, Any]:
    """A destination as its form has it."""
    retry = row.retry or (str(row.max_attempts) if row.max_attempts != 8 else "")
    shown = {"concurrency": row.concurrency, "redirects": row.redirects, "seconds": row.seconds, "max_bytes": row.max_bytes}
    texts = {name: "" if value is None else f"{value:g}" if isinstance(value, float) else str(value) for name, value in shown.items()}
    return {"kind": row.kind, "address": row.wanted_address, "retry": retry, **texts}


def _wanted() -> Wanted | dict[str, str]:
    """What the form asks for, or what is wrong with its numbers, by field."""
    found: dict[str, Any] = {}
    problems: dict[str, str] = {}
    for name, kind in NUMBERS.items():
        text = request.form.get(name, "").strip()
        try:
            found[name] = kind(text[:20]) if text else None
        except ValueError:
            problems[name] = f"expected a number, found {text[:20]!r}"
    if problems:
        return problems
    found["redirects"] = found["redirects"] or 0
    return Wanted(request.form.get("kind", ""), request.form.get("address", ""), retry=request.form.get("retry", "").strip(), **found)


def _as_of() -> datetime | None:
    try:
        return datetime.fromisoformat(request.form.get("as_of", ""))
    except ValueError:
        return None


def _by_field(rejected: Rejected) -> dict[str, str]:
    return {getattr(each, "field", ""): getattr(each, "message", "") for each in rejected.problems}


def _reason() -> str:
    return request.form.get("reason", "").strip()[:REASON]
