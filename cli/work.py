"""`baton worker`: acquire, run, report until told to stop."""

from __future__ import annotations

import click

from engine.config import Settings
from worker.main import run


@click.command()
@click.pass_context
def worker(ctx: click.Context) -> None:
    """Run one worker. Needs DATABASE_URL; any number of these may run on any number of machines.

    SIGTERM lets what runs come to its end within BATON_DRAIN_SECONDS and hands the rest back; a second one hurries.
    """
    settings = Settings.from_env()
    settings.need_database()
    ctx.exit(run(settings))
