"""How a command reaches the database and prints what it found; `baton migrate`, `baton config`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

import click
import psycopg
from sqlalchemy.exc import OperationalError

from cli.embedded import EmbeddedPostgres
from engine.bpmn.definition import Problem
from engine.commands.outcome import FieldProblem, Rejected
from engine.config import Settings, markdown_table
from engine.db.migrate import migrate as upgrade
from engine.db.session import connect

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@contextmanager
def database() -> Iterator[psycopg.Connection[Any]]:
    """A connection to the database that DATABASE_URL names, else to that of the `baton up` that runs in this home."""
    with connect(database_url(), application_name="baton-cli") as conn:
        yield conn


def database_url() -> str:
    """DATABASE_URL, else the URL of a running `baton up`. Raises ConfigurationError where there is neither."""
    settings = Settings.from_env()
    return settings.database_url or _of_baton_up(settings.home) or settings.need_database()


def secret_key() -> str | None:
    """BATON_SECRET_KEY, else, where the database is that of a `baton up`, the one that it keeps beside it."""
    settings = Settings.from_env()
    kept = settings.home / "secret-key"
    if settings.secret_key is None and settings.database_url is None and kept.exists():
        return kept.read_text(encoding="utf-8").strip()
    return settings.secret_key


def _of_baton_up(home: Path) -> str | None:
    folder = home / "postgres"
    if not (folder / "port").exists():
        return None
    server = EmbeddedPostgres(folder)
    return server.url() if server.accepting() else None


def refused(rejected: Rejected) -> NoReturn:
    """End with exit code 1 and a sentence for each reason."""
    lines = [
        f"{problem.field}: {problem.message}" if isinstance(problem, FieldProblem) else place(problem) for problem in rejected.problems
    ]
    raise click.ClickException("\n".join(lines) or rejected.detail or rejected.refusal.value.replace("_", " "))


def place(problem: Problem) -> str:
    """One line for a problem of a model, beginning with where it is as compilers say it."""
    where = ":".join(str(part) for part in (problem.file, problem.line) if part is not None)
    element = f" {problem.element_id}:" if problem.element_id else ""
    return f"{where}:{element} {problem.what}; expected {problem.why}"


def show(rows: Sequence[Any], columns: Mapping[str, str], *, as_json: bool) -> None:
    """Print frozen rows: as JSON with all their fields, or as a table of `columns` (field -> heading)."""
    if as_json:
        click.echo(json.dumps([asdict(row) for row in rows], default=str, indent=2))
        return
    cells = [[_cell(getattr(row, field)) for field in columns] for row in rows]
    widths = [max(len(line[index]) for line in [list(columns.values()), *cells]) for index in range(len(columns))]
    for line in [list(columns.values()), *cells]:
        click.echo("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())


def _cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case list() | tuple():
            return ", ".join(map(str, value))
        case _ if hasattr(value, "strftime"):
            return f"{value:%Y-%m-%d %H:%M}"
    return str(value)


@click.command()
def migrate() -> None:
    """Bring the database to the newest schema. Safe to run from several machines at once."""
    try:
        upgrade(Settings.from_env().need_database())
    except (OperationalError, psycopg.OperationalError) as problem:
        cause = problem.orig if isinstance(problem, OperationalError) else problem
        raise click.ClickException(f"the database does not answer: {cause}") from problem
    click.echo("The schema is up to date.")


@click.command()
@click.option("--document", is_flag=True, help="As docs/configuration.md.")
def config(document: bool) -> None:
    """Print every environment variable that Baton reads, with its default and meaning."""
    if document:
        click.echo(
            "# Configuration\n\nBy environment variables alone; every one is checked at start. Written by `baton config --document`.\n"
        )
    click.echo(markdown_table(), nl=False)
