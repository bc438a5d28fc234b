"""`baton key …`: API keys, with which a program acts as a person."""

from __future__ import annotations

from uuid import UUID

import click

from cli.database import as_json, database, refused, show
from engine.commands.outcome import SYSTEM, Refusal, Rejected
from engine.commands.people import add_api_key, revoke_api_key
from engine.queries.people import api_keys


@click.group()
def key() -> None:
    """API keys, for programs that act as a person."""


@key.command("add")
@click.argument("person")
@click.option("--name", required=True, help="What uses the key, e.g. 'nightly import'.")
@click.option("--days", type=int, help="How long it holds; for ever when not given.")
def add(person: str, name: str, days: int | None) -> None:
    """Make a key for PERSON and print it, this once, on a line of its own."""
    with database() as conn:
        outcome = add_api_key(conn, person, actor=SYSTEM, name=name, days=days)
    if isinstance(outcome, Rejected):
        if outcome.refusal is Refusal.NOT_FOUND:
            raise click.ClickException(f"nobody is called {person}")
        refused(outcome)
    click.echo("Keep it safe: it is not stored and not shown again.", err=True)
    click.echo(outcome.token)


@key.command("list")
@click.option("--person", help="Only this person's.")
@as_json
def listed(person: str | None, as_json: bool) -> None:
    """All keys, without their secrets."""
    with database() as conn:
        found = api_keys(conn, username=person)
    columns = {
        "id": "id",
        "username": "person",
        "name": "used by",
        "created_at": "made",
        "expires_at": "until",
        "last_used_at": "last used",
        "revoked_at": "revoked",
    }
    show(found, columns, as_json=as_json)


@key.command("revoke")
@click.argument("key_id", type=click.UUID)
def revoke(key_id: UUID) -> None:
    """Make a key useless. KEY_ID is the id that `baton key list` shows."""
    with database() as conn:
        outcome = revoke_api_key(conn, key_id, actor=SYSTEM)
    if isinstance(outcome, Rejected):
        raise click.ClickException(f"no key has the id {key_id}")
    click.echo("The key is revoked.")
