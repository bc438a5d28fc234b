"""API keys: one's own, and for administrators those of people and service accounts."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict
from uuid import UUID

from flask import Response, abort, current_app, jsonify

from engine.commands.api_keys import DEFAULT_DAYS, MAX_DAYS, add_api_key, revoke_api_key
from engine.commands.outcome import Rejected
from engine.commands.scopes import SCOPES
from engine.queries.people import ApiKeyRow, api_keys, people
from webapp.api.blueprint import blueprint
from webapp.api.bodies import Field, Wrong, accepting, kind_of, one_of, request_id, text, whole
from webapp.api.describing import Sent, operation
from webapp.api.schemas import Listed, Moment, words
from webapp.api.shapes import each, moment, refused
from webapp.auth.identity import current_actor
from webapp.db import command_connection

ScopeWord = Annotated[str, words(*SCOPES)]


class KeyShape(TypedDict):
    """`scopes`: null for all that its person may. `ending`: its last characters; null for keys of before they were kept."""

    id: UUID
    username: str
    name: str
    ending: str | None
    scopes: list[ScopeWord] | None
    status: Literal["active", "revoked", "expired", "disabled"]
    created_at: Moment
    made_by: str | None
    expires_at: Moment | None
    last_used_at: Moment | None
    last_used_from: str | None
    revoked_at: Moment | None
    revoked_by: str | None


class NewKeyShape(TypedDict):
    """`key` is shown this once: a repeated request is answered with null in its place and `repeated`."""

    id: UUID
    key: str | None
    ending: str
    expires_at: Moment | None
    repeated: bool


class RevokedKeyShape(TypedDict):
    id: UUID
    status: Literal["revoked"]


NOT_SAID = ""


@accepting({"type": ["array", "null"], "items": {"enum": list(SCOPES)}, "minItems": 1, "maxItems": len(SCOPES)})
def scopes(value: Any) -> list[str] | None:
    """A list of scopes, or null for all that its person may; the command knows which."""
    if value is None:
        return None
    if not isinstance(value, list) or len(value) > len(SCOPES):
        raise Wrong(f"expected a list of scopes or null, found {kind_of(value)}")
    return [one_of(*SCOPES)(item) for item in value]


NEW_KEY = {
    "name": Field(text(longest=200), about="What uses the key.", example="nightly import"),
    "days": Field(
        whole(least=1, most=MAX_DAYS, nullable=True),
        NOT_SAID,
        about=f"How long it holds: {DEFAULT_DAYS} days when not given, null until it is revoked.",
        example=30,
    ),
    "scopes": Field(scopes, None, about="What it is limited to; null for all that its person may.", example=["read", "tasks"]),
}


@blueprint.get("/keys")
@operation(scope="read", answers=Listed[KeyShape])
def list_my_keys() -> Response:
    """Your own keys, oldest first, revoked and expired ones too."""
    return _listed(current_actor().username)


@blueprint.post("/keys")
@operation(scope="administer", body=NEW_KEY, answers={201: NewKeyShape})
def make_my_key(sent: Sent) -> Response:
    """Make a key of your own.

    By a key that is limited it takes `administer`: a key that got into wrong hands must not make others that outlive it.
    """
    return _made(current_actor().username, sent)


@blueprint.post("/keys/<uuid:key_id>/revoke")
@operation(scope="administer", answers=RevokedKeyShape)
def revoke_key(key_id: UUID) -> Response:
    """Make a key useless: one of your own, or as an administrator anybody's. Twice is harmless."""
    outcome = revoke_api_key(command_connection(), key_id, actor=current_actor(), request_id=request_id())
    return refused(outcome) if isinstance(outcome, Rejected) else jsonify(id=outcome.key_id, status="revoked")


@blueprint.get("/people/<username>/keys")
@operation(scope="administer", needs=("see", "api_key"), answers=Listed[KeyShape])
def list_keys_of(username: str) -> Response:
    """The keys of a person or service account, oldest first, revoked and expired ones too."""
    if not people(command_connection(), username=username, tenant_id=current_actor().tenant_id):
        abort(404)
    return _listed(username)


@blueprint.post("/people/<username>/keys")
@operation(scope="administer", needs=("change", "api_key"), body=NEW_KEY, answers={201: NewKeyShape})
def make_key_for(username: str, sent: Sent) -> Response:
    """Make a key with which a program acts as this person or service account."""
    return _made(username, sent)


def _listed(username: str) -> Response:
    found = api_keys(command_connection(), username=username, tenant_id=current_actor().tenant_id)
    return jsonify(items=each(found, key_shape), next_cursor=None)


def _made(username: str, sent: Sent) -> Response:
    longest: int = current_app.config["BATON"].key_max_days
    days = min(DEFAULT_DAYS, longest or DEFAULT_DAYS) if sent["days"] == NOT_SAID else sent["days"]
    outcome = add_api_key(
        command_connection(),
        username,
        actor=current_actor(),
        name=sent["name"],
        days=days,
        scopes=sent["scopes"],
        longest_days=longest,
        request_id=request_id(),
    )
    if isinstance(outcome, Rejected):
        return refused(outcome)
    made: NewKeyShape = {
        "id": outcome.key_id,
        "key": outcome.token or None,
        "ending": outcome.ending,
        "expires_at": moment(outcome.expires_at),
        "repeated": outcome.repeated,
    }
    response = jsonify(made)
    response.status_code = 201
    return response


def key_shape(found: ApiKeyRow) -> KeyShape:
    return {
        "id": found.id,
        "username": found.username,
        "name": found.name,
        "ending": found.ending,
        "scopes": found.scopes,
        "status": found.status,
        "created_at": moment(found.created_at),
        "made_by": found.made_by,
        "expires_at": moment(found.expires_at),
        "last_used_at": moment(found.last_used_at),
        "last_used_from": found.last_used_from,
        "revoked_at": moment(found.revoked_at),
        "revoked_by": found.revoked_by,
    }
