"""How many requests a program may make in a minute: each API key, each signed-in person, and each address for guests.

Counted in windows of a minute on the database's clock. A process counts in memory, and adds what it counted to the unlogged table
`request_count` once in EVERY seconds, in one statement that also tells what all processes together counted. So no request costs a
write, replicas count together, and what they do not yet know of one another is what was let in during the last EVERY seconds
(docs/decisions/0107). What is refused is not counted: a window's end is an end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from hashlib import sha256
from threading import Lock
from time import monotonic
from typing import cast

from flask import Flask, Response, current_app, g, request
from sqlalchemy import Connection, text
from werkzeug.exceptions import TooManyRequests

from engine.config import Settings
from webapp.auth.identity import Identity, identity
from webapp.db import reader

WINDOW = 60
EVERY = 1.0

ADD = text("""
    WITH added AS (
      INSERT INTO request_count AS c (who, minute, requests)
      SELECT who, :minute, requests FROM unnest(CAST(:who AS text[]), CAST(:requests AS bigint[])) AS given (who, requests) ORDER BY who
      ON CONFLICT ON CONSTRAINT pk_request_count DO UPDATE SET requests = c.requests + excluded.requests
      RETURNING who, requests
    )
    SELECT extract(epoch FROM clock.at)::float8 AS now, added.who, added.requests
    FROM (SELECT baton_now() AS at) AS clock LEFT JOIN added ON true
""")  # in the order of their names, so that two processes that add at once do not deadlock


@dataclass(frozen=True, slots=True)
class Standing:
    """How one who asks stands after this request. `seconds`: until the window ends."""

    quota: int
    remaining: int
    seconds: int
    allowed: bool


@dataclass(slots=True)
class Counts:
    """What this process knows of the window that is open. One an application; threads share it."""

    every: float = EVERY
    minute: int = 0
    ahead: float | None = None  # the database's clock less the monotonic one; None: not asked yet
    added_at: float = -math.inf
    adding: bool = False
    told: dict[str, int] = field(default_factory=dict)  # of all processes together, when we last added
    mine: dict[str, int] = field(default_factory=dict)  # since then, here
    lock: Lock = field(default_factory=Lock)

    def take(self, who: str, quota: int, conn: Connection) -> Standing:
        """Count one request, if there is room for it."""
        if self._is_due():
            self._add(conn)
        with self.lock:
            seconds = self._turn()
            asked = self.told.get(who, 0) + self.mine.get(who, 0)
            allowed = asked < quota
            if allowed:
                self.mine[who] = self.mine.get(who, 0) + 1
        return Standing(quota, max(0, quota - asked - allowed), seconds, allowed)

    def _is_due(self) -> bool:
        """Whether this thread is the one to add. The first ones wait for the clock together."""
        with self.lock:
            due = self.ahead is None or (not self.adding and monotonic() - self.added_at >= self.every)
            self.adding = self.adding or due
            return due

    def _add(self, conn: Connection) -> None:
        with self.lock:
            minute, given = self.minute, dict(self.mine)
            self.mine = {}
        try:
            rows = conn.execute(ADD, {"minute": minute, "who": list(given), "requests": list(given.values())}).all()
        except BaseException:
            with self.lock:
                self.mine = {who: given.get(who, 0) + self.mine.get(who, 0) for who in given | self.mine}
                self.adding = False
            raise
        with self.lock:
            if minute == self.minute:
                self.told |= {row.who: row.requests for row in rows if row.who is not None}
            self.ahead = rows[0].now - monotonic()
            self.added_at, self.adding = monotonic(), False

    def _turn(self) -> int:
        """Begin the window that the clock is in; the seconds until its end."""
        now = monotonic() + (self.ahead or 0.0)
        minute = int(now // WINDOW)
        if minute != self.minute:
            self.minute, self.told, self.mine = minute, {}, {}
        return max(1, math.ceil(WINDOW - now % WINDOW))


def init_app(app: Flask) -> None:
    app.extensions["baton_counts"] = Counts()
    app.after_request(_tell)


def count_program(settings: Settings) -> None:
    """Count this request of a program. Raises TooManyRequests (429) with the seconds until the window ends."""
    known = identity()
    quota = settings.api_guest_limit if known is None else settings.api_limit
    if quota == 0:
        return
    counts = cast(Counts, current_app.extensions["baton_counts"])
    standing = g.rate_standing = counts.take(_name(known), quota, reader())
    if not standing.allowed:
        raise TooManyRequests(f"expected at most {quota} requests a minute", retry_after=standing.seconds)


def _name(known: Identity | None) -> str:
    """Who is counted: a key by a hash of its own, else the person, else the address. No hash is made of a password."""
    if known is None:
        return f"address {(request.remote_addr or '')[:100]}"
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if known.by_key and scheme.lower() == "bearer":
        return f"key {sha256(f'counted {token.strip()}'.encode()).hexdigest()[:32]}"
    return f"person {known.person_id}"


def _tell(response: Response) -> Response:
    """The fields of the IETF's draft on rate limits."""
    standing: Standing | None = g.get("rate_standing")
    if standing is not None:
        response.headers["RateLimit-Policy"] = f'"minute";q={standing.quota};w={WINDOW}'
        response.headers["RateLimit"] = f'"minute";r={standing.remaining};t={standing.seconds}'
    return response
