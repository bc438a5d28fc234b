"""`baton …`: the commands, loaded when they are called, and what a person sees when one cannot go on.

Exit codes: 0 done; 1 refused or failed, with one sentence on standard error; 2 wrong usage or configuration.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

import click
import psycopg

from cli.postgres_files import EmbeddedServerError
from engine.config import ConfigurationError

# command -> (module, attribute). Imported only when asked for: `baton user list` does not load Flask.
COMMANDS = {
    "up": ("cli.up", "up"),
    "web": ("cli.web", "web"),
    "worker": ("cli.work", "worker"),
    "migrate": ("cli.database", "migrate"),
    "user": ("cli.users", "user"),
    "key": ("cli.keys", "key"),
    "deploy": ("cli.models", "deploy"),
    "check": ("cli.checking", "check"),
    "simulate": ("cli.simulating", "simulate"),
    "start": ("cli.models", "start"),
    "delete": ("cli.models", "delete"),
    "message": ("cli.messages", "message"),
    "signal": ("cli.messages", "signal"),
    "task": ("cli.tasks", "task"),
    "instance": ("cli.instances", "instance"),
    "definition": ("cli.resting", "definition"),
    "jobs": ("cli.repairing", "jobs"),
    "incidents": ("cli.repairing", "incidents"),
    "retry": ("cli.repairing", "retry"),
    "release": ("cli.repairing", "release"),
    "delivery": ("cli.repairing", "delivery"),
    "destination": ("cli.destinations", "destination"),
    "feed": ("cli.feeds", "feed"),
    "pause": ("cli.resting", "pause"),
    "export": ("cli.archive", "export"),
    "import": ("cli.archive", "import_"),
    "bpmn": ("cli.models", "bpmn"),
    "eval": ("cli.evaluate", "evaluate"),
    "corpus": ("cli.corpus", "corpus"),
    "samples": ("cli.samples.commands", "samples"),
    "config": ("cli.database", "config"),
    "bench": ("cli.bench.commands", "bench"),
    "explain": ("cli.bench.commands", "explain"),
    "completion": ("cli.completing", "completion"),
    "commands": ("cli.reference", "commands"),
}


class Lazy(click.Group):
    """A group whose commands are imported when they are called or listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, attribute = COMMANDS[cmd_name]
        found = getattr(importlib.import_module(module), attribute)
        if not isinstance(found, click.Command):
            raise TypeError(f"{module}.{attribute}: expected a command, found {type(found).__name__}")
        return found


@click.command(cls=Lazy)
@click.version_option(package_name="baton", message="baton %(version)s")
def baton() -> None:
    """BPMN 2.0 processes and a task inbox on nothing but PostgreSQL and Python."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit with its code."""
    try:
        code = baton.main(
            args=None if arguments is None else list(arguments), prog_name="baton", complete_var="_BATON_COMPLETE", standalone_mode=False
        )
    except click.exceptions.Abort:
        _end(130, "interrupted")
    except click.ClickException as problem:
        problem.show()
        sys.exit(problem.exit_code)
    except ConfigurationError as problem:
        _end(2, str(problem))
    except EmbeddedServerError as problem:
        _end(1, str(problem))
    except psycopg.OperationalError as problem:
        _end(1, f"the database does not answer: {str(problem).strip()}")
    except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn):
        _end(1, "this database is not migrated: run `baton migrate`")
    sys.exit(code if isinstance(code, int) else 0)


def _end(code: int, message: str) -> None:
    for line in message.splitlines():
        click.echo(f"baton: {line}", err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
