"""Sign in, sign out, choose a theme."""

from __future__ import annotations

import math
from typing import Any

from flask import Blueprint, Response, current_app, g, redirect, render_template, request, session

from webapp.auth import guessing, passwords, store
from webapp.auth.identity import identity, public
from webapp.auth.session import DatabaseSessions, StoredSession
from webapp.db import reader
from webapp.filters import THEME_COOKIE, THEMES
from webapp.security import local_path

blueprint = Blueprint("auth", __name__)


@blueprint.get("/login")
@public
def sign_in() -> Any:
    if identity() is not None:
        return redirect(_next())
    return _form()


@blueprint.post("/login")
@public
def signed_in() -> Any:
    username, password = request.form.get("username", "").strip(), request.form.get("password", "")
    if not username or not password or len(password) > passwords.MAX_LENGTH or "\0" in username:
        return _form(422, problem="Write your name and your password.", username=username)

    attempt = guessing.begin_try(reader(), username)
    if attempt.wait_seconds:
        return _paused(attempt.wait_seconds, username)
    known = store.find_person(reader(), username)
    stored = known.password_hash if known else None
    if not passwords.matches(stored, password) or known is None or stored is None:
        return _form(401, problem="Name or password is wrong", username=username)

    guessing.try_was_right(reader(), attempt)
    if passwords.outdated(stored):
        store.replace_hash(reader(), known.identity.person_id, before=stored, after=passwords.rehash(password))
    _sessions().sign_in(known.identity, session._get_current_object())  # type: ignore[attr-defined]  # a LocalProxy
    response = redirect(_next(), code=303)
    guessing.remember_browser(response, username, secure=_sessions().secure)
    _keep_theme(response, known.identity.theme)
    return response


@blueprint.post("/logout")
@public
def sign_out() -> Any:
    """End the session, here and in the database, and ask the browser to forget what it kept."""
    current = session._get_current_object()  # type: ignore[attr-defined]  # a LocalProxy
    response = redirect("/login", code=303)
    if not isinstance(current, StoredSession):
        return response
    store.end_session(reader(), current.token)
    current.ended = True
    response.headers["Clear-Site-Data"] = '"cache", "storage"'
    return response


@blueprint.post("/theme")
def choose_theme() -> Any:
    """A person's own choice, kept with the person; the cookie carries it to the sign-in page."""
    theme = request.form.get("theme", "")
    who = identity()
    if theme not in THEMES or who is None:
        return _form(422, problem=f"Theme: expected one of {', '.join(THEMES)}.")
    store.set_theme(reader(), who.person_id, theme)
    response = redirect(local_path(request.form.get("next"), "/"), code=303)
    _keep_theme(response, theme)
    return response


def _form(status: int = 200, *, problem: str = "", username: str = "", hint: str = "") -> tuple[str, int]:
    lapsed = bool(request.args.get("lapsed")) or bool(g.get("session_lapsed"))
    page = render_template("auth/login.html", problem=problem, hint=hint, username=username, next=_next(""), lapsed=lapsed)
    return page, status


def _paused(seconds: int, username: str) -> Response:
    minutes = math.ceil(seconds / 60)
    words = "a minute" if minutes == 1 else f"{minutes} minutes"
    page, status = _form(429, problem="Too many wrong tries", hint=f"Try again in {words}. The pause ends by itself.", username=username)
    return Response(page, status=status, headers={"Retry-After": str(seconds)})


def _next(default: str = "/") -> str:
    return local_path(request.values.get("next"), default)


def _keep_theme(response: Any, theme: str) -> None:
    response.set_cookie(THEME_COOKIE, theme, max_age=400 * 86400, path="/", secure=_sessions().secure, httponly=True, samesite="Lax")


def _sessions() -> DatabaseSessions:
    interface = current_app.session_interface
    assert isinstance(interface, DatabaseSessions), f"expected DatabaseSessions, found {type(interface).__name__}"
    return interface
