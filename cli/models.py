"""`baton deploy`, `baton start`, `baton delete`: models from files, instances from the command line."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from cli.checking import models_below
from cli.database import as_json, database, place, refused
from engine.bpmn import coverage
from engine.bpmn.definition import Problem
from engine.commands.delete_version import delete_version
from engine.commands.deploy import deploy as deploy_command
from engine.commands.outcome import SYSTEM, DeployedDecision, DeployedDefinition, DeployedForm, Rejected
from engine.commands.start import start_instance

paths = click.argument("paths", nargs=-1, required=True, metavar="FILE…", type=click.Path(exists=True, path_type=Path))


@click.command()
@paths
@click.option("--name", default="", help="What this deployment is called.")
@as_json
def deploy(paths: tuple[Path, ...], name: str, as_json: bool) -> None:
    """Deploy models, all or none. What has not changed gets no new version.

    FILE is a model, decisions (.dmn), a form (.form), or a folder: everything of that kind below it.
    """
    files = [file for path in paths for file in _named(path)]
    with database() as conn:
        outcome = deploy_command(conn, files, actor=SYSTEM, name=name)
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
@click.option(
    "--variable", "variables", multiple=True, metavar="NAME=JSON", help="May be given several times; text that is no JSON is a string."
)
@click.option("--version", type=int, help="Another version than the newest.")
def start(key: str, business_key: str | None, variables: tuple[str, ...], version: int | None) -> None:
    """Start an instance of the process KEY and print its id."""
    with database() as conn:
        outcome = start_instance(conn, key, actor=SYSTEM, variables=_parsed(variables), business_key=business_key, version=version)
    if isinstance(outcome, Rejected):
        refused(outcome)
    click.echo(outcome.instance_id)


_VERSION = "SELECT id FROM process_definition WHERE tenant_id = '' AND key = %s AND version = %s"


@click.command()
@click.argument("key")
@click.argument("version", type=int)
@click.option("--reason", required=True, help="Why, for the audit.")
def delete(key: str, version: int, reason: str) -> None:
    """Delete VERSION of the process KEY, of which no instance may run. The version before it starts instances again."""
    with database() as conn:
        row = conn.execute(_VERSION, (key, version)).fetchone()
        if row is None:
            raise click.ClickException(f"expected a process {key} with a version {version}, found none")
        outcome = delete_version(conn, row[0], actor=SYSTEM, reason=reason)
    if isinstance(outcome, Rejected):
        refused(outcome)
    click.echo(f"{key} version {version} is deleted{f'; version {outcome.newest} is the newest again' if outcome.newest else ''}")


def _parsed(variables: Iterable[str]) -> dict[str, Any]:
    parsed: dict[str, Any] = {}
    for each in variables:
        name, equals, text = each.partition("=")
        if not name or not equals:
            raise click.UsageError(f"--variable: expected NAME=VALUE, found {each!r}")
        try:
            parsed[name] = json.loads(text)
        except ValueError:
            parsed[name] = text
    return parsed


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
