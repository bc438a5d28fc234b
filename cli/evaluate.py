"""`baton eval`: the value of one expression over variables that are typed in, as a process would have it."""

from __future__ import annotations

import json
from typing import Any

import click

from cli.database import as_json as json_option
from engine.bpmn.times import TimerError, parse_moment
from engine.core.values import accept, native, typed
from engine.expressions import ExpressionError, ExpressionSyntaxError, as_variable, parse
from engine.expressions.clock import CLOCK

WIDTH = 100  # characters of a source line that stand around a mistake


@click.command("eval")
@click.argument("expression")
@click.option("--variables", "given", default="{}", metavar="JSON", help="An object with the variables that the expression sees.")
@click.option("--language", type=click.Choice(["juel", "feel"]), help="Else FEEL if the expression begins with =, and JUEL if not.")
@click.option("--now", metavar="TIME", help="What now() is, such as 2026-11-29T09:00:00Z; without it there is no time.")
@json_option
def evaluate(expression: str, given: str, language: str | None, now: str | None, as_json: bool) -> None:
    """The value of EXPRESSION, such as '${a > 1}' or '= a > 1', as a variable would hold it. Needs no database.

    Exit code 1 if it is no expression, or has no value; the reason is on standard error.
    """
    variables = {**_times(now), **_variables(given)}
    try:
        compiled = parse(
            expression, language=language or ("feel" if expression.lstrip().startswith("=") else "juel"), names=list(variables)
        )
        value = typed(as_variable(compiled).evaluate(variables))
    except ExpressionSyntaxError as error:
        raise click.ClickException(f"{error}\n{_pointed(expression, error.position)}") from error
    except (ExpressionError, TypeError) as error:
        raise click.ClickException(str(error)) from error
    told = {"type": value.type, "value": value.value} if as_json else value.value
    click.echo(json.dumps(told, ensure_ascii=False))


def _variables(given: str) -> dict[str, Any]:
    try:
        found = json.loads(given)
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"--variables: expected a JSON object, found {given[:80]!r}: {error}") from error
    if not isinstance(found, dict):
        raise click.UsageError(f"--variables: expected a JSON object, found {given[:80]!r}")
    accepted, problems = accept(found)
    if problems:
        raise click.UsageError("\n".join(f"--variables: {name}: {problem}" for name, problem in problems))
    return {name: native(variable) for name, variable in accepted.items()}


def _times(text: str | None) -> dict[str, Any]:
    """The names that the engine has for the time, if one was given."""
    if text is None:
        return {}
    try:
        return dict.fromkeys(("now", CLOCK), parse_moment(text, zone="UTC"))
    except TimerError as error:
        raise click.UsageError(f"--now: {error}") from error


def _pointed(text: str, position: int) -> str:
    """The line of a mistake, and a sign under it."""
    start = text.rfind("\n", 0, position) + 1
    line = text[start:].partition("\n")[0]
    first = max(0, position - start - WIDTH // 2)
    return f"  {line[first : first + WIDTH]}\n  {' ' * (position - start - first)}^"
