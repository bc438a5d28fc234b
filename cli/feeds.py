"""`baton feed …`: process events that go to a destination as they happen."""

from __future__ import annotations

import click

from cli.acting import actor_for, changing, screens, settled
from cli.database import as_json, database, show
from engine.commands.event_feeds import add_feed, remove_feed
from engine.commands.outcome import SYSTEM
from engine.queries.event_feeds import event_feeds

COLUMNS = {
    "name": "name",
    "destination": "destination",
    "kinds": "kinds",
    "definition_key": "process",
    "behind": "behind",
    "created_by": "made by",
}


@click.group()
def feed() -> None:
    """Process events that go to a destination as they happen (webhooks)."""


@feed.command("list")
@as_json
def listed(as_json: bool) -> None:
    """All of them, with how many events each is behind."""
    with screens() as snapshot:
        show(event_feeds(snapshot, tenant_id=SYSTEM.tenant_id), COLUMNS, as_json=as_json)


@feed.command("add")
@click.argument("name")
@click.argument("destination")
@click.option("--kind", "kinds", multiple=True, help="Only this kind of events; may be repeated.")
@click.option("--process", "definition_key", default="", help="Only those of one process.")
@changing
def added(
    name: str, destination: str, kinds: tuple[str, ...], definition_key: str, username: str | None, request_id: str | None, as_json: bool
) -> None:
    """Send what happens from now on to DESTINATION (`baton destination list`)."""
    with database() as conn:
        outcome = add_feed(
            conn, name, destination, actor=actor_for(conn, username), kinds=kinds, definition_key=definition_key, request_id=request_id
        )
    settled(outcome, f"{name} sends events to {destination}", what=f"feed {name}", as_json=as_json)


@feed.command("remove")
@click.argument("name")
@changing
def removed(name: str, username: str | None, request_id: str | None, as_json: bool) -> None:
    """Write nothing more for NAME; what was written is still sent."""
    with database() as conn:
        outcome = remove_feed(conn, name, actor=actor_for(conn, username), request_id=request_id)
    settled(outcome, f"{name} is removed", what=f"feed {name}", as_json=as_json)
