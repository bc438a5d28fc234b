"""How fast expressions are, beside simpleeval over the same variables in the same run. Only ratios of one run mean anything."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import click

from engine.expressions import parse

VARIABLES: Mapping[str, Any] = {
    "guests": 33,
    "price": Decimal("10.10"),
    "limit": Decimal("300"),
    "name": "Ada Lovelace",
    "season": "winter",
    "vip": True,
    "order": {
        "total": Decimal("99.90"),
        "customer": {"name": "Ada", "country": "PT"},
        "lines": [{"sku": "a-1", "n": 2}, {"sku": "b", "n": 5}],
    },
    "colours": ["red", "green", "blue"],
}

# what it is like, JUEL, FEEL, Python as simpleeval reads it
CASES = (
    ("a variable", "${vip}", "vip", "vip"),
    ("a comparison", "${guests > 30}", "guests > 30", "guests > 30"),
    (
        "a condition of three terms",
        "${guests > 30 && season == 'winter' && vip}",
        'guests > 30 and season = "winter" and vip',
        "guests > 30 and season == 'winter' and vip",
    ),
    ("a path", "${order.customer.country == 'PT'}", 'order.customer.country = "PT"', "order.customer.country == 'PT'"),
    ("an item of a list", "${order.lines[1].n}", "order.lines[2].n", "order.lines[1]['n']"),
    ("whole numbers", "${(guests + 7) * 2 - 1}", "(guests + 7) * 2 - 1", "(guests + 7) * 2 - 1"),
    ("decimals", "${price * guests + order.total > limit}", "price * guests + order.total > limit", "price * guests + order.total > limit"),
    (
        "a choice",
        "${guests > 50 ? 'large' : guests > 20 ? 'medium' : 'small'}",
        'if guests > 50 then "large" else if guests > 20 then "medium" else "small"',
        "'large' if guests > 50 else 'medium' if guests > 20 else 'small'",
    ),
    ("a text", "${'Order of ' + name}", '"Order of " + name', "'Order of ' + name"),
    ("a method", "${name.startsWith('Ada')}", 'starts with(name, "Ada")', "name.startswith('Ada')"),
    ("an item that is looked for", "${colours.contains('blue')}", '"blue" in colours', "'blue' in colours"),
)


@dataclass(frozen=True, slots=True)
class CaseFigures:
    """Evaluations a second of CPU time, each round. `read_…`: reading the text and evaluating it once."""

    name: str
    juel: list[float]
    feel: list[float]
    simpleeval: list[float]
    read_juel: list[float]
    read_feel: list[float]
    read_simpleeval: list[float]


@dataclass(frozen=True, slots=True)
class ExpressionFigures:
    """Ratios of medians, of which the geometric mean over all cases and the smallest: above 1 is faster than simpleeval."""

    simpleeval_version: str
    juel_ratio: float
    juel_ratio_smallest: float
    feel_ratio: float
    feel_ratio_smallest: float
    read_juel_ratio: float
    read_juel_ratio_smallest: float
    read_feel_ratio: float
    read_feel_ratio_smallest: float
    cases: list[CaseFigures]


def bench_expressions(*, seconds: float, rounds: int) -> ExpressionFigures:
    """Every case in turns, `seconds` of each side of each case in all rounds together."""
    version, prepared, read = _simpleeval()
    cases = [_case(case, prepared, read, seconds / rounds, rounds) for case in CASES]
    ratios = {}
    for side in ("juel", "feel", "read_juel", "read_feel"):
        beside = "read_simpleeval" if side.startswith("read_") else "simpleeval"
        each = [statistics.median(getattr(case, side)) / statistics.median(getattr(case, beside)) for case in cases]
        ratios[f"{side}_ratio"] = round(statistics.geometric_mean(each), 3)
        ratios[f"{side}_ratio_smallest"] = round(min(each), 3)
    return ExpressionFigures(version, **ratios, cases=cases)


def _case(
    case: tuple[str, str, str, str],
    prepared: Callable[[str], Callable[[], Any]],
    read: Callable[[str], Callable[[], Any]],
    seconds: float,
    rounds: int,
) -> CaseFigures:
    name, juel, feel, python = case
    compiled, of_feel = parse(juel), parse(feel, language="feel")
    sides: dict[str, Callable[[], Any]] = {
        "juel": lambda: compiled.evaluate(VARIABLES),
        "feel": lambda: of_feel.evaluate(VARIABLES),
        "simpleeval": prepared(python),
        "read_juel": lambda: parse(juel).evaluate(VARIABLES),
        "read_feel": lambda: parse(feel, language="feel").evaluate(VARIABLES),
        "read_simpleeval": read(python),
    }
    values = {side: evaluate() for side, evaluate in sides.items()}
    if any(value != values["simpleeval"] for value in values.values()):
        raise click.ClickException(f"{name}: expected one value, found {values}")
    found: dict[str, list[float]] = {side: [] for side in sides}
    for _ in range(rounds):
        for side, evaluate in sides.items():
            found[side].append(round(_rate(evaluate, seconds)))
    return CaseFigures(name, **found)


def _rate(evaluate: Callable[[], Any], seconds: float) -> float:
    """Calls a second of the CPU time of this process."""
    calls = 0
    start = time.process_time()
    while (passed := time.process_time() - start) < seconds:
        for _ in range(100):
            evaluate()
        calls += 100
    return calls / passed


def _simpleeval() -> tuple[str, Callable[[str], Callable[[], Any]], Callable[[str], Callable[[], Any]]]:
    """Its version, and what evaluates a text that was read before, or reads it each time. A dependency of developers alone."""
    try:
        from importlib.metadata import version

        from simpleeval import SimpleEval
    except ImportError as error:
        raise click.ClickException("expected simpleeval beside Baton, found none: `make bench ARGS=expressions` installs it") from error

    def prepared(text: str) -> Callable[[], Any]:
        evaluator = SimpleEval(names=dict(VARIABLES))
        tree = evaluator.parse(text)
        return lambda: evaluator.eval(text, previously_parsed=tree)

    def read(text: str) -> Callable[[], Any]:
        evaluator = SimpleEval(names=dict(VARIABLES))
        return lambda: evaluator.eval(text)

    return version("simpleeval"), prepared, read
