"""`baton web`: the application under gunicorn, and the factory that gunicorn calls in each of its processes."""

from __future__ import annotations

import os
import secrets
import sys

import click
import psycopg
from flask import Flask

from engine.config import Settings
from engine.db.room import of_web, too_few
from engine.db.session import behind_pooler, connect, with_timeout

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
    _ask_for_room(settings)
    if settings.secret_key is None:  # one for all processes of this server; production was refused without one
        os.environ["BATON_SECRET_KEY"] = secrets.token_urlsafe(32)
        click.echo("baton: BATON_SECRET_KEY is not set: one is made, and everybody signs in again after a restart", err=True)
    os.execv(GUNICORN[0], GUNICORN)  # noqa: S606 - replaced by gunicorn, which is to get our signals


def _ask_for_room(settings: Settings) -> None:
    """Say whether all connections of this server may run out. Without a database it starts all the same, and is not ready."""
    url, wanted = settings.need_database(), of_web(processes=settings.web_processes, pool_size=settings.pool_size)
    if behind_pooler(url):
        return
    try:
        with connect(with_timeout(url, seconds=3), application_name="baton-web") as conn:
            found = too_few(conn, wanted)
    except psycopg.OperationalError as problem:
        click.echo(f"baton: the database does not answer yet: {problem}", err=True)
        return
    if found:
        click.echo(
            f"baton: connections may run out: this server opens up to {found.wanted}"
            f" ({settings.web_processes} BATON_WEB_PROCESSES × ({settings.pool_size} BATON_POOL_SIZE + 1)),"
            f" the database allows {found.allowed} and others use {found.used} now",
            err=True,
        )
