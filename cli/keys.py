"""`baton key …`: API keys, with which a program acts as a person."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from uuid import UUID

import click

from cli.acting import as_document
from cli.database import as_json, database, refused, show
from engine.commands.api_keys import DEFAULT_DAYS, PREFIX, add_api_key, revoke_api_key
from engine.commands.outcome import SYSTEM, Refusal, Rejected
from engine.commands.scopes import SCOPES
from engine.config import Settings
from engine.queries.people import ApiKeyRow, api_keys, whose_key

COLUMNS = {
    "id": "id",
    "username": "person",
    "name": "used by",
    "ending": "ends in",
    "scopes": "scopes",
    "status": "status",
    "expires_at": "until",
    "last_used_at": "last used",
    "last_used_from": "from",
}


@click.group()
def key() -> None:
    """API keys, for programs that act as a person."""


@key.command("add")
@click.argument("person")
@click.option("--name", required=True, help="What uses the key, e.g. 'nightly import'.")
@click.option("--days", type=int, help=f"How long it holds; {DEFAULT_DAYS} days when nothing is said.")
@click.option("--never-expires", is_flag=True, help="It holds until it is revoked.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(list(SCOPES)),
    help="What it may do; may be given several times. Without any: all that its person may.",
)
@as_json
def add(person: str, name: str, days: int | None, never_expires: bool, scopes: tuple[str, ...], as_json: bool) -> None:
    """Make a key for PERSON and print it, this once, on a line of its own."""
    if never_expires and days is not None:
        raise click.UsageError("expected --days or --never-expires, found both")
    longest = Settings.from_env().key_max_days
    usual = min(DEFAULT_DAYS, longest or DEFAULT_DAYS)
    lasting = None if never_expires else usual if days is None else days
    with database() as conn:
        outcome = add_api_key(conn, person, actor=SYSTEM, name=name, days=lasting, scopes=scopes or None, longest_days=longest)
    if isinstance(outcome, Rejected):
        if outcome.refusal is Refusal.NOT_FOUND:
            raise click.ClickException(f"nobody is called {person}")
        refused(outcome)
    click.echo("Keep it safe: it is not stored and not shown again.", err=True)
    if as_json:
        click.echo(json.dumps({"id": outcome.key_id, "key": outcome.token, "expires_at": outcome.expires_at}, default=str, indent=2))
        return
    click.echo(outcome.token)


@key.command("list")
@click.option("--person", help="Only this person's.")
@as_json
def listed(person: str | None, as_json: bool) -> None:
    """All keys, without their secrets."""
    with database() as conn:
        show(api_keys(conn, username=person), COLUMNS, as_json=as_json)


@key.command("find")
@as_json
def find(as_json: bool) -> None:
    """Say whose key it is that stands on the first line of standard input: one that was found where it should not be."""
    token = sys.stdin.readline().strip()
    if not token.startswith(PREFIX) or not token.isprintable():
        raise click.ClickException(f"expected a key, which begins with {PREFIX}, on the first line of standard input, found something else")
    with database() as conn:
        found = whose_key(conn, token)
    if found is None:
        raise click.ClickException("no key of this database has that text")
    click.echo(json.dumps(asdict(found), default=str, indent=2) if as_json else _told(found))


def _told(found: ApiKeyRow) -> str:
    used = f"last used {found.last_used_at:%Y-%m-%d %H:%M}" if found.last_used_at else "never used"
    return f"{found.id} of {found.username}, {found.name!r}: {found.status}, {used}"


@key.command("revoke")
@click.argument("key_id", type=click.UUID)
@as_json
def revoke(key_id: UUID, as_json: bool) -> None:
    """Make a key useless. KEY_ID is the id that `baton key list` shows."""
    with database() as conn:
        outcome = revoke_api_key(conn, key_id, actor=SYSTEM)
    if isinstance(outcome, Rejected):
        raise click.ClickException(f"no key has the id {key_id}")
    click.echo(as_document(outcome) if as_json else "The key is revoked.")
