"""API keys, with which programs act as a person or a service account.

A key leaves here once, as text, and stays as SHA-256 with its last four characters. People make and revoke their own;
administrators anybody's; the command line acts as SYSTEM.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import replace
from hashlib import sha256
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from engine.commands.may import may
from engine.commands.outcome import Actor, ApiKeyAdded, ApiKeyRevoked, FieldProblem, Refusal, Rejected
from engine.commands.requests import WRITE_REQUEST, encode, once, recorded, request_for
from engine.commands.scopes import SCOPES, scope_problems
from engine.commands.transaction import Connection, command
from engine.ids import new_id

PREFIX = "baton_"  # by which scanners of texts know a leaked key
ENDING = 4  # characters that lists show
DEFAULT_DAYS = 90
MAX_DAYS = 3650
MOST = 50  # keys of one person that hold
LONGEST_NAME = 200


@command
def add_api_key(
    conn: Connection,
    username: str,
    *,
    actor: Actor,
    name: str,
    days: int | None = None,
    scopes: Iterable[str] | None = None,
    longest_days: int = 0,
    request_id: str | None = None,
) -> ApiKeyAdded | Rejected:
    """Make a key with which a program acts as this person, for `days` days or until revoked.

    `scopes`: None for all that its person may. `longest_days`: how long a key may hold here; 0 for ever. A repeated request
    gets its first answer without the key itself, which is shown once.
    Locks: nothing. Refuses: NOT_ALLOWED; INVALID (name, days, scopes, a disabled person, too many keys); NOT_FOUND.
    """
    if actor.username != username and not may(actor, "change", "api_key"):
        return Rejected(Refusal.NOT_ALLOWED)
    wanted = None if scopes is None else sorted(set(scopes), key=_order)
    request = request_for(actor, request_id, "add_api_key", username, [name, days, wanted])
    if (first := recorded(conn, request)) is not None:
        return _answered(first)
    row = conn.execute(_PERSON, {"tenant": actor.tenant_id, "username": username}).fetchone()
    if row is None:
        return Rejected(Refusal.NOT_FOUND)
    person_id, role, disabled, keys = row
    problems = _problems(name, days, longest_days) + scope_problems(wanted, role)
    if disabled:
        problems.append(FieldProblem("person", f"expected somebody who may come in, found {username}, who is disabled"))
    if keys >= MOST:
        problems.append(FieldProblem("person", f"expected at most {MOST} keys that hold, found {keys}; revoke one that nobody uses"))
    if problems:
        return Rejected(Refusal.INVALID, "; ".join(f"{p.field}: {p.message}" for p in problems), problems=tuple(problems))
    token = f"{PREFIX}{secrets.token_urlsafe(32)}"
    done = ApiKeyAdded(new_id(), token, token[-ENDING:])
    values = {
        "key": done.key_id,
        "tenant": actor.tenant_id,
        "person": person_id,
        "name": name.strip(),
        "token_hash": sha256(token.encode()).digest(),
        "ending": done.ending,
        "scopes": wanted,
        "days": days,
        "actor": actor.username,
        "detail": Jsonb({"person": username, "name": name.strip(), "scopes": wanted, "days": days}),
    }
    if request is not None:
        values |= {**request.params(), "outcome": encode(replace(done, token="", repeated=True))}

    def write() -> ApiKeyAdded:
        added = conn.execute(_ADD[request is not None], values).fetchone()
        assert added is not None, f"api_key {done.key_id}: expected a row, found none"
        return replace(done, expires_at=added[0])

    return _answered(once(conn, request, write))


@command
def revoke_api_key(conn: Connection, key_id: UUID, *, actor: Actor, request_id: str | None = None) -> ApiKeyRevoked | Rejected:
    """Make a key useless; twice is harmless. Locks: the key. Refuses: NOT_FOUND (also a key that is somebody else's)."""
    request = request_for(actor, request_id, "revoke_api_key", key_id)
    values: dict[str, Any] = {
        "tenant": actor.tenant_id,
        "id": key_id,
        "actor": actor.username,
        "all": may(actor, "change", "api_key"),
    }
    if request is not None:
        values |= {**request.params(), "outcome": encode(ApiKeyRevoked(key_id))}

    def write() -> ApiKeyRevoked | Rejected:
        if conn.execute(_REVOKE[request is not None], values).fetchone() is not None:
            return ApiKeyRevoked(key_id)
        known = conn.execute(_KNOWN, values).fetchone()
        return ApiKeyRevoked(key_id) if known is not None else Rejected(Refusal.NOT_FOUND)

    outcome: ApiKeyRevoked | Rejected = once(conn, request, write)
    return outcome


def _answered(outcome: Any) -> ApiKeyAdded | Rejected:
    assert isinstance(outcome, ApiKeyAdded | Rejected), f"expected the outcome of add_api_key, found {type(outcome).__name__}"
    return outcome


def _order(scope: str) -> tuple[int, str]:
    return (list(SCOPES).index(scope) if scope in SCOPES else len(SCOPES), scope)


def _problems(name: str, days: int | None, longest: int) -> list[FieldProblem]:
    problems = []
    if not name.strip():
        problems.append(FieldProblem("name", "expected a name that says what uses the key, found nothing"))
    elif len(name.strip()) > LONGEST_NAME or not name.strip().isprintable():
        problems.append(FieldProblem("name", f"expected at most {LONGEST_NAME} printable characters, found {len(name.strip())}"))
    most = min(longest or MAX_DAYS, MAX_DAYS)
    if days is None and longest:
        problems.append(FieldProblem("days", f"expected 1 to {most} days, found no end"))
    if days is not None and not 1 <= days <= most:
        problems.append(FieldProblem("days", f"expected 1 to {most}, found {days}"))
    return problems


# ---- the statements

_PERSON = """
SELECT p.id, p.role, p.disabled_at IS NOT NULL, (SELECT count(*) FROM api_key k WHERE k.person_id = p.id AND k.revoked_at IS NULL
  AND (k.expires_at IS NULL OR k.expires_at > baton_now()))
FROM person p WHERE p.tenant_id = %(tenant)s AND p.username = %(username)s
"""
_ADDING = """
WITH added AS (
  INSERT INTO api_key (id, tenant_id, person_id, name, token_hash, ending, scopes, made_by, expires_at)
  VALUES (%(key)s, %(tenant)s, %(person)s, %(name)s, %(token_hash)s, %(ending)s, %(scopes)s, %(actor)s,
    baton_clock() + make_interval(days => %(days)s::int))
  RETURNING id, expires_at
), noted AS (
  INSERT INTO audit (tenant_id, actor, action, object_kind, object_id, detail)
  SELECT %(tenant)s, %(actor)s, 'api_key_added', 'api_key', id::text, %(detail)s FROM added
)"""
_KEY = "%(outcome)s::jsonb || jsonb_build_object('expires_at', expires_at)"
_ADD = (
    f"{_ADDING} SELECT expires_at FROM added",
    f"{_ADDING}, press AS ({WRITE_REQUEST.format(outcome=_KEY, source='added')}) SELECT expires_at FROM added",
)
_MINE = """
k.tenant_id = %(tenant)s AND k.id = %(id)s AND p.id = k.person_id AND (%(all)s OR p.username = %(actor)s)
"""
_KNOWN = f"SELECT 1 FROM api_key k, person p WHERE {_MINE}"
_REVOKING = f"""
WITH moved AS (
  UPDATE api_key k SET revoked_at = baton_clock(), revoked_by = %(actor)s FROM person p WHERE {_MINE} AND k.revoked_at IS NULL
  RETURNING k.id, k.name, k.revoked_at, p.username
), noted AS (
  INSERT INTO audit (at, tenant_id, actor, action, object_kind, object_id, detail)
  SELECT revoked_at, %(tenant)s, %(actor)s, 'api_key_revoked', 'api_key', id::text,
    jsonb_build_object('person', username, 'name', name) FROM moved
)"""
_REVOKE = (
    f"{_REVOKING} SELECT id FROM moved",
    f"{_REVOKING}, press AS ({WRITE_REQUEST.format(outcome='%(outcome)s::jsonb', source='moved')}) SELECT id FROM moved",
)
