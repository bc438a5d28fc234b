"""`baton commands`: every command with its options, as docs/cli.md has them."""

from __future__ import annotations

from collections.abc import Iterator

import click

HEAD = """# The command line

Written by `baton commands --document`. It reaches the database that `DATABASE_URL` names, else that of the `baton up` that runs in this
home.

**Exit codes.** 0: done. 1: refused or failed, with one sentence on standard error that names what was expected, what was found, and
where. 2: wrong usage or configuration. 130: interrupted.

**`--json`** prints the outcome, or the list with all its fields, on standard output, and nothing else; what is for people goes to
standard error.

**`--as USERNAME`** acts as that person or service account: with their permissions, under their name. Without it Baton itself acts, which
may everything: who has the database's URL needs no permission. Either way the history and the audit say that it came by the command line
(`via`: `baton-cli`).

**`--request-id TEXT`** makes a change harmless to repeat for a day, as `Idempotency-Key` does over the API.

**Completion**: `eval "$(baton completion bash)"` in ~/.bashrc; `baton completion --help` says how for zsh and fish.

**Archives.** `baton export` writes the newest version of every definition, decision and form, and people without passwords and keys, to a
folder or a .zip. `baton import` adds what is missing and leaves alone what is the same; if anything differs it names all of it and
imports nothing, unless `--replace`. `--dry-run` only tells. A second import changes nothing; one that was interrupted goes on where it
stopped.
"""


@click.command()
@click.option("--document", is_flag=True, help="As docs/cli.md.")
def commands(document: bool) -> None:
    """Print every command with its options."""
    from cli.main import baton

    lines = [f"{' '.join(names)}: {_first(command)}" for names, command in _all(baton, ())]
    click.echo(written(baton) if document else "\n".join(lines), nl=not document)


def written(root: click.Group) -> str:
    """docs/cli.md."""
    rows = ["| command | what it does | options |", "|---|---|---|"]
    for names, command in _all(root, ()):
        arguments = [_argument(each) for each in command.params if isinstance(each, click.Argument)]
        options = [f"`{_option(each)}`" for each in command.params if isinstance(each, click.Option)]
        shown = " ".join(["baton", *names, *arguments]).replace("|", "\\|")
        rows.append(f"| `{shown}` | {_first(command)} | {', '.join(options) or '–'} |".replace("<", "&lt;"))
    return f"{HEAD}\n" + "\n".join(rows) + "\n"


def _all(group: click.Group, above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, f"{name}: expected a command, found none"
        if isinstance(command, click.Group):
            yield from _all(command, (*above, name))
        else:
            yield (*above, name), command


def _first(command: click.Command) -> str:
    """The first sentence of its help."""
    text = " ".join((command.help or "").partition("\n\n")[0].split())
    return text.partition(". ")[0].rstrip(".")


def _argument(argument: click.Argument) -> str:
    if argument.metavar is not None:
        return argument.metavar
    name = (argument.name or "").upper()
    shown = f"{name}…" if argument.nargs != 1 else name
    return shown if argument.required else f"[{shown}]"


def _option(option: click.Option) -> str:
    name = max(option.opts, key=len)
    if option.is_flag:
        return name
    if isinstance(option.type, click.Choice) and option.metavar is None and len(option.type.choices) <= 4:
        return f"{name} {'|'.join(option.type.choices)}".replace("|", "\\|")
    return f"{name} {option.metavar or option.type.name.removesuffix(' range').upper()}"
