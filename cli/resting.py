"""`baton pause …`, `baton definition …`: work that rests, and versions of processes."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import click
import psycopg

from cli.acting import actor_for, changing, limited, paged, reason, screens, settled
from cli.database import as_json, database, show
from engine.commands.outcome import SYSTEM, Actor
from engine.commands.pause import KINDS, WITH_TOPIC, WITHOUT, pause_work, unpause_work
from engine.commands.suspend_definition import resume_definition, suspend_definition
from engine.queries.catalogue import process_versions
from engine.queries.resting import pauses

PAUSES = {"kind": "kind", "topic": "topic", "paused_by": "by", "paused_at": "since", "reason": "reason", "waits": "waiting"}
VERSIONS = {
    "key": "key",
    "version": "version",
    "version_tag": "tag",
    "name": "name",
    "status": "status",
    "latest": "latest",
    "deployed_at": "deployed",
}
kind_of_work = click.argument("kind", type=click.Choice(KINDS))
topic_of_work = click.argument("topic", default="")
_VERSION = "SELECT id FROM process_definition WHERE tenant_id = %s AND key = %s AND version = %s"


@click.group()
def pause() -> None:
    """Work that is not begun until somebody lets it go on."""


@pause.command("list")
@as_json
def listed(as_json: bool) -> None:
    """All pauses, newest first."""
    with screens() as snapshot:
        show(pauses(snapshot, tenant_id=SYSTEM.tenant_id), PAUSES, as_json=as_json)


@pause.command("add")
@kind_of_work
@topic_of_work
@reason
@changing
def added(kind: str, topic: str, reason: str, username: str | None, request_id: str | None, as_json: bool) -> None:
    """Begin no more work of this KIND. TOPIC: a handler or topic, or '*'; the key of a process; key/element; of http and mail the name of
    a destination. Nothing for the rest."""
    with database() as conn:
        outcome = pause_work(conn, kind, topic, actor=actor_for(conn, username), reason=reason, request_id=request_id)
    settled(outcome, f"{_words(kind, topic)}: paused. What is running ends as it would", what=_words(kind, topic), as_json=as_json)


@pause.command("remove")
@kind_of_work
@topic_of_work
@reason
@changing
def removed(kind: str, topic: str, reason: str, username: str | None, request_id: str | None, as_json: bool) -> None:
    """Let paused work go on."""
    with database() as conn:
        outcome = unpause_work(conn, kind, topic, actor=actor_for(conn, username), reason=reason, request_id=request_id)
    settled(outcome, f"{_words(kind, topic)}: goes on", what=_words(kind, topic), as_json=as_json)


def _words(kind: str, topic: str) -> str:
    named = kind.replace("_", " ")
    if kind in WITHOUT:
        return f"{named} to {topic}" if topic else named
    return f"all of {named}" if topic == "*" and kind in WITH_TOPIC else f"{named} {topic}"


@click.group()
def definition() -> None:
    """Versions of processes: list, suspend, resume."""


@definition.command("list")
@click.argument("key", required=False)
@limited
@as_json
def versions(key: str | None, limit: int, as_json: bool) -> None:
    """The latest version of each process, or every version of the process KEY."""
    with screens() as snapshot:
        found = paged(lambda **page: process_versions(snapshot, tenant_id=SYSTEM.tenant_id, key=key, **page), limit)
    show(found, VERSIONS, as_json=as_json)


@definition.command("suspend")
@click.argument("key")
@click.argument("version", type=click.IntRange(1, 2**31 - 1))
@click.option("--with-instances", is_flag=True, help="Its running instances go along.")
@reason
@changing
def suspended(key: str, version: int, with_instances: bool, reason: str, **given: Any) -> None:
    """Let nothing start by a VERSION of the process KEY."""

    def suspend(conn: Any, definition_id: UUID, actor: Actor, request_id: str | None) -> Any:
        return suspend_definition(conn, definition_id, actor=actor, reason=reason, with_cases=with_instances, request_id=request_id)

    _change(key, version, suspend, f"suspended{' with its instances' if with_instances else ''}", **given)


@definition.command("resume")
@click.argument("key")
@click.argument("version", type=click.IntRange(1, 2**31 - 1))
@reason
@changing
def resumed(key: str, version: int, reason: str, **given: Any) -> None:
    """Let a suspended VERSION of the process KEY start again."""

    def resume(conn: Any, definition_id: UUID, actor: Actor, request_id: str | None) -> Any:
        return resume_definition(conn, definition_id, actor=actor, reason=reason, request_id=request_id)

    _change(key, version, resume, "active", **given)


def _change(key: str, version: int, command: Any, done: str, *, username: str | None, request_id: str | None, as_json: bool) -> None:
    with database() as conn:
        actor = actor_for(conn, username)
        outcome = command(conn, _version(conn, actor, key, version), actor, request_id)
    settled(outcome, f"{key} version {version} is {done}", what=f"{key} version {version}", as_json=as_json)


def _version(conn: psycopg.Connection[Any], actor: Actor, key: str, version: int) -> UUID:
    row = conn.execute(_VERSION, (actor.tenant_id, key, version)).fetchone()
    if row is None:
        raise click.ClickException(f"expected a process {key} with a version {version}, found none")
    found: UUID = row[0]
    return found
