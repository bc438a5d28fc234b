"""People and service accounts: who they are, their groups and passwords. Administrators only; the command line acts as SYSTEM.

Passwords come here as argon2 hashes. A service account is a person of kind `service`: programs act as it by API keys
(engine.commands.api_keys), and nobody signs in as it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Literal

from psycopg.types.json import Jsonb

from engine.commands.may import may
from engine.commands.outcome import SYSTEM, Actor, FieldProblem, PersonSaved, Refusal, Rejected
from engine.commands.requests import WRITE_REQUEST, Request, encode, once, recorded, request_for
from engine.commands.scopes import ROLES
from engine.commands.transaction import Connection, command
from engine.ids import new_id
from engine.text import sort_key

__all__ = ["ROLES", "add_person", "change_person", "disable_person", "set_password"]

Kind = Literal["person", "service"]
KINDS: tuple[Kind, ...] = ("person", "service")
NAME = re.compile(r"[a-z0-9][a-z0-9._@-]{0,62}")
GROUP = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


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
    kind: Kind = "person",
    request_id: str | None = None,
) -> PersonSaved | Rejected:
    """Add a person, or a service account; without a password hash nobody can sign in as them yet.

    Locks: nothing that waits but the unique key. Refuses: NOT_ALLOWED; INVALID (also for a name that is taken).
    """
    groups = sorted(set(groups))
    problems = _problems(username=username, display_name=display_name, role=role, groups=groups)
    if kind not in KINDS:
        problems.append(FieldProblem("kind", f"expected one of {', '.join(KINDS)}, found {kind!r}"))
    if kind == "service" and password_hash is not None:
        problems.append(FieldProblem("password", "expected none for a service account: programs act as it by API keys"))
    if username == SYSTEM.username:
        problems.append(FieldProblem("username", f"expected another name than {username}: records of what Baton does itself have it"))
    if (refused := _refused(actor, problems)) is not None:
        return refused
    done = PersonSaved(new_id(), username)
    # Not the hash: the same password has another one each time.
    request = request_for(actor, request_id, "add_person", username, [display_name, role, groups, kind])
    detail = {"role": role, "groups": groups, **({"kind": kind} if kind != "person" else {})}
    values = _values(actor, username, request, done, display_name=display_name, role=role, detail=detail)
    values |= {"id": done.person_id, "password_hash": password_hash, "kind": kind, "groups": groups}

    def write() -> PersonSaved | Rejected:
        if conn.execute(_ADD[request is not None], values).fetchone() is not None:
            return done
        first = recorded(conn, request)
        taken = FieldProblem("username", f"{username} exists already")
        return first if isinstance(first, PersonSaved) else Rejected(Refusal.INVALID, problems=(taken,))

    outcome: PersonSaved | Rejected = once(conn, request, write)
    return outcome


@command
def change_person(
    conn: Connection,
    username: str,
    *,
    actor: Actor,
    display_name: str | None = None,
    role: str | None = None,
    groups: Iterable[str] | None = None,
    request_id: str | None = None,
) -> PersonSaved | Rejected:
    """Change what is given of a person. Groups are replaced as a whole. Nobody takes their own role of administrator away.

    Locks: the person. Refuses: NOT_ALLOWED, INVALID, NOT_FOUND.
    """
    wanted = None if groups is None else sorted(set(groups))
    problems = _problems(username=username, display_name=display_name, role=role, groups=wanted)
    if username == actor.username and role not in (None, actor.role):
        problems.append(FieldProblem("role", "nobody changes their own role; another administrator can"))
    if (refused := _refused(actor, problems)) is not None:
        return refused
    detail = {"display_name": display_name, "role": role, "groups": wanted}
    request = request_for(actor, request_id, "change_person", username, detail)
    values = _values(actor, username, request, None, display_name=display_name, role=role, detail=detail)

    def write() -> PersonSaved | Rejected:
        found = conn.execute(_CHANGE, values).fetchone()
        if found is None:
            return Rejected(Refusal.NOT_FOUND)
        # The groups in a statement of their own: it sees what the one that we waited for has left.
        done = PersonSaved(found[0], username)
        more = {"id": found[0], "groups": wanted or [], "replaces": wanted is not None, "outcome": encode(done)}
        conn.execute(_REGROUP[request is not None], values | more)
        return done

    outcome: PersonSaved | Rejected = once(conn, request, write)
    return outcome


@command
def set_password(conn: Connection, username: str, *, actor: Actor, password_hash: str) -> PersonSaved | Rejected:
    """Replace a person's password and end their sessions; twice is harmless.

    Locks: the person. Refuses: NOT_ALLOWED; INVALID (a service account); NOT_FOUND.
    """
    if (refused := _refused(actor, [])) is not None:
        return refused
    values = _values(actor, username, None, None, action="password_set", detail={})

    def write() -> PersonSaved | Rejected:
        found = conn.execute(_SET_HASH, values | {"hash": password_hash}).fetchone()
        if found is not None:
            return PersonSaved(found[0], username)
        if conn.execute(_KNOWN, values).fetchone() is None:
            return Rejected(Refusal.NOT_FOUND)
        return _invalid("password", f"expected a person, found {username}, a service account: programs act as it by API keys")

    outcome: PersonSaved | Rejected = once(conn, None, write)
    return outcome


@command
def disable_person(
    conn: Connection, username: str, *, actor: Actor, disabled: bool = True, request_id: str | None = None
) -> PersonSaved | Rejected:
    """Let a person in no more, sessions and API keys included, or again. Nobody shuts themselves out.

    Locks: the person. Refuses: NOT_ALLOWED, INVALID, NOT_FOUND.
    """
    if (refused := _refused(actor, [])) is not None:
        return refused
    if disabled and username == actor.username:
        return _invalid("username", "nobody disables themselves; another administrator can")
    action = "person_disabled" if disabled else "person_enabled"
    request = request_for(actor, request_id, action, username)
    values = _values(actor, username, request, None, action=action, detail={}) | {"disabled": disabled}

    def write() -> PersonSaved | Rejected:
        found = conn.execute(_DISABLE[request is not None], values).fetchone()
        return Rejected(Refusal.NOT_FOUND) if found is None else PersonSaved(found[0], username)

    outcome: PersonSaved | Rejected = once(conn, request, write)
    return outcome


def _refused(actor: Actor, problems: list[FieldProblem]) -> Rejected | None:
    if not may(actor, "change", "person"):
        return Rejected(Refusal.NOT_ALLOWED)
    return Rejected(Refusal.INVALID, problems=tuple(problems)) if problems else None


def _invalid(field: str, message: str) -> Rejected:
    return Rejected(Refusal.INVALID, f"{field}: {message}", problems=(FieldProblem(field, message),))


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
    elif display_name is not None and not display_name.strip().isprintable():
        problems.append(FieldProblem("display_name", f"expected printable characters, found {display_name.strip()!r}"))
    if role is not None and role not in ROLES:
        problems.append(FieldProblem("role", f"expected one of {', '.join(ROLES)}, found {role!r}"))
    for group in groups or ():
        if not GROUP.fullmatch(group):
            problems.append(FieldProblem("groups", f"expected letters, digits and . _ -, 63 at most, found {group!r}"))
    return problems


def _values(
    actor: Actor,
    username: str,
    request: Request | None,
    done: PersonSaved | None,
    *,
    detail: dict[str, Any],
    display_name: str | None = None,
    role: str | None = None,
    action: str = "",
) -> dict[str, Any]:
    name = None if display_name is None else display_name.strip()
    values: dict[str, Any] = {
        "tenant": actor.tenant_id,
        "actor": actor.username,
        "username": username,
        "display_name": name,
        "sort_key": None if name is None else sort_key(name),
        "role": role,
        "detail": Jsonb(detail),
        "action": action,
    }
    if request is not None:
        values |= {**request.params(), "outcome": None if done is None else encode(done)}
    return values


# ---- the statements

_NOTED = """, noted AS (
  INSERT INTO audit (tenant_id, actor, action, object_kind, object_id, detail)
  SELECT %(tenant)s, %(actor)s, {action}, 'person', %(username)s, %(detail)s FROM {source}
)"""
_PRESS = f", press AS ({WRITE_REQUEST})"
_SAVED = "jsonb_build_object('type', 'PersonSaved', 'person_id', id, 'username', %(username)s::text)"
_KNOWN = "SELECT 1 FROM person WHERE tenant_id = %(tenant)s AND username = %(username)s"


def _both(statement: str, *, outcome: str, source: str) -> tuple[str, str]:
    """Without a request id, and with one."""
    end = f" SELECT id FROM {source}"
    return statement + end, statement + _PRESS.format(outcome=outcome, source=source) + end


_ADD = _both(
    """
WITH added AS (
  INSERT INTO person (id, tenant_id, username, display_name, sort_key, password_hash, role, kind)
  VALUES (%(id)s, %(tenant)s, %(username)s, %(display_name)s, %(sort_key)s, %(password_hash)s, %(role)s, %(kind)s)
  ON CONFLICT ON CONSTRAINT uq_person_username DO NOTHING RETURNING id
), joined AS (
  INSERT INTO person_group (person_id, tenant_id, group_key) SELECT id, %(tenant)s, unnest(%(groups)s::text[]) FROM added
)"""
    + _NOTED.format(action="'person_added'", source="added"),
    outcome="%(outcome)s::jsonb",
    source="added",
)
_CHANGE = """
UPDATE person SET display_name = coalesce(%(display_name)s, display_name), sort_key = coalesce(%(sort_key)s, sort_key),
  role = coalesce(%(role)s, role)
WHERE tenant_id = %(tenant)s AND username = %(username)s RETURNING id
"""
_REGROUP = _both(
    """
WITH one AS (SELECT %(id)s::uuid AS id
), parted AS (
  DELETE FROM person_group g USING one
  WHERE g.person_id = one.id AND %(replaces)s AND g.group_key <> ALL (%(groups)s::text[])
), joined AS (
  INSERT INTO person_group (person_id, tenant_id, group_key) SELECT id, %(tenant)s, unnest(%(groups)s::text[]) FROM one
  ON CONFLICT ON CONSTRAINT pk_person_group DO NOTHING
)"""
    + _NOTED.format(action="'person_changed'", source="one"),
    outcome="%(outcome)s::jsonb",
    source="one",
)
_MOVED = """
WITH moved AS (
  UPDATE person SET {change} WHERE tenant_id = %(tenant)s AND username = %(username)s RETURNING id
), out AS (
  DELETE FROM web_session s USING moved WHERE s.person_id = moved.id AND {ends}
)""" + _NOTED.format(action="%(action)s", source="moved")
_SET_HASH = (
    _MOVED.replace("RETURNING", "AND kind = 'person' RETURNING").format(change="password_hash = %(hash)s", ends="true")
    + " SELECT id FROM moved"
)
_DISABLE = _both(
    _MOVED.format(change="disabled_at = CASE WHEN %(disabled)s THEN coalesce(disabled_at, baton_clock()) END", ends="%(disabled)s"),
    outcome=_SAVED,
    source="moved",
)
