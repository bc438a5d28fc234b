"""`baton web`: the application under gunicorn, and the factory that gunicorn calls in each of its processes."""

from __future__ import annotations

import os
import secrets
import sys

import click
from flask import Flask

from engine.config import Settings

# No control socket: it would lie in the home of whoever starts this, the same for every server of theirs.
GUNICORN = [sys.executable, "-m", "gunicorn", "--no-control-socket", "--config", "python:webapp.gunicorn", "cli.web:application()"]


def application() -> Flask:
    """The application of one process, with the pages of the sample service where `baton up` started one."""
    from webapp.app import create_app  # here: the parent of gunicorn, and `baton up`, need not load it

    settings = Settings.from_env()
    app = create_app(settings)
    if settings.sample_service:
        from cli.dev_pages import blueprint

        app.register_blueprint(blueprint)
    return app


@click.command()
def web() -> None:
    """Serve the web application. Needs DATABASE_URL; any number of these may run on any number of machines."""
    settings = Settings.from_env()
    settings.need_database()
    if settings.secret_key is None:  # one for all processes of this server; production was refused without one
        os.environ["BATON_SECRET_KEY"] = secrets.token_urlsafe(32)
        click.echo("baton: BATON_SECRET_KEY is not set: one is made, and everybody signs in again after a restart", err=True)
    os.execv(GUNICORN[0], GUNICORN)  # noqa: S606 - replaced by gunicorn, which is to get our signals
