"""The statements behind signing in: people, sessions, API keys. Secrets are stored as SHA-256 only."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, text

from engine.commands.outcome import Actor
from webapp.auth.identity import Identity

GROUPS = "ARRAY(SELECT group_key FROM person_group g WHERE g.person_id = p.id ORDER BY 1) AS groups"
PERSON = f"p.id, p.tenant_id, p.username, p.display_name, p.role, p.theme, {GROUPS}, baton_now() AS now"

LOAD_SESSION = text(f"""
    SELECT {PERSON}, s.data, s.last_seen_at < baton_now() - interval '1 minute' AS unseen
    FROM web_session s JOIN person p ON p.id = s.person_id
    WHERE s.token_hash = :hash AND s.expires_at > baton_now() AND p.disabled_at IS NULL
""")  # noqa: S608  composed from the fixed fragments above

LOAD_KEY = text(f"""
    SELECT {PERSON}, k.id AS key_id, k.scopes,
      k.last_used_at IS NULL OR k.last_used_at < baton_now() - interval '1 minute' AS unnoted
    FROM api_key k JOIN person p ON p.id = k.person_id
    WHERE k.token_hash = :hash AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > baton_now())
      AND p.disabled_at IS NULL
""")  # noqa: S608  composed from the fixed fragments above

# Once a minute at most: a busy key must not write at each request. Of several that come together one writes.
TOUCH_KEY = text("""
    UPDATE api_key SET last_used_at = baton_clock(), last_used_from = :address
    WHERE id = :key AND (last_used_at IS NULL OR last_used_at < baton_now() - interval '1 minute')
""")

# Every use moves the end, but never beyond 90 days from the sign-in.
TOUCH_SESSION = text("""
    UPDATE web_session SET last_seen_at = baton_clock(),
      expires_at = least(baton_clock() + make_interval(secs => :seconds), created_at + interval '90 days')
    WHERE token_hash = :hash
""")
SAVE_SESSION = text("UPDATE web_session SET data = CAST(:data AS jsonb) WHERE token_hash = :hash")
OPEN_SESSION = text("""
    INSERT INTO web_session (token_hash, tenant_id, person_id, expires_at, data)
    VALUES (:hash, :tenant, :person, baton_clock() + make_interval(secs => :seconds), CAST(:data AS jsonb))
""")
END_SESSION = text("DELETE FROM web_session WHERE token_hash = :hash")
FIND_PERSON = text(f"""
    SELECT {PERSON}, p.password_hash FROM person p
    WHERE p.tenant_id = :tenant AND p.username = :username AND p.disabled_at IS NULL AND p.kind = 'person'
""")  # noqa: S608  composed from the fixed fragments above
SET_THEME = text("UPDATE person SET theme = :theme WHERE id = :person")
SET_HASH = text("UPDATE person SET password_hash = :hash WHERE id = :person AND password_hash = :before")


@dataclass(frozen=True, slots=True)
class StoredSession:
    identity: Identity
    data: dict[str, Any]
    unseen: bool  # last_seen_at is more than a minute old


@dataclass(frozen=True, slots=True)
class KnownPerson:
    identity: Identity
    password_hash: str | None

    def by_key(self) -> Identity:
        """As who sends name and password with every request: no cookie is involved."""
        return replace(self.identity, by_key=True)


def new_token() -> str:
    """256 random bits, as they stand in a cookie."""
    return secrets.token_urlsafe(32)


def hashed(token: str) -> bytes:
    return sha256(token.encode()).digest()


def load_session(conn: Connection, token: str) -> StoredSession | None:
    row = conn.execute(LOAD_SESSION, {"hash": hashed(token)}).one_or_none()
    return None if row is None else StoredSession(_identity(row), dict(row.data), bool(row.unseen))


def load_api_key(conn: Connection, token: str, *, address: str) -> Identity | None:
    """Whoever the key speaks for. That it was used, and from where, is noted within a minute."""
    row = conn.execute(LOAD_KEY, {"hash": hashed(token)}).one_or_none()
    if row is None:
        return None
    if row.unnoted:
        conn.execute(TOUCH_KEY, {"key": row.key_id, "address": address[:100]})
    return replace(_identity(row), by_key=True, scopes=None if row.scopes is None else tuple(row.scopes))


def touch_session(conn: Connection, token: str, *, seconds: float) -> None:
    conn.execute(TOUCH_SESSION, {"hash": hashed(token), "seconds": seconds})


def save_session(conn: Connection, token: str, data: Mapping[str, Any]) -> None:
    conn.execute(SAVE_SESSION, {"hash": hashed(token), "data": json.dumps(dict(data))})


def open_session(conn: Connection, who: Identity, *, data: Mapping[str, Any], seconds: float) -> str:
    """A new session under a new token; the token is returned once and stored only as its hash."""
    token = new_token()
    values = {"hash": hashed(token), "tenant": who.actor.tenant_id, "person": who.person_id, "seconds": seconds}
    conn.execute(OPEN_SESSION, values | {"data": json.dumps(dict(data))})
    return token


def end_session(conn: Connection, token: str) -> None:
    conn.execute(END_SESSION, {"hash": hashed(token)})


def find_person(conn: Connection, username: str, *, tenant: str = "") -> KnownPerson | None:
    row = conn.execute(FIND_PERSON, {"tenant": tenant, "username": username}).one_or_none()
    return None if row is None else KnownPerson(_identity(row), row.password_hash)


def set_theme(conn: Connection, person_id: UUID, theme: str) -> None:
    conn.execute(SET_THEME, {"person": person_id, "theme": theme})


def replace_hash(conn: Connection, person_id: UUID, *, before: str, after: str) -> None:
    """Store the same password under newer argon2 parameters, unless it was changed meanwhile."""
    conn.execute(SET_HASH, {"person": person_id, "before": before, "hash": after})


def _identity(row: Row[Any]) -> Identity:
    actor = Actor(row.username, role=row.role, groups=frozenset(row.groups), display_name=row.display_name, tenant_id=row.tenant_id)
    now: datetime = row.now
    return Identity(row.id, actor, row.theme, now)
