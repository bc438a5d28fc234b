"""How a button of operations answers: 303 to where it was pressed, or for htmx the changed part; 409 with who and when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from flask import Response, abort, flash, make_response, redirect, render_template, request

from engine.commands.outcome import Rejected
from engine.queries.instance import item_history
from engine.queries.rows import reading
from engine.queries.task import display_name
from webapp.auth.identity import current_actor
from webapp.db import reader
from webapp.security import local_path, wants_fragment

DEEDS = ("retried", "skipped", "completed", "released", "recovered", "failed", "cancelled", "deleted")
"""The last part of the history kinds that explain why a button came too late."""


@dataclass(frozen=True, slots=True)
class Told:
    """A refusal with the names that its sentence needs. `did`: what was done to the item last, one of DEEDS, or ""."""

    reason: str
    status: int
    detail: str
    name: str
    at: datetime | None
    did: str
    problems: tuple[Any, ...]


def request_id() -> str | None:
    """The press's own id, from the form."""
    return request.form.get("request_id", "")[:255] or None


def back_to(default: str) -> str:
    return local_path(request.form.get("back"), default)


def done(said: str, *, back: str, fragment: str | None = None, **context: Any) -> Response:
    """`said`: what happened, in one sentence, shown where the reader lands."""
    if fragment is not None and wants_fragment():
        return make_response(render_template(fragment, **{**context, "back": back, "said": said, "told": None}))
    flash(said, "ok")
    return make_response(redirect(back, code=303))


def refused(rejected: Rejected, *, back: str, what: str, fragment: str | None = None, **context: Any) -> Response:
    """R13: 404 and 403 name nobody; 409 and 422 say who and when, in the part that was pressed or on a page of its own."""
    told = tell(rejected)
    if fragment is not None and wants_fragment():
        return make_response(render_template(fragment, **{**context, "back": back, "said": None, "told": told}), told.status)
    page = render_template("operations/refused.html", told=told, back=back, what=what, here="")
    return make_response(page, told.status)


def tell(rejected: Rejected) -> Told:
    """Who was first and when: as the command says, else as the item's history does. Aborts where nobody may be named."""
    if rejected.status in (403, 404):
        abort(rejected.status)
    by, at, did = rejected.by, rejected.at, ""
    tenant = current_actor().tenant_id
    with reading(reader()) as conn:
        if rejected.item_id is not None:
            past = item_history(conn, rejected.item_id, tenant_id=tenant, limit=10)
            last = next((event for event in past if event.kind.rpartition("_")[2] in DEEDS), None)
            if last is not None:
                did, by, at = last.kind.rpartition("_")[2], last.actor, last.at
        name = rejected.by_name if by == rejected.by else None
        if name is None and by:
            name = "Baton" if by == "engine" else display_name(conn, current_actor(), by)
    return Told(rejected.refusal.value, rejected.status, rejected.detail, name or by or "", at, did, rejected.problems)
