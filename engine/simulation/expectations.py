"""What a script may expect, of the case that it is about. Each failure says what was expected and what was found."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from engine.core.values import typed
from engine.simulation.finding import names_of, of
from engine.simulation.run import Model, Run
from engine.simulation.script import Step
from engine.simulation.works import NotPossible, listed

KNOWN = (
    *("completed", "running", "cancelled", "tasks [NAME …]", "task NAME [assignee=… name=… candidate_groups=[…] …]", "jobs [NAME …]"),
    *("waiting [ELEMENT …]", "incident ELEMENT [TEXT]", "no incident", "variables name=value …", "no variable NAME …"),
    *("entered ELEMENT …", "never ELEMENT …", "sent DESTINATION …", "cases NUMBER"),
)


def check(model: Model, current: Callable[[], Run], step: Step) -> None:
    """Raises NotPossible if the expectation does not hold, or is none."""
    match step.words:
        case ("completed" | "running" | "cancelled" as status,):
            run = current()
            _must(
                run.status == status, status, f"{run.status}, waiting at {listed(run.waiting)}" if run.status == "running" else run.status
            )
        case ("cases", number):
            _must(str(len(model.runs)) == number, f"{number} cases", len(model.runs))
        case ("tasks" | "jobs" as what, *names):
            _same(names, _open(current(), what.removesuffix("s")), what)
        case ("waiting", *names):
            _same(names, [(each,) for each in current().waiting], "places that wait")
        case ("task", name):
            _task(current(), name, step)
        case ("incident", name, *text):
            _incident(current(), name, " ".join(text))
        case ("no", "incident"):
            _must(not current().incidents, "no incident", current().incidents)
        case ("variables",) if step.values:
            _variables(current(), step.values)
        case ("no", "variable", *names) if names:
            there = [name for name in names if name in current().variables]
            _must(not there, f"no variable {listed(names)}", listed(there))
        case ("entered" | "never" as how, *names) if names:
            path = current().path
            wrong = [name for name in names if (name in path) != (how == "entered")]
            _must(not wrong, f"{listed(wrong)} {how} {'' if how == 'entered' else 'entered'}".strip(), f"the path {' '.join(path)}")
        case ("sent", *destinations):
            _same(destinations, [(each.destination,) for each in current().case.deliveries], "deliveries")
        case _:
            raise NotPossible(f"expected one of: {'; '.join(f'expect {each}' for each in KNOWN)}")


def _open(run: Run, what: str) -> list[Sequence[str]]:
    return [names_of(case, leaf) for case, leaf in of(run.house, what, run.case)]


def _same(names: Iterable[str], found: Iterable[Sequence[str]], what: str) -> None:
    """In any order, each as often as it is named."""
    wanted, left = list(names), list(found)
    for name in wanted:
        match = next((each for each in left if name in each), None)
        if match is None:
            raise NotPossible(f"expected the {what} {listed(sorted(wanted))}, found {listed(sorted(each[0] for each in found))}")
        left.remove(match)
    if left:
        raise NotPossible(f"expected the {what} {listed(sorted(wanted))}, found besides {listed(sorted(each[0] for each in left))}")


def _task(run: Run, name: str, step: Step) -> None:
    task = run.task(name, step.number)
    for field, expected in step.values.items():
        found = getattr(task, field, None)
        shown = list(found) if isinstance(found, tuple) else _plain(found)
        _must(shown == _plain(expected), f"task {name} with {field} {expected!r}", repr(shown))


def _incident(run: Run, name: str, text: str) -> None:
    found = run.incidents
    _must(name in found, f"an incident at {name}", listed(found))
    _must(text in found[name], f"an incident that says {text!r}", repr(found[name]))


def _variables(run: Run, expected: Mapping[str, Any]) -> None:
    variables = run.variables
    wrong = [name for name, value in expected.items() if name not in variables or _plain(variables[name]) != _plain(value)]
    there = {name: variables[name] for name in wrong if name in variables}
    _must(not wrong, _shown({name: expected[name] for name in wrong}), _shown(there) if there else f"only {listed(variables)}")


def _plain(value: Any) -> Any:
    """As JSON has it: 5 and 5.0 are one number, a date is its text."""
    try:
        return _number(typed(value).value)
    except TypeError as error:
        raise NotPossible(str(error)) from error


def _number(value: Any) -> Any:
    match value:
        case bool() | str() | None:
            return value
        case int() | float():
            return Decimal(repr(value))
        case list():
            return [_number(each) for each in value]
        case dict():
            return {key: _number(each) for key, each in value.items()}
    return value


def _shown(variables: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={json.dumps(typed(value).value, ensure_ascii=False)}" for name, value in variables.items())


def _must(holds: bool, expected: str, found: Any) -> None:
    if not holds:
        raise NotPossible(f"expected {expected}, found {found or 'none'}")
