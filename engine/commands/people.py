"""People, their passwords and their API keys. Administrators only; the command line acts as SYSTEM.

Passwords come here as argon2 hashes, API keys leave here once as text and stay as SHA-256 only.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from engine.commands.may import may
from engine.commands.outcome import Actor, FieldProblem, Refusal, Rejected
from engine.commands.transaction import Connection, command, transaction
from engine.ids import new_id
from engine.text import sort_key

ROLES = ("user", "operator", "administrator")
NAME = re.compile(r"[a-z0-9][a-z0-9._@-]{0,62}")
GROUP = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")

INSERT = """
    INSERT INTO person (id, tenant_id, username, display_name, sort_key, password_hash, role)
    VALUES (%(id)s, %(tenant)s, %(username)s, %(display_name)s, %(sort_key)s, %(password_hash)s, %(role)s)
    ON CONFLICT ON CONSTRAINT uq_person_username DO NOTHING RETURNING id
"""
CHANGE = """
    UPDATE person SET display_name = coalesce(%(display_name)s, display_name), sort_key = coalesce(%(sort_key)s, sort_key),
      role = coalesce(%(role)s, role)
    WHERE tenant_id = %(tenant)s AND username = %(username)s RETURNING id
"""
JOIN_GROUPS = "INSERT INTO person_group (person_id, tenant_id, group_key) SELECT %(id)s, %(tenant)s, unnest(%(groups)s::text[])"
LEAVE_GROUPS = "DELETE FROM person_group WHERE person_id = %(id)s"
SET_HASH = """
    UPDATE person SET password_hash = %(hash)s WHERE tenant_id = %(tenant)s AND username = %(username)s RETURNING id
"""
DISABLE = """
    UPDATE person SET disabled_at = CASE WHEN %(disabled)s THEN coalesce(disabled_at, baton_clock()) END
    WHERE tenant_id = %(tenant)s AND username = %(username)s RETURNING id
"""
END_SESSIONS = "DELETE FROM web_session WHERE person_id = %(id)s"
ADD_KEY = """
    INSERT INTO api_key (id, tenant_id, person_id, name, token_hash, expires_at)
    SELECT %(key)s, tenant_id, id, %(name)s, %(token_hash)s, baton_clock() + make_interval(days => %(days)s)
    FROM person WHERE tenant_id = %(tenant)s AND username = %(username)s RETURNING expires_at
"""
REVOKE_KEY = """
    UPDATE api_key SET revoked_at = coalesce(revoked_at, baton_clock()) WHERE tenant_id = %(tenant)s AND id = %(id)s RETURNING id
"""
AUDIT = """
    INSERT INTO audit (tenant_id, actor, action, object_kind, object_id, detail)
    VALUES (%(tenant)s, %(actor)s, %(action)s, %(kind)s, %(object)s, %(detail)s)
"""


@dataclass(frozen=True, slots=True)
class PersonSaved:
    person_id: UUID
    username: str


@dataclass(frozen=True, slots=True)
class ApiKeyAdded:
    """`token` is shown this once."""

    key_id: UUID
    token: str
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class ApiKeyRevoked:
    key_id: UUID


@command
def add_person(
    conn: Connection,
    username: str,
    *,
    actor: Actor,
    display_name: str,
    role: str = "user",
    groups: Iterable[str] = (),
    password_hash: str | None = None,
) -> PersonSaved | Rejected:
    """Add a person; without a password hash nobody can sign in as them yet.

    Locks: nothing that waits but the unique key. Refuses: NOT_ALLOWED; INVALID (also for a name that is taken).
    """
    groups = sorted(set(groups))
    problems = _problems(username=username, display_name=display_name, role=role, groups=groups)
    if (refused := _refused(actor, "person", problems)) is not None:
        return refused
    values = _row(actor, username, display_name=display_name, role=role) | {"id": new_id(), "password_hash": password_hash}
    with transaction(conn):
        if conn.execute(INSERT, values).fetchone() is None:
            return Rejected(Refusal.INVALID, problems=(FieldProblem("username", f"{username} exists already"),))
        conn.execute(JOIN_GROUPS, values | {"groups": groups})
        _audit(conn, actor, "person_added", username, {"role": role, "groups": groups})
    return PersonSaved(values["id"], username)


@command
def change_person(
    conn: Connection,
    username: str,
    *,
    actor: Actor,
    display_name: str | None = None,
    role: str | None = None,
    groups: Iterable[str] | None = None,
) -> PersonSaved | Rejected:
    """Change what is given of a person. Groups are replaced as a whole. Locks: the person. Refuses: NOT_ALLOWED, INVALID, NOT_FOUND."""
    wanted = None if groups is None else sorted(set(groups))
    problems = _problems(username=username, display_name=display_name, role=role, groups=wanted)
    if (refused := _refused(actor, "person", problems)) is not None:
        return refused
    with transaction(conn):
        found = conn.execute(CHANGE, _row(actor, username, display_name=display_name, role=role)).fetchone()
        if found is None:
            return Rejected(Refusal.NOT_FOUND)
        if wanted is not None:
            conn.execute(LEAVE_GROUPS, {"id": found[0]})
            conn.execute(JOIN_GROUPS, {"id": found[0], "tenant": actor.tenant_id, "groups": wanted})
        _audit(conn, actor, "person_changed", username, {"display_name": display_name, "role": role, "groups": wanted})
    return PersonSaved(found[0], username)


@command
def set_password(conn: Connection, username: str, *, actor: Actor, password_hash: str) -> PersonSaved | Rejected:
    """Replace a person's password and end their sessions. Locks: the person. Refuses: NOT_ALLOWED, NOT_FOUND."""
    return _update(conn, username, actor, SET_HASH, {"hash": password_hash}, action="password_set", end_sessions=True)


@command
def disable_person(conn: Connection, username: str, *, actor: Actor, disabled: bool = True) -> PersonSaved | Rejected:
    """Let a person in no more, sessions and API keys included, or again. Locks: the person. Refuses: NOT_ALLOWED, NOT_FOUND."""
    action = "person_disabled" if disabled else "person_enabled"
    return _update(conn, username, actor, DISABLE, {"disabled": disabled}, action=action, end_sessions=disabled)


@command
def add_api_key(conn: Connection, username: str, *, actor: Actor, name: str, days: int | None = None) -> ApiKeyAdded | Rejected:
    """Make a key with which a program acts as this person, for `days` days or until revoked.

    Locks: nothing. Refuses: NOT_ALLOWED; INVALID (an empty name, no days); NOT_FOUND.
    """
    problems = []
    if not name.strip():
        problems.append(FieldProblem("name", "expected a name that says what uses the key, found nothing"))
    if days is not None and not 1 <= days <= 3650:
        problems.append(FieldProblem("days", f"expected 1 to 3650, found {days}"))
    if (refused := _refused(actor, "api_key", problems)) is not None:
        return refused
    key, token = new_id(), f"baton_{secrets.token_urlsafe(32)}"
    values = {"key": key, "tenant": actor.tenant_id, "username": username, "name": name.strip(), "days": days}
    with transaction(conn):
        found = conn.execute(ADD_KEY, values | {"token_hash": sha256(token.encode()).digest()}).fetchone()
        if found is None:
            return Rejected(Refusal.NOT_FOUND)
        _audit(conn, actor, "api_key_added", str(key), {"person": username, "name": name.strip()}, kind="api_key")
    return ApiKeyAdded(key, token, found[0])


@command
def revoke_api_key(conn: Connection, key_id: UUID, *, actor: Actor) -> ApiKeyRevoked | Rejected:
    """Make a key useless; twice is harmless. Locks: the key. Refuses: NOT_ALLOWED, NOT_FOUND."""
    if (refused := _refused(actor, "api_key", [])) is not None:
        return refused
    with transaction(conn):
        if conn.execute(REVOKE_KEY, {"tenant": actor.tenant_id, "id": key_id}).fetchone() is None:
            return Rejected(Refusal.NOT_FOUND)
        _audit(conn, actor, "api_key_revoked", str(key_id), {}, kind="api_key")
    return ApiKeyRevoked(key_id)


def _update(
    conn: Connection, username: str, actor: Actor, sql: str, values: dict[str, Any], *, action: str, end_sessions: bool
) -> PersonSaved | Rejected:
    if (refused := _refused(actor, "person", [])) is not None:
        return refused
    with transaction(conn):
        found = conn.execute(sql, values | {"tenant": actor.tenant_id, "username": username}).fetchone()
        if found is None:
            return Rejected(Refusal.NOT_FOUND)
        if end_sessions:
            conn.execute(END_SESSIONS, {"id": found[0]})
        _audit(conn, actor, action, username, {})
    return PersonSaved(found[0], username)


def _refused(actor: Actor, kind: str, problems: list[FieldProblem]) -> Rejected | None:
    if not may(actor, "change", kind):
        return Rejected(Refusal.NOT_ALLOWED)
    return Rejected(Refusal.INVALID, problems=tuple(problems)) if problems else None


def _problems(*, username: str, display_name: str | None, role: str | None, groups: list[str] | None) -> list[FieldProblem]:
    problems = []
    if not NAME.fullmatch(username):
        problems.append(
            FieldProblem(
                "username", f"expected small letters, digits and . _ @ -, 63 at most, beginning with a letter or digit, found {username!r}"
            )
        )
    if display_name is not None and not 0 < len(display_name.strip()) <= 200:
        problems.append(FieldProblem("display_name", f"expected 1 to 200 characters, found {len(display_name.strip())}"))
    if role is not None and role not in ROLES:
        problems.append(FieldProblem("role", f"expected one of {', '.join(ROLES)}, found {role!r}"))
    for group in groups or ():
        if not GROUP.fullmatch(group):
            problems.append(FieldProblem("groups", f"expected letters, digits and . _ -, 63 at most, found {group!r}"))
    return problems


def _row(actor: Actor, username: str, *, display_name: str | None, role: str | None) -> dict[str, Any]:
    name = None if display_name is None else display_name.strip()
    key = None if name is None else sort_key(name)
    return {"tenant": actor.tenant_id, "username": username, "display_name": name, "sort_key": key, "role": role}


def _audit(conn: Connection, actor: Actor, action: str, subject: str, detail: dict[str, Any], *, kind: str = "person") -> None:
    values = {"tenant": actor.tenant_id, "actor": actor.username, "action": action, "kind": kind, "object": subject}
    conn.execute(AUDIT, values | {"detail": Jsonb(detail)})
