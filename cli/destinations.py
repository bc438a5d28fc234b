"""`baton destination …`: where deliveries go, and how."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import click

from cli.acting import actor_for, changing, reason, refusal, screens, settled
from cli.database import as_json, database, secret_key, show
from engine.commands.destinations import KINDS as KINDS_OF_DESTINATION
from engine.commands.destinations import (
    Wanted,
    add_destination,
    change_destination,
    remove_destination,
    rotate_secret,
    send_test,
)
from engine.commands.outcome import SYSTEM, DestinationSaved, Rejected
from engine.queries.destinations import destinations
from engine.webhooks import signing_secret

COLUMNS = {
    "name": "name",
    "kind": "kind",
    "shown_address": "address",
    "lag_seconds": "lag",
    "due": "due",
    "in_line": "in line",
    "sending": "sending",
    "concurrency": "at a time",
    "paused_by": "paused by",
}
named = click.argument("name")


def limits(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say how deliveries to it are sent."""
    for option in reversed((
        click.option("--kind", type=click.Choice(KINDS_OF_DESTINATION), default="http", show_default=True),
        click.option("--concurrency", type=int, help="How many at a time, of all workers."),
        click.option("--retry", default="", help="For what has no policy of its own: R8/PT10S*2/PT1H, PT1M,PT5M, a number of attempts."),
        click.option("--redirects", type=int, default=0, show_default=True, help="How many are followed, up to 3."),
        click.option("--seconds", type=float, help="Of one attempt, redirects included."),
        click.option("--max-bytes", type=int, help="Of an answer; of a mail, of the mail."),
    )):  # fmt: skip
        command = option(command)
    return command


@click.group()
def destination() -> None:
    """Where deliveries go: registered, changed, tried, removed. Paused by `baton pause add http NAME`."""


@destination.command("list")
@as_json
def listed(as_json: bool) -> None:
    """All of them, those that lag first."""
    with screens() as snapshot:
        show(destinations(snapshot, tenant_id=SYSTEM.tenant_id), COLUMNS, as_json=as_json)


@destination.command("add")
@named
@click.argument("address")
@limits
@reason
@changing
def added(name: str, address: str, reason: str, username: str | None, request_id: str | None, as_json: bool, **given: Any) -> None:
    """Register NAME for an ADDRESS (a URL; a domain of mail, or '*') and show its signing secret, this once."""
    key = _secret_key() if given["kind"] == "http" else ""
    with database() as conn:
        wanted = Wanted(address=address, **given)
        outcome = add_destination(conn, name, wanted, actor=actor_for(conn, username), reason=reason, request_id=request_id)
    _told(outcome, f"{name} is registered", name, key, as_json)


@destination.command("change")
@named
@click.argument("address")
@limits
@reason
@changing
def changed(name: str, address: str, reason: str, username: str | None, request_id: str | None, as_json: bool, **given: Any) -> None:
    """Give NAME other limits: all of them, as they are to be."""
    with database() as conn:
        wanted = Wanted(address=address, **given)
        outcome = change_destination(conn, name, wanted, actor=actor_for(conn, username), reason=reason, request_id=request_id)
    settled(outcome, f"{name} is changed", what=f"destination {name}", as_json=as_json)


@destination.command("rotate")
@named
@click.option("--overlap", type=float, default=86_400.0, show_default=True, help="Seconds that the old secrets sign beside it.")
@reason
@changing
def rotated(name: str, overlap: float, reason: str, username: str | None, request_id: str | None, as_json: bool) -> None:
    """Make another signing secret of NAME and show it, this once."""
    key = _secret_key()
    with database() as conn:
        outcome = rotate_secret(conn, name, actor=actor_for(conn, username), overlap=overlap, reason=reason, request_id=request_id)
    _told(outcome, f"{name} has another secret", name, key, as_json)


@destination.command("test")
@named
@click.option("--to", default="", help="A path below its address; of mail the recipient.")
@changing
def tested(name: str, to: str, username: str | None, request_id: str | None, as_json: bool) -> None:
    """Send NAME a test, on the way of every delivery."""
    with database() as conn:
        outcome = send_test(conn, name, actor=actor_for(conn, username), to=to, request_id=request_id)
    said = "" if isinstance(outcome, Rejected) else f"test {outcome.delivery_id} is on its way to {name}"
    settled(outcome, said, what=f"destination {name}", as_json=as_json)


@destination.command("remove")
@named
@reason
@changing
def removed(name: str, reason: str, username: str | None, request_id: str | None, as_json: bool) -> None:
    """Remove NAME. What was written for it is still sent as it says."""
    with database() as conn:
        outcome = remove_destination(conn, name, actor=actor_for(conn, username), reason=reason, request_id=request_id)
    settled(outcome, f"{name} is removed", what=f"destination {name}", as_json=as_json)


def _secret_key() -> str:
    key = secret_key()
    if key is None:
        raise click.ClickException("BATON_SECRET_KEY: expected that of the workers, of which signing secrets are made, found nothing")
    return key


def _told(outcome: DestinationSaved | Rejected, said: str, name: str, key: str, as_json: bool) -> None:
    if isinstance(outcome, Rejected):
        refusal(outcome, what=f"destination {name}")
    secret = signing_secret(key, outcome.salt) if outcome.salt else None
    if as_json:
        click.echo(json.dumps({"name": name, "secret": secret}, indent=2))
        return
    click.echo(said)
    if secret:
        click.echo(f"its signing secret, shown this once: {secret}")
