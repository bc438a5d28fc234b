"""Put the web application together: settings in, a Flask application out. New screens are blueprints, listed here."""

from __future__ import annotations

from importlib import import_module
from secrets import token_urlsafe

from flask import Blueprint, Flask
from jinja2 import StrictUndefined
from werkzeug.middleware.proxy_fix import ProxyFix

from engine.config import Settings
from engine.paths import shipped
from webapp import assets, errors, filters, limits, security
from webapp.auth.session import DatabaseSessions
from webapp.db import init_db

MAX_BODY_BYTES = 16 * 1024 * 1024

# module -> its `blueprint`. Whoever adds a screen adds a line.
BLUEPRINTS = (
    "webapp.health",
    "webapp.auth.views",
    "webapp.inbox.views",
    "webapp.tasks.views",
    "webapp.start.views",
    "webapp.account.views",
    "webapp.people.views",
    "webapp.live",
    "webapp.operations.views",
    "webapp.api.views",
    "webapp.reference",
    "webapp.engine_rest.views",
)


def create_app(settings: Settings) -> Flask:
    """The application for one process. Opens no connection until the first request."""
    app = Flask("webapp", static_folder=str(shipped("static")), static_url_path="/static", template_folder=str(shipped("templates")))
    app.config.update(
        SECRET_KEY=settings.secret_key or token_urlsafe(32),
        BATON=settings,
        MAX_CONTENT_LENGTH=MAX_BODY_BYTES,
        MAX_FORM_MEMORY_SIZE=1_000_000,
        MAX_FORM_PARTS=2_000,
    )
    app.jinja_env.undefined = StrictUndefined
    app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True
    app.session_interface = DatabaseSessions(settings)
    if settings.trusted_proxies:
        hops = settings.trusted_proxies
        app.wsgi_app = ProxyFix(app.wsgi_app, x_for=hops, x_proto=hops, x_host=hops)  # type: ignore[method-assign]  # how Flask documents it
    init_db(app, settings)
    security.init_app(app, settings)
    limits.init_app(app)
    assets.init_app(app)
    filters.init_app(app)
    errors.init_app(app)
    for module in BLUEPRINTS:
        app.register_blueprint(_blueprint(module))
    return app


def _blueprint(module: str) -> Blueprint:
    found = import_module(module).blueprint
    if not isinstance(found, Blueprint):
        raise TypeError(f"{module}.blueprint: expected a Blueprint, found {type(found).__name__}")
    return found
