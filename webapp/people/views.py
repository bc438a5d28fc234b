"""People and keys: everybody who may come in, people and service accounts; added, changed, disabled. Administrators only."""

from __future__ import annotations

from uuid import UUID

from flask import Blueprint, Response, abort, flash, make_response, redirect, render_template, request, url_for

from engine.commands.api_keys import revoke_api_key
from engine.commands.may import may
from engine.commands.outcome import FieldProblem, PersonSaved, Rejected
from engine.commands.people import KINDS, ROLES, add_person, change_person, disable_person, set_password
from engine.queries.audit import AuditFilter, audit
from engine.queries.directory import Member, groups, member, members
from engine.queries.people import api_keys
from engine.queries.rows import BadCursor, reading
from webapp.account.key_forms import KeyForm, chosen_key, key_made
from webapp.auth.identity import current_actor, identity
from webapp.auth.passwords import MAX_LENGTH, SHORTEST, rehash
from webapp.db import command_connection, reader
from webapp.errors import error_page
from webapp.operations.listing import Listing, after, asked
from webapp.security import stale_form

blueprint = Blueprint("people", __name__, url_prefix="/administration/people")
GROUPS = 100  # that are offered
DEEDS = 20  # of the audit


@blueprint.before_request
def administrators_only() -> None:
    if identity() is not None and not may(current_actor(), "see", "person"):
        abort(403)


@blueprint.errorhandler(BadCursor)
def bad_cursor(_: BadCursor) -> Response:
    return error_page(400)


@blueprint.get("")
def index() -> str:
    choices, tenant = asked("q", "kind", "group"), current_actor().tenant_id
    kind = choices.get("kind") if choices.get("kind") in KINDS else None
    with reading(reader()) as conn:
        page = members(conn, tenant_id=tenant, q=choices.get("q", ""), group=choices.get("group"), kind=kind, cursor=after())
        known = groups(conn, tenant_id=tenant, limit=GROUPS).items
    found = Listing("people.index", "people.index", choices, page, after())
    return render_template("people/index.html", list=found, groups=known, here="people")


@blueprint.get("/add")
def add_form() -> str:
    return _add_page({"kind": "service" if request.args.get("kind") == "service" else "person", "role": "user"})


@blueprint.post("/add")
def add() -> Response:
    typed, password = _typed("username", "display_name", "role", "groups", "kind"), request.form.get("password", "")
    problems = _password_problems(password) if password and typed["kind"] != "service" else []
    if problems:
        return make_response(_add_page(typed, problems), 422)
    outcome = add_person(
        command_connection(),
        typed["username"],
        actor=current_actor(),
        display_name=typed["display_name"],
        role=typed["role"],
        groups=_groups(typed["groups"]),
        password_hash=rehash(password) if password and typed["kind"] != "service" else None,
        kind="service" if typed["kind"] == "service" else "person",
        request_id=_request_id(),
    )
    if isinstance(outcome, Rejected):
        return make_response(_add_page(typed, _problems(outcome)), 422)
    return _done(f"{typed['display_name']} is added.", typed["username"])


@stale_form(add)
def add_again() -> Response:
    """Too old a page: what was typed is there again, but for the password."""
    flash("Nothing was done: the page was no longer current. Please press again.", "warn")
    return make_response(_add_page(_typed("username", "display_name", "role", "groups", "kind")), 400)


@blueprint.get("/<username>")
def show(username: str) -> str:
    return _page(username)


@blueprint.post("/<username>/change")
def change(username: str) -> Response:
    _known(username)
    typed = _typed("display_name", "role", "groups")
    outcome = change_person(
        command_connection(),
        username,
        actor=current_actor(),
        display_name=typed["display_name"],
        role=typed["role"],
        groups=_groups(typed["groups"]),
        request_id=_request_id(),
    )
    return _answer(outcome, username, "The change is saved. It counts from their next click on.", typed)


@blueprint.post("/<username>/password")
def password(username: str) -> Response:
    _known(username)
    word = request.form.get("password", "")
    if problems := _password_problems(word):
        return make_response(_page(username, problems=problems), 422)
    outcome = set_password(command_connection(), username, actor=current_actor(), password_hash=rehash(word))
    return _answer(outcome, username, "The password is set, and their sessions have ended.")


@stale_form(password)
def password_again(username: str) -> Response:
    """Too old a page: a password is not written into another one."""
    flash("Nothing was done: the page was no longer current. Please type the password again.", "warn")
    return make_response(_page(username), 400)


@blueprint.post("/<username>/disable")
def disable(username: str) -> Response:
    outcome = disable_person(command_connection(), username, actor=current_actor(), request_id=_request_id())
    return _answer(outcome, username, "They are let in no more: their sessions have ended, their keys are refused.")


@blueprint.post("/<username>/enable")
def enable(username: str) -> Response:
    outcome = disable_person(command_connection(), username, actor=current_actor(), disabled=False, request_id=_request_id())
    return _answer(outcome, username, "They are let in again, and their keys hold as before.")


@blueprint.post("/<username>/keys")
def make_key(username: str) -> Response:
    found = _known(username)
    if found.kind != "service":
        abort(403)  # a person's key is that person's to make: another would act under their name
    back = url_for("people.show", username=username)
    return key_made(username, found.role, back=back, again=lambda form: _page(username, form=form))


@blueprint.post("/<username>/keys/<uuid:key_id>/revoke")
def revoke_key(username: str, key_id: UUID) -> Response:
    _known(username)
    outcome = revoke_api_key(command_connection(), key_id, actor=current_actor(), request_id=_request_id())
    if isinstance(outcome, Rejected):
        abort(outcome.status)
    return _done("The key is revoked. Whatever uses it is refused from now on.", username)


# ---- the pages


def _add_page(typed: dict[str, str], problems: list[FieldProblem] | None = None) -> str:
    with reading(reader()) as conn:
        known = groups(conn, tenant_id=current_actor().tenant_id, limit=GROUPS).items
    blank = dict.fromkeys(("username", "display_name", "role", "groups", "kind"), "")
    told = {each.field: each.message for each in problems or ()}
    return render_template("people/add.html", typed={**blank, **typed}, problems=told, groups=known, roles=ROLES, here="people")


def _page(
    username: str, *, form: KeyForm | None = None, problems: list[FieldProblem] | None = None, typed: dict[str, str] | None = None
) -> str:
    found, actor = _known(username), current_actor()
    keys = api_keys(command_connection(), username=username, tenant_id=actor.tenant_id)
    keys.reverse()
    with reading(reader()) as conn:
        known = groups(conn, tenant_id=actor.tenant_id, limit=GROUPS).items
        deeds = audit(conn, actor, AuditFilter(object_kind="person", object_id=username), limit=DEEDS).items
    return render_template(
        "people/person.html",
        person=found,
        typed=typed or {"display_name": found.display_name, "role": found.role, "groups": ", ".join(found.groups)},
        problems={each.field: each.message for each in problems or ()},
        keys=keys,
        form=form or KeyForm(found.role),
        revoking=chosen_key(keys),
        disabling="disable" in request.args and found.disabled_at is None,
        itself=username == actor.username,
        groups=known,
        roles=ROLES,
        deeds=deeds,
        here="people",
    )


def _known(username: str) -> Member:
    with reading(reader()) as conn:
        found = member(conn, username, tenant_id=current_actor().tenant_id)
    if found is None:
        abort(404)
    return found


def _answer(outcome: PersonSaved | Rejected, username: str, said: str, typed: dict[str, str] | None = None) -> Response:
    if not isinstance(outcome, Rejected):
        return _done(said, username)
    if outcome.status != 422:
        abort(outcome.status)
    return make_response(_page(username, problems=_problems(outcome), typed=typed), 422)


def _done(said: str, username: str) -> Response:
    flash(said, "ok")
    return make_response(redirect(url_for("people.show", username=username), code=303))


def _typed(*names: str) -> dict[str, str]:
    return {name: request.form.get(name, "").strip()[:2_000] for name in names}


def _groups(text: str) -> list[str]:
    """Groups as people write them: with commas or blanks between."""
    return text.replace(",", " ").split()


def _password_problems(word: str) -> list[FieldProblem]:
    if SHORTEST <= len(word) <= MAX_LENGTH:
        return []
    return [FieldProblem("password", f"expected {SHORTEST} to {MAX_LENGTH:,} characters, found {len(word):,}")]


def _problems(outcome: Rejected) -> list[FieldProblem]:
    return [each for each in outcome.problems if isinstance(each, FieldProblem)]


def _request_id() -> str | None:
    return request.form.get("request_id", "")[:255] or None
