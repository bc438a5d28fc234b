"""One's own API keys: made, shown once, listed, revoked."""

from __future__ import annotations

from uuid import UUID

from flask import Blueprint, Response, abort, flash, make_response, redirect, render_template, request, url_for

from engine.commands.api_keys import revoke_api_key
from engine.commands.outcome import Rejected
from engine.queries.people import api_keys
from webapp.account.key_forms import KeyForm, chosen_key, key_made
from webapp.auth.identity import current_actor
from webapp.db import command_connection
from webapp.security import stale_form

blueprint = Blueprint("account", __name__, url_prefix="/account")


@blueprint.get("/keys")
def keys() -> str:
    return _page(KeyForm(current_actor().role))


@blueprint.post("/keys")
def make_key() -> Response:
    actor = current_actor()
    return key_made(actor.username, actor.role, back=url_for("account.keys"), again=_page)


@stale_form(make_key)
def make_key_again() -> Response:
    """The page was too old: nothing was made, and the form is there again."""
    flash("Nothing was done: the page was no longer current. Please fill in the form again.", "warn")
    return make_response(_page(KeyForm(current_actor().role)), 400)


@blueprint.post("/keys/<uuid:key_id>/revoke")
def revoke_key(key_id: UUID) -> Response:
    outcome = revoke_api_key(
        command_connection(), key_id, actor=current_actor(), request_id=request.form.get("request_id", "")[:255] or None
    )
    if isinstance(outcome, Rejected):
        abort(outcome.status)
    flash("The key is revoked. Whatever uses it is refused from now on.", "ok")
    return make_response(redirect(url_for("account.keys"), code=303))


def _page(form: KeyForm) -> str:
    actor = current_actor()
    found = api_keys(command_connection(), username=actor.username, tenant_id=actor.tenant_id)
    found.reverse()
    return render_template("account/keys.html", keys=found, form=form, revoking=chosen_key(found), here="keys")
