"""As whom the command line acts, what it reads with, and how it tells what a command answered.

Without `--as` it acts as Baton itself, which may everything; with it as that person, with their permissions. Either way the
records say that they came by the command line (`via`, docs/cli.md).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, NoReturn, TypeVar

import click
import psycopg
from sqlalchemy.exc import DBAPIError

from cli.database import as_json, database_url, refused
from engine.commands.outcome import SYSTEM, Actor, Rejected
from engine.db.session import make_engine
from engine.queries.people import acting_as
from engine.queries.rows import Connection, Page, reading

Command = TypeVar("Command", bound=Callable[..., Any])
PAGE = 200  # rows of one read

as_person = click.option("--as", "username", metavar="USERNAME", help="As this person, with their permissions; else as Baton itself.")
as_somebody = click.option("--as", "username", metavar="USERNAME", required=True, help="As this person, with their permissions.")
once = click.option("--request-id", metavar="TEXT", help="The same command under the same id is done once, however often it is given.")
reason = click.option("--reason", default="", help="Why, for whoever asks later.")
limited = click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="How many at most.")
given_variables = click.option(
    "--variable", "variables", multiple=True, metavar="NAME=JSON", help="May be given several times; text that is no JSON is a string."
)


def changing(command: Command) -> Command:
    """The options of whatever changes something."""
    return as_person(once(as_json(command)))


def actor_for(conn: psycopg.Connection[Any], username: str | None) -> Actor:
    if username is None:
        return SYSTEM
    found = acting_as(conn, username)
    if found is None:
        raise click.ClickException(f"--as: expected somebody who may come in, found {username!r}")
    return found


@contextmanager
def screens() -> Iterator[Connection]:
    """One snapshot for the queries of the screens."""
    engine = make_engine(database_url(), pool_size=1, application_name="baton-cli")
    try:
        with engine.connect() as conn, reading(conn, seconds=30) as snapshot:
            yield snapshot
    except DBAPIError as error:
        raise (error.orig or error) from error  # as psycopg says it: cli.main knows the words
    finally:
        engine.dispose()


def paged(read: Callable[..., Page[Any]], limit: int) -> list[Any]:
    """The first `limit` rows of a list that is read page by page: `read(cursor=…, limit=…)`."""
    found: list[Any] = []
    cursor = None
    while len(found) < limit:
        page = read(cursor=cursor, limit=min(PAGE, limit - len(found)))
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            break
    return found


def parsed(variables: Iterable[str]) -> dict[str, Any]:
    """`NAME=JSON` as given on the command line."""
    found: dict[str, Any] = {}
    for each in variables:
        name, equals, text = each.partition("=")
        if not name or not equals:
            raise click.UsageError(f"--variable: expected NAME=VALUE, found {each!r}")
        try:
            found[name] = json.loads(text)
        except ValueError:
            found[name] = text
    return found


def settled(outcome: Any, said: str, *, what: str, as_json: bool) -> None:
    """Say that it is done, or print its outcome as JSON; end with exit code 1 and a sentence if it was refused."""
    if isinstance(outcome, Rejected):
        refusal(outcome, what=what)
    click.echo(as_document(outcome) if as_json else said)


def refusal(rejected: Rejected, *, what: str) -> NoReturn:
    """`what`: that which was to be changed, e.g. "task 41"."""
    if rejected.problems:
        refused(rejected)
    words = rejected.refusal.value.replace("_", " ")
    if (by := rejected.by_name or rejected.by) is not None:
        words += f", by {by}"
    if rejected.at is not None:
        words += f", at {rejected.at:%Y-%m-%d %H:%M:%S} UTC"
    raise click.ClickException(f"{what}: {words}{f' ({rejected.detail})' if rejected.detail else ''}")


def as_document(value: Any) -> str:
    return json.dumps(asdict(value), default=str, indent=2)
