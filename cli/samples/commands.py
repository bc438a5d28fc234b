"""`baton samples …`: deploy the sample processes, drive traffic through them."""

from __future__ import annotations

import threading
from pathlib import Path

import click
import httpx

from cli.database import database, refused
from cli.samples import SERVICE, sample_files
from engine.commands.deploy import deploy as deploy_command
from engine.commands.outcome import SYSTEM, Rejected
from engine.config import Settings


@click.group()
def samples() -> None:
    """The sample processes."""


@samples.command("deploy")
def deploy() -> None:
    """Deploy the sample processes. What has not changed gets no new version."""
    with database() as conn:
        outcome = deploy_command(conn, sample_files(service=_service(Settings.from_env())), actor=SYSTEM, name="samples")
    if isinstance(outcome, Rejected):
        refused(outcome)
    for definition in outcome.definitions:
        click.echo(f"{definition.key} version {definition.version}{' (unchanged)' if definition.unchanged else ''}")


@samples.command("drive")
@click.option("--seconds", type=click.FloatRange(min=0.1), default=120.0, show_default=True, help="How long.")
@click.option("--rate", type=click.FloatRange(0.05, 200), default=2.0, show_default=True, help="Things that happen in a second.")
@click.option(
    "--failures", type=click.IntRange(0, 100), default=10, show_default=True, help="Per cent of the sample service's calls that fail."
)
@click.option("--seed", type=int, help="The same seed makes the same choices.")
@click.option("--quiet", is_flag=True, help="Only the sum at the end.")
def drive(seconds: float, rate: float, failures: int, seed: int | None, quiet: bool) -> None:
    """Drive people, timers and failures through the samples of a running `baton up`, until the time is up or Ctrl-C."""
    from cli.samples.drive import Driver, Plan

    stop = threading.Event()

    def pause(seconds: float) -> bool:
        return stop.wait(seconds)

    with database() as conn:
        driver = Driver(
            conn,
            Plan(seconds, rate, failures, seed),
            service=_answering(Settings.from_env()),
            say=(lambda _: None) if quiet else click.echo,
        )
        try:
            done = driver.run(told_to_stop=pause)
        except KeyboardInterrupt:
            done = driver.done
    click.echo(", ".join(f"{count} {what}" for what, count in sorted(done.items())) or "nothing happened")


def _service(settings: Settings) -> str:
    """Where the sample service answers: as told, or as the `baton up` of this home wrote down, or by default."""
    if settings.sample_service:
        return settings.sample_service
    note: Path = settings.home / "service-port"
    return f"http://127.0.0.1:{note.read_text().strip()}" if note.exists() else SERVICE


def _answering(settings: Settings) -> str | None:
    service = _service(settings)
    try:
        httpx.get(f"{service}/settings", timeout=2, trust_env=False).raise_for_status()
    except httpx.HTTPError:
        return None
    return service
