"""The table of methods in docs/expressions.md is the one in the code."""

from __future__ import annotations

import re
from pathlib import Path

from engine.expressions.methods import BY_KIND, anything
from engine.expressions.methods.dates import OF_DATES, OF_TIMES
from engine.expressions.provided import EXECUTION, FUNCTIONS

PAGE = Path(__file__).parents[2] / "docs" / "expressions.md"
_METHOD = re.compile(r"`(\w+)\(([^)]*)\)`")


def documented() -> dict[str, dict[str, tuple[int, int]]]:
    """Kind -> method -> how few and how many arguments."""
    rows = PAGE.read_text(encoding="utf-8").split("## Methods")[1].split("\n- ")[0].splitlines()
    found = {}
    for row in rows:
        if row.startswith("|") and "`" in row:
            _, kind, methods, _ = (cell.strip() for cell in row.split("|"))
            found[kind] = {name: _count(arguments) for name, arguments in _METHOD.findall(methods)}
    return found


def _count(arguments: str) -> tuple[int, int]:
    given = [each.strip() for each in arguments.split(",") if each.strip()]
    return sum(not each.endswith("?") for each in given), len(given)


def test_the_page_lists_every_method_with_its_arguments_and_no_other() -> None:
    table = {kind: {name: (method.least, method.most) for name, method in methods.items()} for kind, methods in BY_KIND.items()}
    common = {name: (method.least, method.most) for name, method in anything.METHODS.items()}
    own = {kind: {name: count for name, count in methods.items() if name not in common} for kind, methods in table.items()}
    own["date and time"] = {name: count for name, count in own["date and time"].items() if name in OF_TIMES.keys() - OF_DATES.keys()}
    assert documented() == {"everything but null": common, **own}
    assert OF_DATES.keys() < OF_TIMES.keys()


def test_the_page_names_every_function_and_key_of_the_execution() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name in FUNCTIONS:
        assert re.search(rf"`{name}\((x)?\)`", text), name
    for name in EXECUTION:
        assert re.search(rf"`(execution)?\.{name}`", text), name
