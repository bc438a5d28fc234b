"""People and API keys, as administrators and the command line list them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any, Literal
from uuid import UUID

import psycopg
from psycopg.rows import class_row

from engine.commands.outcome import Actor

PEOPLE = """
    SELECT p.id, p.username, p.display_name, p.role, p.created_at, p.disabled_at, p.password_hash IS NOT NULL AS may_sign_in, p.kind,
      ARRAY(SELECT group_key FROM person_group g WHERE g.person_id = p.id ORDER BY 1) AS groups
    FROM person p WHERE p.tenant_id = %(tenant)s AND (%(username)s::text IS NULL OR p.username = %(username)s)
    ORDER BY p.sort_key, p.username
"""
KEYS = """
    SELECT k.id, p.username, k.name, k.created_at, k.expires_at, k.revoked_at, k.last_used_at,
      k.scopes, k.ending, k.made_by, k.revoked_by, k.last_used_from,
      CASE WHEN k.revoked_at IS NOT NULL THEN 'revoked' WHEN k.expires_at <= baton_now() THEN 'expired'
        WHEN p.disabled_at IS NOT NULL THEN 'disabled' ELSE 'active' END AS status
    FROM api_key k JOIN person p ON p.id = k.person_id
    WHERE k.tenant_id = %(tenant)s AND (%(username)s::text IS NULL OR p.username = %(username)s) ORDER BY k.created_at, k.id
"""


@dataclass(frozen=True, slots=True)
class PersonRow:
    id: UUID
    username: str
    display_name: str
    role: str
    created_at: datetime
    disabled_at: datetime | None
    may_sign_in: bool
    kind: str
    groups: list[str]


@dataclass(frozen=True, slots=True)
class ApiKeyRow:
    """`scopes`: None for all that its person may. `ending`: its last characters; None for keys of before they were kept.

    `status`: active, revoked, expired, or disabled with its person.
    """

    id: UUID
    username: str
    name: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    scopes: list[str] | None
    ending: str | None
    made_by: str | None
    revoked_by: str | None
    last_used_from: str | None
    status: Literal["active", "revoked", "expired", "disabled"]


def acting_as(conn: psycopg.Connection[Any], username: str, *, tenant_id: str = "") -> Actor | None:
    """Somebody as they act: their role and groups as they are now; None for nobody of that name, or who is disabled."""
    found = next((person for person in people(conn, tenant_id=tenant_id, username=username)), None)
    if found is None or found.disabled_at is not None:
        return None
    return Actor(username, role=found.role, groups=frozenset(found.groups), display_name=found.display_name, tenant_id=tenant_id)


def whose_key(conn: psycopg.Connection[Any], token: str, *, tenant_id: str = "") -> ApiKeyRow | None:
    """The key with this very text, whatever has become of it."""
    found = conn.execute("SELECT id FROM api_key WHERE tenant_id = %s AND token_hash = %s", (tenant_id, sha256(token.encode()).digest()))
    row = found.fetchone()
    return None if row is None else next(key for key in api_keys(conn, tenant_id=tenant_id) if key.id == row[0])


def people(conn: psycopg.Connection[Any], *, username: str | None = None, tenant_id: str = "") -> list[PersonRow]:
    """Everybody, disabled ones too, by name; or the one who is called `username`."""
    return conn.cursor(row_factory=class_row(PersonRow)).execute(PEOPLE, {"tenant": tenant_id, "username": username}).fetchall()


def api_keys(conn: psycopg.Connection[Any], *, username: str | None = None, tenant_id: str = "") -> list[ApiKeyRow]:
    """The keys of one person, or of all; revoked and expired ones too, oldest first."""
    values = {"tenant": tenant_id, "username": username}
    return conn.cursor(row_factory=class_row(ApiKeyRow)).execute(KEYS, values).fetchall()
