"""`baton message`, `baton signal`: what other systems have to say to processes."""

from __future__ import annotations

from uuid import UUID

import click

from cli.acting import actor_for, changing, given_variables, parsed, settled
from cli.database import database
from engine.commands.messages import publish_message
from engine.commands.outcome import MessageKnown, MessagePublished, Rejected
from engine.commands.signals import broadcast_signal


@click.command()
@click.argument("name")
@click.option("--key", "correlation_key", default="", help="The correlation key by which its receiver is found.")
@click.option("--business-key", help="Its receiver's business key, instead of the key or besides it.")
@click.option("--instance", "instance_id", type=click.UUID, help="Its receiver, instead of the key or besides it.")
@given_variables
@click.option("--keep", "seconds", type=click.FloatRange(0), metavar="SECONDS", help="How long it is kept when nobody waits for it yet.")
@click.option("--id", "message_id", help="The sender's own id: sent again under it, it has no second effect.")
@changing
def message(
    name: str,
    correlation_key: str,
    business_key: str | None,
    instance_id: UUID | None,
    variables: tuple[str, ...],
    seconds: float | None,
    message_id: str | None,
    username: str | None,
    request_id: str | None,
    as_json: bool,
) -> None:
    """Send the message NAME to who waits for it."""
    with database() as conn:
        outcome = publish_message(
            conn,
            name,
            actor=actor_for(conn, username),
            correlation_key=correlation_key,
            variables=parsed(variables),
            time_to_live_seconds=seconds,
            message_id=message_id,
            business_key=business_key,
            instance_id=instance_id,
            request_id=request_id,
        )
    settled(outcome, _said(outcome), what=f"message {name}", as_json=as_json)


def _said(outcome: MessagePublished | MessageKnown | Rejected) -> str:
    match outcome:
        case MessageKnown():
            return f"sent before: {_said(outcome.first)}"
        case MessagePublished(started=True):
            return f"it started instance {outcome.instance_id}"
        case MessagePublished(outcome="correlated"):
            return f"instance {outcome.instance_id} has it"
        case MessagePublished():
            return f"stored as {outcome.message_id}: nobody waits for it yet"
    return ""


@click.command()
@click.argument("name")
@given_variables
@changing
def signal(name: str, variables: tuple[str, ...], username: str | None, request_id: str | None, as_json: bool) -> None:
    """Throw the signal NAME to everybody who waits for it now."""
    with database() as conn:
        outcome = broadcast_signal(conn, name, actor=actor_for(conn, username), variables=parsed(variables), request_id=request_id)
    settled(outcome, f"signal {name} is thrown", what=f"signal {name}", as_json=as_json)
