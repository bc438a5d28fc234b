"""`baton user …`: people and their passwords. The first administrator is made here."""

from __future__ import annotations

import sys

import click

from cli.acting import as_document
from cli.database import as_json, database, refused, show
from engine.commands.outcome import SYSTEM, Rejected
from engine.commands.people import ROLES, add_person, change_person, disable_person, set_password
from engine.queries.people import people
from webapp.auth.passwords import SHORTEST, rehash

password_from_stdin = click.option(
    "--password-stdin", is_flag=True, help="Read the password from the first line of standard input instead of asking for it."
)


@click.group()
def user() -> None:
    """People who sign in."""


@user.command("add")
@click.argument("name")
@click.option("--display-name", required=True, help="What others read, e.g. 'Ada Moreno'.")
@click.option("--role", type=click.Choice(ROLES), default="user", show_default=True)
@click.option("--group", "groups", multiple=True, help="May be given several times.")
@click.option("--service", is_flag=True, help="A service account: programs act as it by API keys, and nobody signs in as it.")
@password_from_stdin
@as_json
def add(name: str, display_name: str, role: str, groups: tuple[str, ...], service: bool, password_stdin: bool, as_json: bool) -> None:
    """Add a person, or a service account."""
    if service and password_stdin:
        raise click.UsageError("expected --service or --password-stdin, found both: a service account has no password")
    with database() as conn:
        hashed = None if service else rehash(_password(from_stdin=password_stdin))
        outcome = add_person(
            conn,
            name,
            actor=SYSTEM,
            display_name=display_name,
            role=role,
            groups=groups,
            password_hash=hashed,
            kind="service" if service else "person",
        )
    if isinstance(outcome, Rejected):
        refused(outcome)
    said = f"{name} is a service account; `baton key add {name}` makes it a key." if service else f"{name} may sign in."
    _told(outcome, name, said, as_json)


@user.command("set-password")
@click.argument("name")
@password_from_stdin
@as_json
def new_password(name: str, password_stdin: bool, as_json: bool) -> None:
    """Replace a person's password; ends their sessions."""
    with database() as conn:
        outcome = set_password(conn, name, actor=SYSTEM, password_hash=rehash(_password(from_stdin=password_stdin)))
    _told(outcome, name, f"{name} has a new password.", as_json)


@user.command("change")
@click.argument("name")
@click.option("--display-name")
@click.option("--role", type=click.Choice(ROLES))
@click.option("--group", "groups", multiple=True, help="The person's groups from now on; may be given several times.")
@click.option("--no-groups", is_flag=True, help="Leave every group.")
@as_json
def change(name: str, display_name: str | None, role: str | None, groups: tuple[str, ...], no_groups: bool, as_json: bool) -> None:
    """Change a person's name, role or groups; what is not given stays."""
    if groups and no_groups:
        raise click.UsageError("expected --group or --no-groups, found both")
    wanted = groups if groups or no_groups else None
    with database() as conn:
        outcome = change_person(conn, name, actor=SYSTEM, display_name=display_name, role=role, groups=wanted)
    _told(outcome, name, f"{name} is changed.", as_json)


@user.command("disable")
@click.argument("name")
@as_json
def disable(name: str, as_json: bool) -> None:
    """Let a person in no more; ends their sessions and API keys."""
    with database() as conn:
        _told(disable_person(conn, name, actor=SYSTEM), name, f"{name} may not sign in any more.", as_json)


@user.command("enable")
@click.argument("name")
@as_json
def enable(name: str, as_json: bool) -> None:
    """Let a disabled person in again."""
    with database() as conn:
        _told(disable_person(conn, name, actor=SYSTEM, disabled=False), name, f"{name} may sign in again.", as_json)


@user.command("list")
@as_json
def listed(as_json: bool) -> None:
    """Everybody, disabled people too."""
    with database() as conn:
        found = people(conn)
    columns = {"username": "name", "display_name": "display name", "kind": "kind", "role": "role", "groups": "groups"}
    show(found, columns | {"disabled_at": "disabled"}, as_json=as_json)


def _told(outcome: object, name: str, sentence: str, as_json: bool) -> None:
    if isinstance(outcome, Rejected):
        if outcome.problems:
            refused(outcome)
        raise click.ClickException(f"nobody is called {name}")
    click.echo(as_document(outcome) if as_json else sentence)


def _password(*, from_stdin: bool) -> str:
    typed = sys.stdin.readline() if from_stdin else click.prompt("Password", hide_input=True, confirmation_prompt=True)
    password: str = typed.rstrip("\r\n")
    if len(password) < SHORTEST:
        raise click.ClickException(f"expected a password of at least {SHORTEST} characters, found {len(password)}")
    return password
