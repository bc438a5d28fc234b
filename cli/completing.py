"""`baton completion SHELL`: what a shell needs in order to complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

# How it is made to last, said by --help.
SHELLS = {
    "bash": 'eval "$(baton completion bash)" in ~/.bashrc',
    "zsh": 'eval "$(baton completion zsh)" in ~/.zshrc, after compinit',
    "fish": "baton completion fish > ~/.config/fish/completions/baton.fish",
}


@click.command(epilog="  ".join(f"{shell}: {line}." for shell, line in SHELLS.items()))
@click.argument("shell", type=click.Choice(list(SHELLS)))
def completion(shell: str) -> None:
    """Print what completes commands and options in a SHELL."""
    from cli.main import baton

    kind = get_completion_class(shell)
    assert kind is not None, f"click: expected a completion for {shell}, found none"
    click.echo(kind(baton, {}, "baton", "_BATON_COMPLETE").source())
