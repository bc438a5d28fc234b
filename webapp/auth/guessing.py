"""The slow-down on guessing passwords, counted in PostgreSQL so that all replicas count together (S71).

Every try is written as failed before the password is looked at, and corrected when it was right: tries that run side by
side count each other. Three counts over the last `WINDOW_MINUTES`, none of which looks at whether the name exists:

- a name from one place (an address, or a browser that this person has used before): PAIR failures, then a pause;
- an address over all names: ADDRESS failures, then a pause;
- a name over all places: NAME failures, then new places wait. Places where this person signed in during the last 30
  days do not, so nobody on the outside can keep a person out.

A pause ends PAUSE_MINUTES after the last counted failure. Tries during a pause are refused without a look at the
password and are not counted (they stand in `refusal`, for operators), so a pause ends however long somebody hammers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from hashlib import sha256

from flask import current_app, request
from itsdangerous import BadData, URLSafeTimedSerializer
from sqlalchemy import Connection, text
from werkzeug.wrappers import Response

WINDOW_MINUTES, PAUSE_MINUTES = 15, 5
PAIR, NAME, ADDRESS = 5, 20, 60
KNOWN_COOKIE = "baton_known"
KNOWN_SECONDS = 180 * 86400

BEGIN_TRY = text("""
    INSERT INTO login_attempt (tenant_id, username_key, address, succeeded) VALUES (:tenant, :name, :place, false) RETURNING id
""")
# One row: until when each of the three counts bids to wait, null where it does not.
PAUSES = text("""
    WITH recent AS MATERIALIZED (
      SELECT username_key = :name AS same_name, address = :place AS same_place, at FROM login_attempt
      WHERE NOT succeeded AND id <> :mine AND at > baton_now() - make_interval(mins => :window)
        AND ((tenant_id = :tenant AND username_key = :name) OR address = :place)
    ), known AS (
      SELECT :known_browser OR EXISTS (SELECT FROM login_attempt WHERE tenant_id = :tenant AND username_key = :name AND address = :place
        AND succeeded AND at > baton_now() - interval '30 days') AS here
    ), until AS (
      SELECT greatest(
        CASE WHEN count(*) FILTER (WHERE same_name AND same_place) >= :pair THEN max(at) FILTER (WHERE same_name AND same_place) END,
        CASE WHEN count(*) FILTER (WHERE same_place) >= :address THEN max(at) FILTER (WHERE same_place) END,
        CASE WHEN count(*) FILTER (WHERE same_name) >= :names AND NOT (SELECT here FROM known)
          THEN max(at) FILTER (WHERE same_name) END
      ) + make_interval(mins => :pause) AS at FROM recent
    )
    SELECT extract(epoch FROM at - baton_now())::float8 FROM until WHERE at > baton_now()
""")
FORGET_TRY = text("DELETE FROM login_attempt WHERE id = :mine")
NOTE_PAUSE = text("""
    INSERT INTO refusal (tenant_id, actor, command, reason, detail)
    VALUES (:tenant, :name, 'sign_in', 'too_many_tries', jsonb_build_object('place', CAST(:place AS text)))
""")
TRY_WAS_RIGHT = text("UPDATE login_attempt SET succeeded = true WHERE id = :mine")


@dataclass(frozen=True, slots=True)
class Try:
    """One try to sign in. `wait_seconds`: refused, for so long, without a look at the password."""

    id: int
    wait_seconds: int = 0


def name_key(username: str) -> str:
    """Names are counted without case or edge blanks, and never longer than 200 signs."""
    return username.strip().casefold()[:200]


def begin_try(conn: Connection, username: str, *, tenant: str = "") -> Try:
    """Count this try, and say whether it must wait."""
    place, known_browser = _place(username)
    values = {"tenant": tenant, "name": name_key(username), "place": place}
    mine = conn.execute(BEGIN_TRY, values).scalar_one()
    limits = {"pair": PAIR, "names": NAME, "address": ADDRESS, "window": WINDOW_MINUTES, "pause": PAUSE_MINUTES}
    left = conn.execute(PAUSES, values | limits | {"mine": mine, "known_browser": known_browser}).scalar_one_or_none()
    if left is None:
        return Try(mine)
    conn.execute(FORGET_TRY, {"mine": mine})
    conn.execute(NOTE_PAUSE, values)
    return Try(mine, math.ceil(left))


def try_was_right(conn: Connection, attempt: Try) -> None:
    conn.execute(TRY_WAS_RIGHT, {"mine": attempt.id})


def remember_browser(response: Response, username: str, *, secure: bool) -> None:
    """A signed cookie by which this browser is counted on its own when this name signs in again."""
    response.set_cookie(
        KNOWN_COOKIE,
        str(_signer().dumps(name_key(username))),
        max_age=KNOWN_SECONDS,
        path="/login",
        secure=secure,
        httponly=True,
        samesite="Strict",
    )


def _place(username: str) -> tuple[str, bool]:
    """Where the try comes from, and whether that is a browser in which this very name has signed in before."""
    address = request.remote_addr or "unknown"
    cookie = request.cookies.get(KNOWN_COOKIE)
    if cookie is None:
        return address, False
    try:
        name = _signer().loads(cookie, max_age=KNOWN_SECONDS)
    except BadData:
        return address, False
    if name != name_key(username):
        return address, False
    return f"known browser {sha256(cookie.encode()).hexdigest()[:12]}", True


def _signer() -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(str(current_app.secret_key), salt="baton-known-browser")
