"""The form that makes an API key, and its answer, for one's own keys and for those of others."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from flask import Response, abort, current_app, make_response, render_template, request

from engine.commands.api_keys import DEFAULT_DAYS, LONGEST_NAME, MAX_DAYS, add_api_key
from engine.commands.outcome import FieldProblem, Rejected
from engine.commands.scopes import SCOPES, scopes_of
from engine.queries.people import ApiKeyRow
from webapp.auth.identity import current_actor
from webapp.db import command_connection

CHOICES = (7, 30, 90, 180, 365)  # days
NEVER = "never"


@dataclass(frozen=True)
class KeyForm:
    """What was typed, and what is wrong with it. `everything`: no scopes, all that its person may."""

    role: str
    name: str = ""
    days: str = ""
    everything: bool = False
    scopes: tuple[str, ...] = ("read",)
    problems: tuple[FieldProblem, ...] = field(default=())

    @property
    def allowed(self) -> list[tuple[str, str]]:
        """(scope, what it opens) that a key of this role may have."""
        return [(name, SCOPES[name].opens) for name in scopes_of(self.role)]

    @property
    def lifetimes(self) -> list[tuple[str, str]]:
        """(value, words), from what the house allows."""
        longest = _longest()
        days = [each for each in CHOICES if not longest or each <= longest] or [longest]
        words = [(str(each), f"{each} day{'' if each == 1 else 's'}") for each in days]
        return words if longest else [*words, (NEVER, "Until it is revoked")]

    @property
    def chosen(self) -> str:
        return self.days or str(min(DEFAULT_DAYS, _longest() or DEFAULT_DAYS))

    def problem(self, name: str) -> str:
        return next((each.message for each in self.problems if each.field == name), "")


def key_made(username: str, role: str, *, back: str, again: Any) -> Response:
    """Make the key that the form asks for and show it, this once; `again(form)`: the page with the form as typed."""
    typed = KeyForm(
        role,
        name=request.form.get("name", "").strip()[: LONGEST_NAME + 1],
        days=request.form.get("days", ""),
        everything=request.form.get("reach") == "everything",
        scopes=tuple(request.form.getlist("scope"))[: len(SCOPES)],
    )
    outcome = add_api_key(
        command_connection(),
        username,
        actor=current_actor(),
        name=typed.name,
        days=_days(typed.days),
        scopes=None if typed.everything else typed.scopes,
        longest_days=_longest(),
        request_id=request.form.get("request_id", "")[:255] or None,
    )
    if isinstance(outcome, Rejected):
        if outcome.status != 422:
            abort(outcome.status)
        refused = KeyForm(role, typed.name, typed.days, typed.everything, typed.scopes, _told(outcome))
        return make_response(again(refused), 422)
    return make_response(render_template("account/key_made.html", made=outcome, name=typed.name, whose=username, back=back, here=""), 201)


def chosen_key(keys: list[ApiKeyRow]) -> ApiKeyRow | None:
    """The key that is to be revoked: the page asks once more."""
    try:
        wanted = UUID(request.args.get("revoke", ""))
    except ValueError:
        return None
    return next((key for key in keys if key.id == wanted and key.revoked_at is None), None)


def _told(outcome: Rejected) -> tuple[FieldProblem, ...]:
    return tuple(each for each in outcome.problems if isinstance(each, FieldProblem))


def _days(text: str) -> int | None:
    """None: it does not end. What is no number is a lifetime that nobody may have."""
    if text == NEVER:
        return None
    return int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(MAX_DAYS)) else 0


def _longest() -> int:
    longest: int = current_app.config["BATON"].key_max_days
    return longest
