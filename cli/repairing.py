"""`baton jobs`, `baton incidents`, `baton retry`, `baton release`, `baton delivery …`: durable work, and what is stuck."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from uuid import UUID

import click
import psycopg

from cli.acting import actor_for, as_person, changing, limited, once, paged, screens, settled
from cli.database import as_json, database, show
from engine.commands.deliveries import replay_delivery, skip_delivery
from engine.commands.leases import release_by_operator
from engine.commands.may import may
from engine.commands.outcome import Actor, Rejected
from engine.commands.retry import retry_item
from engine.core.lifecycle import WORK
from engine.queries.work import JOB_KINDS, FailedItem, failed_items, work_item, work_items

JOBS = {
    "id": "id",
    "kind": "kind",
    "topic": "topic",
    "element_id": "element",
    "status": "status",
    "due_at": "due",
    "attempts": "attempts",
    "max_attempts": "of",
    "definition_key": "process",
    "business_key": "business key",
}
INCIDENTS = {
    "id": "id of what failed",
    "work": "work",
    "element_id": "element",
    "message": "error",
    "attempts": "attempts",
    "definition_key": "process",
    "business_key": "business key",
    "created_at": "since",
}
SHORT = 80  # characters of an error in a table
why = click.option("--reason", required=True, help="Why, for the history and the audit.")


@click.command()
@click.option("--status", type=click.Choice(list(WORK)))
@click.option("--kind", type=click.Choice([*JOB_KINDS, "external"]), help="'external': external tasks.")
@click.option("--topic", default="", help="Only of this handler or topic.")
@click.option("--instance", "instance_id", type=click.UUID, help="Only of this instance.")
@click.option("--due", is_flag=True, help="Only what may be begun now.")
@limited
@as_person
@as_json
def jobs(
    status: str | None, kind: str | None, topic: str, instance_id: UUID | None, due: bool, limit: int, username: str | None, as_json: bool
) -> None:
    """Jobs and external tasks that are not over, newest first."""
    actor = _who(username, "see", "job")
    with screens() as snapshot:
        found = paged(
            lambda **page: work_items(
                snapshot,
                tenant_id=actor.tenant_id,
                status=status or "",
                kind=kind or "",
                topic=topic,
                due=due,
                instance_id=instance_id,
                **page,
            ),
            limit,
        )
    show(found, JOBS, as_json=as_json)


@click.command()
@click.option("--process", default="", help="Only those of the process with this key.")
@click.option("--instance", "instance_id", type=click.UUID, help="Only those of this instance.")
@limited
@as_person
@as_json
def incidents(process: str, instance_id: UUID | None, limit: int, username: str | None, as_json: bool) -> None:
    """What has failed and waits for a person, newest first."""
    actor = _who(username, "see", "incident")
    found = _failed(actor, process=process, instance_id=instance_id, limit=limit)
    if as_json:
        click.echo(json.dumps([asdict(item) for item in found], default=str, indent=2))
        return
    show([_shortened(item) for item in found], INCIDENTS, as_json=False)


@click.command()
@click.argument("ids", nargs=-1, type=click.UUID, metavar="[ID]…")
@click.option("--all", "everything", is_flag=True, help="All that has failed; --process narrows it.")
@click.option("--process", default="", help="With --all: only what failed in the process with this key.")
@click.option("--attempts", type=click.IntRange(1, 100), default=1, show_default=True, help="How many new attempts each gets.")
@as_person
@once
@as_json
def retry(
    ids: tuple[UUID, ...], everything: bool, process: str, attempts: int, username: str | None, request_id: str | None, as_json: bool
) -> None:
    """Give what failed new attempts. ID is the first column of `baton incidents`; may be several.

    Ends with exit code 1 if any was not retried; the others are.
    """
    if bool(ids) == everything or (process and not everything):
        raise click.UsageError("expected ids, or --all with or without --process")
    actor = _who(username, "retry", "job")
    wanted = _failed(actor, process=process, limit=10_000) if everything else [_one_failed(actor, each) for each in ids]
    told = []
    with database() as conn:
        for item in wanted:
            told.append(_retried(conn, item, actor, attempts, request_id))
    if as_json:
        click.echo(json.dumps(told, default=str, indent=2))
    else:
        for line in told:
            because = f" ({line['detail']})" if line["detail"] else ""
            click.echo(f"{line['id']}: {line['outcome']}{because}")
        click.echo(f"{sum(line['outcome'] == 'retried' for line in told)} of {len(told)} retried", err=True)
    if any(line["outcome"] != "retried" for line in told):
        raise click.exceptions.Exit(1)


@click.command()
@click.argument("item_id", metavar="ID", type=click.UUID)
@why
@changing
def release(item_id: UUID, reason: str, username: str | None, request_id: str | None, as_json: bool) -> None:
    """Take the lease of a job or external task from its holder, who may be running; the attempt is spent."""
    actor = _who(username, "see", "job")
    with screens() as snapshot:
        kind = next(
            (each for each in ("job", "external_task") if work_item(snapshot, each, item_id, tenant_id=actor.tenant_id)), "delivery"
        )
    with database() as conn:
        outcome = release_by_operator(conn, kind, item_id, actor=actor, reason=reason, request_id=request_id)
    settled(outcome, f"{item_id} is released", what=f"item {item_id}", as_json=as_json)


@click.group()
def delivery() -> None:
    """What leaves by the outbox: skip it, or send it again. `baton retry` is for what failed."""


@delivery.command("skip")
@click.argument("delivery_id", metavar="ID", type=click.UUID)
@why
@changing
def skip(delivery_id: UUID, reason: str, username: str | None, request_id: str | None, as_json: bool) -> None:
    """Never send this delivery."""
    with database() as conn:
        outcome = skip_delivery(conn, delivery_id, actor=actor_for(conn, username), reason=reason, request_id=request_id)
    settled(outcome, f"delivery {delivery_id} is skipped", what=f"delivery {delivery_id}", as_json=as_json)


@delivery.command("replay")
@click.argument("delivery_id", metavar="ID", type=click.UUID)
@why
@changing
def replay(delivery_id: UUID, reason: str, username: str | None, request_id: str | None, as_json: bool) -> None:
    """Send again what was sent, skipped or cancelled, as a new delivery."""
    with database() as conn:
        outcome = replay_delivery(conn, delivery_id, actor=actor_for(conn, username), reason=reason, request_id=request_id)
    said = "" if isinstance(outcome, Rejected) else f"it is sent again as {outcome.item_id}"
    settled(outcome, said, what=f"delivery {delivery_id}", as_json=as_json)


def _who(username: str | None, action: str, kind: str) -> Actor:
    with database() as conn:
        actor = actor_for(conn, username)
    if not may(actor, action, kind):
        raise click.ClickException(f"--as: expected an operator or administrator, found {actor.username}, whose role is {actor.role}")
    return actor


def _failed(actor: Actor, *, process: str = "", instance_id: UUID | None = None, limit: int) -> list[FailedItem]:
    with screens() as snapshot:
        return paged(lambda **page: failed_items(snapshot, tenant_id=actor.tenant_id, key=process, instance_id=instance_id, **page), limit)


def _one_failed(actor: Actor, item_id: UUID) -> FailedItem:
    with screens() as snapshot:
        found = failed_items(snapshot, tenant_id=actor.tenant_id, item_id=item_id).items
    if not found:
        raise click.ClickException(f"expected an id that `baton incidents` lists, found {item_id}: it has not failed, or was dealt with")
    return found[0]


def _retried(conn: psycopg.Connection[object], item: FailedItem, actor: Actor, attempts: int, request_id: str | None) -> dict[str, object]:
    outcome = retry_item(conn, item.work, item.id, actor=actor, attempts=attempts, request_id=request_id)
    if isinstance(outcome, Rejected):
        return {"id": item.id, "outcome": outcome.refusal.value, "detail": outcome.by_name or outcome.by or outcome.detail}
    return {"id": item.id, "outcome": "retried", "detail": ""}


def _shortened(item: FailedItem) -> FailedItem:
    first = item.message.splitlines()[0] if item.message.strip() else ""
    return replace(item, message=first if len(first) <= SHORT else f"{first[: SHORT - 1]}…")
