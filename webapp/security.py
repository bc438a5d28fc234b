"""What holds for every request: closed by default, CSRF on every change, one strict set of headers.

Order: who is it; has a program asked too often; is the view open to guests; is it within the scopes of the API key; is the
body of a kind that a foreign page cannot send unseen; is the CSRF token this session's; is it text that a database can hold.
Only then does a view run. Nothing here knows tasks or processes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import urlencode, urlsplit

from flask import Flask, Response, abort, current_app, g, redirect, request, url_for
from flask_wtf.csrf import CSRFError, CSRFProtect
from itsdangerous import BadData, URLSafeTimedSerializer
from werkzeug.exceptions import TooManyRequests

from engine.config import Settings
from webapp.auth import basic, store
from webapp.auth.identity import identity
from webapp.auth.scopes import check_scope
from webapp.db import reader
from webapp.limits import count_program

csrf = CSRFProtect()
Again = TypeVar("Again", bound=Callable[..., Any])

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
BODY_TYPES = frozenset({"application/x-www-form-urlencoded", "multipart/form-data", "application/json"})

CSP = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": CSP,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # not no-referrer: Flask-WTF compares the referrer of posts over https
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=(), payment=()",
}


def init_app(app: Flask, settings: Settings) -> None:
    app.config.update(WTF_CSRF_CHECK_DEFAULT=False, WTF_CSRF_TIME_LIMIT=int(settings.session_seconds))
    csrf.init_app(app)
    https = settings.production and not settings.insecure_cookies

    def harden(response: Response) -> Response:
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        if https:
            response.headers["Strict-Transport-Security"] = "max-age=31536000; includeSubDomains"
        if request.endpoint != "static":
            response.headers.setdefault("Cache-Control", "no-store")
        return response

    app.before_request(_identify)
    app.before_request(_refuse_too_many)
    app.before_request(_refuse_guests)
    app.before_request(_refuse_beyond_scope)
    app.before_request(_refuse_foreign_bodies)
    app.before_request(_refuse_forged)
    app.before_request(_refuse_nul)
    app.after_request(harden)


def wants_fragment() -> bool:
    """Asked by htmx, for a part of a page. Boosted and history requests want the whole page."""
    headers = request.headers
    return headers.get("HX-Request") == "true" and "HX-Boosted" not in headers and "HX-History-Restore-Request" not in headers


def is_api() -> bool:
    return request.path.startswith("/api/")


def is_engine_rest() -> bool:
    """Asked as Camunda 7 is asked (webapp/engine_rest): without cookies, and answered in its shape."""
    return request.path.startswith("/engine-rest/")


def is_program() -> bool:
    return is_api() or is_engine_rest()


def local_path(target: str | None, default: str) -> str:
    """`target` if it is a path of this site, else `default`: an address from outside never leads outside."""
    if not target or not target.startswith("/") or target.startswith("//") or "\\" in target:
        return default
    if any(ord(sign) < 33 or ord(sign) == 127 for sign in target):
        return default
    parts = urlsplit(target)
    return default if parts.scheme or parts.netloc else target


def honest_but_stale(token: str | None) -> bool:
    """Whether a refused CSRF token was once given to this very person: too old, or of a session that has ended.

    Only then may what came with it be shown again for a knowing second press; anything else may be an attacker's.
    """
    who = identity()
    if who is None or not token:
        return False
    signer = URLSafeTimedSerializer(str(current_app.secret_key), salt="wtf-csrf-token")
    try:
        raw = signer.loads(token)
    except BadData:
        return False
    return isinstance(raw, str) and raw.partition(".")[0] == str(who.person_id)


def stale_form(view: Callable[..., Any]) -> Callable[[Again], Again]:
    """Mark the function that answers an honest but stale press of `view`: with what was typed, to be pressed again."""

    def mark(again: Again) -> Again:
        view.when_stale = again  # type: ignore[attr-defined]  # a mark on the function, read by webapp.errors
        return again

    return mark


# ---- before every request, in this order


def _identify() -> None:
    """An API key speaks for its person; the cookie's session was read when the request began."""
    if (error := g.pop("session_error", None)) is not None:
        raise error
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    match scheme.lower():
        case "bearer" if is_program():
            g.identity = store.load_api_key(reader(), token.strip(), address=request.remote_addr or "")
        case "basic" if is_engine_rest():
            try:
                g.identity = basic.identify(token)
            except basic.TooManyTries as paused:
                raise TooManyRequests("Too many wrong tries.", retry_after=paused.seconds) from paused


def _refuse_too_many() -> None:
    if is_program():
        count_program(current_app.config["BATON"])


def _refuse_guests() -> Any:
    view: Any = current_app.view_functions.get(request.endpoint or "")
    if view is None or request.endpoint == "static" or getattr(view, "is_public", False) or identity() is not None:
        return None
    if is_program():
        abort(401)
    if request.headers.get("HX-Request") == "true":
        return Response(status=401, headers={"HX-Redirect": _sign_in_url(_page_behind_htmx())})
    return redirect(_sign_in_url(_way_back()), code=302 if request.method in SAFE_METHODS else 303)


def _refuse_beyond_scope() -> None:
    """An API key may be limited to some of what its person may."""
    view = current_app.view_functions.get(request.endpoint or "")
    if view is not None and (who := identity()) is not None:
        check_scope(who, view, method=request.method, path=request.path)


def _refuse_foreign_bodies() -> None:
    """A text/plain body can be sent by a form of any site; JSON that claims to be one is refused (S69)."""
    if request.method not in SAFE_METHODS and request.content_length and request.mimetype not in BODY_TYPES:
        abort(415)


def _refuse_forged() -> None:
    who = identity()
    if request.method in SAFE_METHODS or request.endpoint is None or (who is not None and who.by_key):
        return
    if who is None and (is_program() or request.endpoint == "auth.sign_out"):
        return  # no session to ride on: the API answers 401, and who is signed out already is sent to sign in
    try:
        csrf.protect()
    except ValueError as error:  # over https Flask-WTF parses the referrer, which may be "https://["
        raise CSRFError("The referrer is no address.") from error


def _refuse_nul() -> None:
    """No text of PostgreSQL holds U+0000: an address with one leads nowhere, and nobody typed a form with one."""
    if "\0" in request.path:
        abort(404)
    if request.method in SAFE_METHODS or is_program():  # they read their bodies themselves, under limits of their own
        return
    texts = [value for _, value in request.form.items(multi=True)]
    texts += [upload.filename or "" for _, upload in request.files.items(multi=True)]
    if any("\0" in text for text in texts):
        abort(422, "expected text without the character U+0000")


def _way_back() -> str:
    """Where to go after signing in: the page itself; for a change to a task, the task's page."""
    if request.method in SAFE_METHODS:
        return request.full_path.rstrip("?")
    task_id = (request.view_args or {}).get("task_id")
    return f"/tasks/{task_id}" if task_id else "/"


def _page_behind_htmx() -> str:
    """The page that htmx asked from; the start where its header names none."""
    try:
        here = urlsplit(request.headers.get("HX-Current-URL", ""))
    except ValueError:  # "http://[" is no address, and nothing that a browser sends
        return "/"
    return local_path(f"{here.path}?{here.query}" if here.query else here.path, "/")


def _sign_in_url(back: str) -> str:
    url = url_for("auth.sign_in")
    query = {"next": back} if back not in ("", "/") else {}
    if g.get("session_lapsed"):
        query["lapsed"] = "1"
    return f"{url}?{urlencode(query)}" if query else url
