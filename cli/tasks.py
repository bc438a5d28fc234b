"""`baton task …`: what waits for people, claimed and completed as one of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import click

from cli.acting import actor_for, as_document, as_person, as_somebody, given_variables, limited, once, paged, parsed, screens, settled
from cli.database import as_json, database, show
from engine.commands.complete_task import complete_task
from engine.commands.outcome import Actor, Claimed
from engine.commands.tasks import assign, claim, take_next, unclaim
from engine.core.lifecycle import USER_TASK
from engine.queries.api import TaskFilter, api_task, api_tasks

COLUMNS = {
    "id": "id",
    "name": "task",
    "status": "status",
    "assignee": "assignee",
    "candidate_groups": "groups",
    "business_key": "business key",
    "due_at": "due",
}
task_id = click.argument("task_id", type=click.UUID)


@click.group()
def task() -> None:
    """User tasks: list, claim, complete."""


@task.command("list")
@as_person
@click.option("--status", type=click.Choice(list(USER_TASK)), help="Else those that are open or claimed.")
@click.option("--assignee", help="Only those of this person.")
@click.option("--group", help="Only those that this group may take.")
@click.option("--process", help="Only those of the process with this key.")
@click.option("--instance", type=click.UUID, help="Only those of this instance.")
@click.option("--business-key", help="Only those of this case.")
@limited
@as_json
def listed(username: str | None, status: str | None, limit: int, as_json: bool, **asked: Any) -> None:
    """Tasks that are open or claimed, oldest first."""
    wanted = TaskFilter(
        status=status or "",
        assignee=asked["assignee"],
        candidate_group=asked["group"],
        process_definition_key=asked["process"],
        process_instance_id=asked["instance"],
        business_key=asked["business_key"],
    )
    with database() as conn:
        actor = actor_for(conn, username)
    with screens() as snapshot:
        found = paged(lambda **page: api_tasks(snapshot, actor, wanted, **page), limit)
    show(found, COLUMNS, as_json=as_json)


@task.command("show")
@task_id
@as_person
@as_json
def shown(task_id: UUID, username: str | None, as_json: bool) -> None:
    """One task with all that is known of it."""
    with database() as conn:
        actor = actor_for(conn, username)
    with screens() as snapshot:
        found = api_task(snapshot, actor, task_id)
    if found is None:
        raise click.ClickException(f"task {task_id}: not found")
    if as_json:
        click.echo(as_document(found))
        return
    for field in found.__slots__:
        value = getattr(found, field)
        if value not in (None, []):
            click.echo(f"{field.replace('_', ' ')}: {', '.join(value) if isinstance(value, list) else value}")


@task.command("claim")
@task_id
@as_somebody
@once
@as_json
def claimed(task_id: UUID, **given: Any) -> None:
    """Claim a task as somebody."""
    _change(task_id, lambda conn, actor, request_id: claim(conn, task_id, actor=actor, request_id=request_id), "claimed", **given)


@task.command("next")
@as_somebody
@once
@as_json
def taken(username: str, request_id: str | None, as_json: bool) -> None:
    """Claim the best free task of somebody's groups and print its id."""
    with database() as conn:
        outcome = take_next(conn, actor=actor_for(conn, username), request_id=request_id)
    said = str(outcome.task_id) if isinstance(outcome, Claimed) else ""
    settled(outcome, said, what=f"the next task of {username}", as_json=as_json)


@task.command("unclaim")
@task_id
@as_person
@once
@as_json
def unclaimed(task_id: UUID, **given: Any) -> None:
    """Give a task back to its candidates."""
    _change(task_id, lambda conn, actor, request_id: unclaim(conn, task_id, actor=actor, request_id=request_id), "given back", **given)


@task.command("assign")
@task_id
@click.option("--to", "assignee", metavar="USERNAME", help="To this person.")
@click.option("--nobody", is_flag=True, help="Back to its candidates.")
@as_person
@once
@as_json
def assigned(task_id: UUID, assignee: str | None, nobody: bool, **given: Any) -> None:
    """Hand a task to somebody."""
    if nobody == (assignee is not None):
        raise click.UsageError(f"expected --to or --nobody, found {'both' if nobody else 'neither'}")

    def hand(conn: Any, actor: Actor, request_id: str | None) -> Any:
        return assign(conn, task_id, actor=actor, assignee=assignee, request_id=request_id)

    _change(task_id, hand, f"assigned to {assignee}" if assignee else "given back", **given)


@task.command("complete")
@task_id
@given_variables
@as_somebody
@once
@as_json
def completed(task_id: UUID, variables: tuple[str, ...], **given: Any) -> None:
    """Complete a task that somebody has claimed."""
    values = parsed(variables)

    def complete(conn: Any, actor: Actor, request_id: str | None) -> Any:
        return complete_task(conn, task_id, actor=actor, variables=values, request_id=request_id)

    _change(task_id, complete, "completed", **given)


def _change(task_id: UUID, command: Callable[..., Any], done: str, *, username: str | None, request_id: str | None, as_json: bool) -> None:
    with database() as conn:
        outcome = command(conn, actor_for(conn, username), request_id)
    settled(outcome, f"task {task_id} is {done}", what=f"task {task_id}", as_json=as_json)
