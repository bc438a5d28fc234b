"""Who asks; and for administrators people, service accounts and groups."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict
from uuid import UUID

from flask import Response, abort, jsonify

from engine.commands.outcome import PersonSaved, Rejected
from engine.commands.people import KINDS, ROLES, add_person, change_person, disable_person, set_password
from engine.queries.directory import Group, Member, groups, member, members
from engine.queries.rows import reading
from webapp.api.blueprint import blueprint
from webapp.api.bodies import Field, Wrong, accepting, kind_of, names, one_of, request_id, text
from webapp.api.describing import Sent, operation, paged
from webapp.api.schemas import Listed, Moment, words
from webapp.api.shapes import listed, refused, shaped
from webapp.auth.identity import current_actor, identity
from webapp.auth.passwords import MAX_LENGTH, SHORTEST, rehash
from webapp.db import command_connection, reader

ADMINISTRATORS = ("change", "person")


class MeShape(TypedDict):
    """`scopes`: what the key is limited to; null for a session, and for a key that may what its person may."""

    username: str
    display_name: str
    role: Annotated[str, words(*ROLES)]
    groups: list[str]
    by_key: bool
    scopes: list[str] | None


class PersonShape(TypedDict):
    """`kind`: a person, or a service account, as which programs act by keys alone."""

    id: UUID
    username: str
    display_name: str
    kind: Annotated[str, words(*KINDS)]
    role: Annotated[str, words(*ROLES)]
    groups: list[str]
    may_sign_in: bool
    created_at: Moment
    disabled_at: Moment | None


class GroupShape(TypedDict):
    """`members`: people in it who are not disabled."""

    key: str
    members: int


@accepting({"type": "string", "minLength": SHORTEST, "maxLength": MAX_LENGTH})
def password(value: Any) -> str:
    """The text of a new password."""
    if not isinstance(value, str):
        raise Wrong(f"expected text, found {kind_of(value)}")
    if not SHORTEST <= len(value) <= MAX_LENGTH:
        raise Wrong(f"expected {SHORTEST} to {MAX_LENGTH:,} characters, found {len(value):,}")
    if any("\ud800" <= sign <= "\udfff" for sign in value):
        raise Wrong("expected text, found half of a surrogate pair")
    return value


@blueprint.get("/me")
@operation(scope="read", answers=MeShape)
def show_me() -> Response:
    """Who you are here: the person of the key or of the session, and what the key is limited to."""
    who = identity()
    if who is None:
        abort(401)
    scopes = None if who.scopes is None else list(who.scopes)
    return jsonify(shaped(MeShape, who.actor, groups=sorted(who.actor.groups), by_key=who.by_key, scopes=scopes))


@blueprint.get("/people")
@operation(
    scope="administer",
    needs=("see", "person"),
    query={"q": Field(text(), "", about="Part of a name, of either kind."), "group": Field(text(), None), **paged()},
    answers=Listed[PersonShape],
)
def list_people(asked: Sent) -> Response:
    """Everybody by name, service accounts and disabled people too."""
    with reading(reader()) as conn:
        return listed(members(conn, tenant_id=current_actor().tenant_id, **asked), person_shape)


@blueprint.get("/people/<username>")
@operation(scope="administer", needs=("see", "person"), answers=PersonShape)
def show_person(username: str) -> Response:
    """One person or service account."""
    return _person(username)


@blueprint.post("/people")
@operation(
    scope="administer",
    needs=ADMINISTRATORS,
    body={
        "username": Field(text(), example="dora"),
        "display_name": Field(text(), example="Dora Maar"),
        "role": Field(one_of(*ROLES), "user"),
        "groups": Field(names(least=0), [], example=["clerks"]),
        "password": Field(password, None, about="Without it nobody can sign in as them yet."),
        "kind": Field(one_of(*KINDS), "person"),
    },
    answers={201: PersonShape},
)
def create_person(sent: Sent) -> Response:
    """Add a person or a service account."""
    word, username = sent.pop("password"), sent.pop("username")
    hashed = None if word is None else rehash(word)
    outcome = add_person(command_connection(), username, actor=current_actor(), password_hash=hashed, request_id=request_id(), **sent)
    answer = _answer(username, outcome)
    if not isinstance(outcome, Rejected):
        answer.status_code = 201
    return answer


@blueprint.post("/people/<username>/change")
@operation(
    scope="administer",
    needs=ADMINISTRATORS,
    body={
        "display_name": Field(text(nullable=True), None),
        "role": Field(one_of(*ROLES), None),
        "groups": Field(names(least=0, nullable=True), None, about="All of theirs from now on.", example=["clerks", "drivers"]),
    },
    answers=PersonShape,
)
def change_a_person(username: str, sent: Sent) -> Response:
    """Change the name, the role or the groups of a person; what is not given stays."""
    return _answer(username, change_person(command_connection(), username, actor=current_actor(), request_id=request_id(), **sent))


@blueprint.post("/people/<username>/password")
@operation(scope="administer", needs=ADMINISTRATORS, body={"password": Field(password)}, answers=PersonShape, once=False)
def set_a_password(username: str, sent: Sent) -> Response:
    """Replace a person's password and end their sessions."""
    hashed = rehash(sent["password"])
    return _answer(username, set_password(command_connection(), username, actor=current_actor(), password_hash=hashed))


@blueprint.post("/people/<username>/disable")
@operation(scope="administer", needs=ADMINISTRATORS, answers=PersonShape)
def disable_a_person(username: str) -> Response:
    """Let a person in no more: neither by password nor by key."""
    return _answer(username, disable_person(command_connection(), username, actor=current_actor(), request_id=request_id()))


@blueprint.post("/people/<username>/enable")
@operation(scope="administer", needs=ADMINISTRATORS, answers=PersonShape)
def enable_a_person(username: str) -> Response:
    """Let a disabled person in again."""
    outcome = disable_person(command_connection(), username, actor=current_actor(), disabled=False, request_id=request_id())
    return _answer(username, outcome)


@blueprint.get("/groups")
@operation(scope="administer", needs=("see", "person"), query=paged(), answers=Listed[GroupShape])
def list_groups(asked: Sent) -> Response:
    """The groups that anybody is in, by key."""
    with reading(reader()) as conn:
        return listed(groups(conn, tenant_id=current_actor().tenant_id, **asked), group_shape)


def _answer(username: str, outcome: PersonSaved | Rejected) -> Response:
    return refused(outcome) if isinstance(outcome, Rejected) else _person(username)


def _person(username: str) -> Response:
    with reading(reader()) as conn:
        found = member(conn, username, tenant_id=current_actor().tenant_id)
    if found is None:
        abort(404)
    return jsonify(person_shape(found))


def person_shape(found: Member) -> PersonShape:
    return shaped(PersonShape, found)


def group_shape(found: Group) -> GroupShape:
    return shaped(GroupShape, found)
