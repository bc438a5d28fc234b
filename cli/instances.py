"""`baton instance …`: what runs, where it stands, what happened to it; cancelled, suspended, resumed."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any
from uuid import UUID

import click

from cli.acting import actor_for, as_person, changing, limited, paged, reason, screens, settled
from cli.database import as_json, database, show
from engine.commands.cancel import cancel_instance
from engine.commands.suspend import resume_instance, suspend_instance
from engine.core.lifecycle import INSTANCE
from engine.queries.api import InstanceListFilter, api_details, api_history, api_instance, api_instances

COLUMNS = {
    "id": "id",
    "definition_key": "process",
    "version": "version",
    "status": "status",
    "business_key": "business key",
    "started_at": "started",
    "ended_at": "ended",
}
EVENTS = {"at": "at", "kind": "what", "element_id": "element", "actor_name": "who", "via": "by"}
instance_id = click.argument("instance_id", type=click.UUID)


@click.group()
def instance() -> None:
    """Process instances: list, look into, cancel, suspend, resume."""


@instance.command("list")
@as_person
@click.option("--status", type=click.Choice(list(INSTANCE)))
@click.option("--process", help="Only those of the process with this key.")
@click.option("--version", type=click.IntRange(1, 2**31 - 1), help="Only those of this version of it.")
@click.option("--business-key", help="Only those with this business key.")
@click.option("--element", help="Only those that stand at this element.")
@click.option("--incidents", is_flag=True, help="Only those with an incident.")
@limited
@as_json
def listed(username: str | None, status: str | None, process: str | None, limit: int, as_json: bool, **asked: Any) -> None:
    """Instances, newest first."""
    wanted = InstanceListFilter(
        status=status or "",
        process_definition_key=process,
        business_key=asked["business_key"],
        version=asked["version"],
        incidents=asked["incidents"],
        element_id=asked["element"] or "",
    )
    with database() as conn:
        actor = actor_for(conn, username)
    with screens() as snapshot:
        found = paged(lambda **page: api_instances(snapshot, actor, wanted, **page), limit)
    show(found, COLUMNS, as_json=as_json)


@instance.command("show")
@instance_id
@as_person
@as_json
def shown(instance_id: UUID, username: str | None, as_json: bool) -> None:
    """One instance: where it stands, what it knows, what is stuck."""
    with database() as conn:
        actor = actor_for(conn, username)
    with screens() as snapshot:
        found = api_instance(snapshot, actor, instance_id)
        details = api_details(snapshot, instance_id) if found else None
    if found is None or details is None:
        raise click.ClickException(f"instance {instance_id}: not found")
    if found.final_variables is not None:
        details.variables.update({name: kept["value"] for name, kept in found.final_variables.items()})
    document = {**asdict(found), **asdict(details)}
    document.pop("final_variables")
    if as_json:
        click.echo(json.dumps(document, default=str, indent=2))
        return
    for name, value in document.items():
        if value not in (None, [], {}):
            text = value if not isinstance(value, dict | list) else json.dumps(value, default=str, ensure_ascii=False)
            click.echo(f"{name.replace('_', ' ')}: {text}")


@instance.command("history")
@instance_id
@as_person
@limited
@as_json
def history(instance_id: UUID, username: str | None, limit: int, as_json: bool) -> None:
    """What happened in an instance, oldest first."""
    with database() as conn:
        actor = actor_for(conn, username)
    with screens() as snapshot:
        if api_instance(snapshot, actor, instance_id) is None:
            raise click.ClickException(f"instance {instance_id}: not found")
        found = paged(lambda **page: api_history(snapshot, instance_id, tenant_id=actor.tenant_id, **page), limit)
    show(found, EVENTS, as_json=as_json)


@instance.command("cancel")
@instance_id
@click.option("--reason", required=True, help="Why, for the history and the audit.")
@changing
def cancelled(instance_id: UUID, reason: str, username: str | None, request_id: str | None, as_json: bool) -> None:
    """Cancel an instance with all that it called."""
    with database() as conn:
        outcome = cancel_instance(conn, instance_id, actor=actor_for(conn, username), reason=reason, request_id=request_id)
    finishing = getattr(outcome, "finishing", False)
    said = f"instance {instance_id} is {'being cancelled: it is large, and a worker ends it in steps' if finishing else 'cancelled'}"
    settled(outcome, said, what=f"instance {instance_id}", as_json=as_json)


@instance.command("suspend")
@instance_id
@reason
@changing
def suspended(instance_id: UUID, reason: str, username: str | None, request_id: str | None, as_json: bool) -> None:
    """Let nothing of an instance move until it is resumed."""
    with database() as conn:
        outcome = suspend_instance(conn, instance_id, actor=actor_for(conn, username), reason=reason, request_id=request_id)
    settled(outcome, f"instance {instance_id} is suspended", what=f"instance {instance_id}", as_json=as_json)


@instance.command("resume")
@instance_id
@reason
@changing
def resumed(instance_id: UUID, reason: str, username: str | None, request_id: str | None, as_json: bool) -> None:
    """Let a suspended instance go on."""
    with database() as conn:
        outcome = resume_instance(conn, instance_id, actor=actor_for(conn, username), reason=reason, request_id=request_id)
    settled(outcome, f"instance {instance_id} goes on", what=f"instance {instance_id}", as_json=as_json)
