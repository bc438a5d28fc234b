"""Flask's session over PostgreSQL: the cookie of a signed-in browser holds a random token and nothing else.

A guest has a small signed cookie instead, for the CSRF token of the sign-in form; it never becomes a session (S69).
"""

from __future__ import annotations

import logging
from typing import Any

from flask import Flask, Request, Response, g, request
from flask.sessions import SecureCookieSession, SecureCookieSessionInterface, SessionInterface, SessionMixin
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from engine.config import Settings
from webapp.auth import store
from webapp.auth.identity import Identity
from webapp.db import reader

log = logging.getLogger("baton.web")

# Paths that need nobody and must work without a database, and those where no cookie is looked at.
UNIDENTIFIED = ("/static/", "/health/", "/metrics", "/engine-rest/")


class StoredSession(SecureCookieSession):
    """The data of a signed-in browser. `token` stands in its cookie; `fresh`: the cookie must still be sent."""

    def __init__(self, token: str, data: dict[str, Any], *, fresh: bool = False) -> None:
        super().__init__(data)
        self.token = token
        self.fresh = fresh
        self.ended = False


class DatabaseSessions(SessionInterface):
    def __init__(self, settings: Settings) -> None:
        self.secure = settings.production and not settings.insecure_cookies
        self.seconds = settings.session_seconds
        self.guests = SecureCookieSessionInterface()
        prefix = "__Host-" if self.secure else ""  # __Host-: Secure, no Domain, Path=/; a neighbour cannot plant it
        self.cookie, self.guest_cookie = f"{prefix}baton_session", f"{prefix}baton_guest"

    def open_session(self, app: Flask, request: Request) -> SessionMixin:
        if request.path.startswith(UNIDENTIFIED):
            return SecureCookieSession()
        token = request.cookies.get(self.cookie)
        try:
            found = store.load_session(reader(), token) if token else None
            if token is not None and found is not None and found.unseen:
                store.touch_session(reader(), token, seconds=self.seconds)
        except (DBAPIError, PoolTimeout) as error:
            g.session_error = error  # raised by webapp.security where error pages can answer it; here Flask has none yet
            return SecureCookieSession()
        if token is None or found is None:
            g.session_lapsed = token is not None
            return self._guest(app, request)
        g.identity = found.identity
        return StoredSession(token, found.data)

    def save_session(self, app: Flask, session: SessionMixin, response: Response) -> None:
        response.vary.add("Cookie")
        session = g.pop("session_to_be", session)
        if isinstance(session, StoredSession):
            self._save_stored(session, response)
        elif session.modified and isinstance(session, SecureCookieSession):
            signer = self.guests.get_signing_serializer(app)
            assert signer is not None, "expected a secret key, found none"
            self._set(response, self.guest_cookie, str(signer.dumps(dict(session))), seconds=24 * 3600)

    def sign_in(self, who: Identity, session: SessionMixin) -> None:
        """A new session under a new token from this answer on. The token that came with the request stops working."""
        if isinstance(session, StoredSession):
            store.end_session(reader(), session.token)
        # The CSRF token names the person: a token of another user is refused, an old one of the same is recognised.
        data = {"csrf_token": f"{who.person_id}.{store.new_token()}"}
        token = store.open_session(reader(), who, data=data, seconds=self.seconds)
        g.session_to_be = StoredSession(token, data, fresh=True)

    def _save_stored(self, session: StoredSession, response: Response) -> None:
        if session.ended:
            for name in (self.cookie, self.guest_cookie):
                response.delete_cookie(name, path="/", secure=self.secure, httponly=True, samesite="Lax")
            return
        if session.fresh:
            self._set(response, self.cookie, session.token, seconds=None)
        if session.modified:
            try:
                store.save_session(reader(), session.token, session)
            except SQLAlchemyError as lost:  # the answer is made, and what it tells of is done: it goes out without its notices
                log.warning("session_not_saved path=%s error=%s", request.path, type(lost).__name__)

    def _guest(self, app: Flask, request: Request) -> SecureCookieSession:
        signer = self.guests.get_signing_serializer(app)
        value = request.cookies.get(self.guest_cookie)
        if signer is None or value is None:
            return SecureCookieSession()
        valid, data = signer.loads_unsafe(value)
        return SecureCookieSession(data if valid and isinstance(data, dict) else {})

    def _set(self, response: Response, name: str, value: str, *, seconds: int | None) -> None:
        response.set_cookie(name, value, max_age=seconds, path="/", secure=self.secure, httponly=True, samesite="Lax")
