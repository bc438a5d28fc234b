"""`baton deploy`, `baton start`, `baton delete`: models from files, instances from the command line."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import click

from cli.acting import actor_for, as_document, as_person, changing, given_variables, parsed, settled
from cli.checking import models_below
from cli.database import as_json, database, place, refused
from engine.bpmn import coverage
from engine.bpmn.definition import Problem
from engine.commands.delete_version import delete_version
from engine.commands.deploy import deploy as deploy_command
from engine.commands.outcome import DeployedDecision, DeployedDefinition, DeployedForm, Rejected
from engine.commands.start import start_instance

paths = click.argument("paths", nargs=-1, required=True, metavar="FILE…", type=click.Path(exists=True, path_type=Path))


@click.command()
@paths
@click.option("--name", default="", help="What this deployment is called.")
@as_person
@as_json
def deploy(paths: tuple[Path, ...], name: str, username: str | None, as_json: bool) -> None:
    """Deploy models, all or none. What has not changed gets no new version.

    FILE is a model, decisions (.dmn), a form (.form), or a folder: everything of that kind below it.
    """
    files = [file for path in paths for file in _named(path)]
    with database() as conn:
        outcome = deploy_command(conn, files, actor=actor_for(conn, username), name=name)
    if isinstance(outcome, Rejected):
        refused(outcome)
    deployed: tuple[DeployedDefinition | DeployedDecision | DeployedForm, ...] = (*outcome.definitions, *outcome.decisions, *outcome.forms)
    if as_json:
        click.echo(json.dumps([asdict(definition) for definition in deployed], default=str, indent=2))
        return
    for definition in deployed:
        _warn(definition.warnings)
        click.echo(f"{definition.key} version {definition.version}{' (unchanged)' if definition.unchanged else ''}")


def _named(path: Path) -> list[tuple[str, bytes]]:
    """A file by its name; those of a folder by their names within it."""
    if not path.is_dir():
        return [(path.name, path.read_bytes())]
    return [(each.relative_to(path).as_posix(), each.read_bytes()) for each in models_below(path)]


@click.command()
@click.argument("key")
@click.option("--business-key", help="What people call the case, e.g. the number of an order.")
@given_variables
@click.option("--version", type=click.IntRange(1, 2**31 - 1), help="Another version than the newest.")
@changing
def start(
    key: str,
    business_key: str | None,
    variables: tuple[str, ...],
    version: int | None,
    username: str | None,
    request_id: str | None,
    as_json: bool,
) -> None:
    """Start an instance of the process KEY and print its id."""
    with database() as conn:
        outcome = start_instance(
            conn,
            key,
            actor=actor_for(conn, username),
            variables=parsed(variables),
            business_key=business_key,
            version=version,
            request_id=request_id,
        )
    said = "" if isinstance(outcome, Rejected) else str(outcome.instance_id)
    settled(outcome, said, what=f"process {key}{f' version {version}' if version else ''}", as_json=as_json)


_VERSION = "SELECT id FROM process_definition WHERE tenant_id = '' AND key = %s AND version = %s"


@click.command()
@click.argument("key")
@click.argument("version", type=int)
@click.option("--reason", required=True, help="Why, for the audit.")
@as_person
@as_json
def delete(key: str, version: int, reason: str, username: str | None, as_json: bool) -> None:
    """Delete VERSION of the process KEY, of which no instance may run. The version before it starts instances again."""
    with database() as conn:
        row = conn.execute(_VERSION, (key, version)).fetchone()
        if row is None:
            raise click.ClickException(f"expected a process {key} with a version {version}, found none")
        outcome = delete_version(conn, row[0], actor=actor_for(conn, username), reason=reason)
    if isinstance(outcome, Rejected):
        refused(outcome)
    said = f"{key} version {version} is deleted{f'; version {outcome.newest} is the newest again' if outcome.newest else ''}"
    click.echo(as_document(outcome) if as_json else said)


def _warn(warnings: Iterable[Problem]) -> None:
    for warning in warnings:
        click.echo(f"warning: {place(warning)}", err=True)


@click.command()
@click.option(
    "--document",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Write the tables of docs/bpmn.md anew into this file.",
)
def bpmn(document: Path | None) -> None:
    """Every element of BPMN and what happens to it here, beside other engines."""
    if document is None:
        click.echo(coverage.tables(), nl=False)
        return
    try:
        document.write_text(coverage.document(document.read_text(encoding="utf-8")), encoding="utf-8")
    except ValueError as problem:
        raise click.ClickException(f"{document}: {problem}") from problem
