"""`baton simulate`: a script is played on the pure core, and what happened is printed in order. No database."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import click

from cli.database import as_json, place
from engine.core.values import typed
from engine.simulation import play
from engine.simulation.house import House, NotDeployed
from engine.simulation.run import Run
from engine.simulation.script import Script, ScriptError, Step, parse_script
from engine.simulation.trace import Happened
from engine.simulation.works import MONDAY, NotPossible

# What a person reads; the rest is in --json.
QUIET = frozenset({"flow_taken", "element_left", "job_created", "external_task_created", "subscription_opened", "delivery_created"})
READABLE = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)


@click.command()
@click.argument("models", nargs=-1, required=True, metavar="FILE…", type=READABLE)
@click.option(
    "--script",
    "script_path",
    required=True,
    metavar="SCRIPT",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
)
@click.option("--all", "everything", is_flag=True, help="Print flows and what is left, too.")
@as_json
def simulate(models: tuple[Path, ...], script_path: Path, everything: bool, as_json: bool) -> None:
    """Play a script with models, and print what happened in order. docs/testing-processes.md has the steps of a script.

    Exit code 0: every step was done and every expectation held; 1: one was not, or the models may not be deployed; 2: wrong usage, or a
    script that cannot be read. What needs workers, leases or several hands is refused by name.
    """
    script = _script(script_path)
    try:
        house = House(at=play.beginning(script, MONDAY))
        house.deploy(*[(path.name, _content(path)) for path in models])
    except ScriptError as error:
        _end(2, str(error))
    except (NotDeployed, NotPossible) as error:
        _end(1, *(map(place, error.problems) if isinstance(error, NotDeployed) else [str(error)]))
    printed = 0

    def show(step: Step) -> None:
        nonlocal printed
        if not as_json:
            _show(step, house.trace[printed:], everything)
        printed = len(house.trace)

    failed = unclear = None
    try:
        play.simulate(house, script, show)
    except play.NotAsExpected as error:
        failed = str(error)
    except ScriptError as error:
        unclear = str(error)
    if as_json:
        told = {"trace": [each.as_json() for each in house.trace], "cases": [_case(Run(house, case)) for case in house.cases]}
        click.echo(json.dumps({**told, "failed": failed or unclear}, indent=1, ensure_ascii=False))
    if failed or unclear:
        _end(1 if failed else 2, failed or unclear or "")


def _script(path: Path) -> Script:
    try:
        return parse_script(_content(path).decode(), str(path))
    except UnicodeDecodeError as error:
        _end(2, f"{path}: expected text in UTF-8: {error}")
    except ScriptError as error:
        _end(2, str(error))


def _content(path: Path) -> bytes:
    return sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()


def _show(step: Step, happened: Sequence[Happened], everything: bool) -> None:
    click.echo(f"> {step.text}")
    for each in happened:
        if everything or each.kind not in QUIET:
            click.echo(f"  {each.at:%Y-%m-%d %H:%M:%S}  {each.process} {each.instance}  {_words(each)}")


def _words(each: Happened) -> str:
    """`task created check "Check order 33" assignee=ada`."""
    data = dict(each.data)
    values = {name: variable["value"] for name, variable in data.pop("variables", {}).items()}
    name = data.pop("name", each.name)
    parts = [each.kind.replace("_", " "), each.element_id or "", f'"{name}"' if name and name != each.element_id else ""]
    parts += [f"{key}={value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}" for key, value in data.items()]
    parts += [f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in values.items()]
    return " ".join(part for part in parts if part)


def _case(run: Run) -> dict[str, object]:
    return {
        "process": run.case.definition.key,
        "business_key": run.case.business_key,
        "status": run.status,
        "waiting": run.waiting,
        "incidents": run.incidents,
        "variables": {name: typed(value).value for name, value in run.variables.items()},
    }


def _end(code: int, *lines: str) -> NoReturn:
    for line in lines:
        click.echo(line, err=True)
    click.get_current_context().exit(code)
