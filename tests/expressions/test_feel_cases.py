"""FEEL, case by case (tests/expressions/feel_cases): the values that DMN 1.3 gives to expressions and to cells of decision tables."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest

from engine.expressions import parse, parse_unary_tests
from engine.expressions.feel import timeline
from engine.expressions.feel.builtins import BUILTINS
from engine.expressions.feel.ranges import Range
from engine.expressions.feel.temporal import show
from tests.expressions.feel_cases import VARIABLES, Case, cells, contexts, conversions, lists, logic, numbers, ranges, strings, times

TABLES = (logic, numbers, strings, conversions, lists, times, ranges, contexts)
EVERY: list[Case] = [case for table in TABLES for case in table.CASES]


def plain(value: Any) -> Any:
    """A value as the tables write it. A boolean is no number, and a list is no tuple."""
    match value:
        case bool() | None | str():
            return (type(value).__name__, value)
        case int() | Decimal():
            return ("number", Decimal(value))
        case list():
            return [plain(item) for item in value]
        case Mapping():
            return {key: plain(item) for key, item in value.items()}
        case Range(low, high, low_closed, high_closed):
            return (plain(low), plain(high), low_closed, high_closed)
    assert timeline.is_temporal(value), f"{value!r} is no value of FEEL"
    return ("str", f"@{show(value)}")


@pytest.mark.parametrize(("text", "expected"), EVERY, ids=[text for text, _ in EVERY])
def test_an_expression_has_the_value_that_DMN_gives_it(text: str, expected: Any) -> None:
    assert plain(parse(f"= {text}", language="feel", names=VARIABLES).evaluate(VARIABLES)) == plain(expected)


@pytest.mark.parametrize(("text", "value", "expected"), cells.CASES, ids=[f"{text} of {value}" for text, value, _ in cells.CASES])
def test_a_cell_holds_for_the_values_that_DMN_says(text: str, value: Any, expected: bool | None) -> None:
    assert parse_unary_tests(text, names=["limit"]).evaluate({"?": value, "limit": 10}) is expected


def test_there_are_at_least_400_cases_and_no_case_twice() -> None:
    texts = [text for text, _ in EVERY]
    assert len(texts) >= 400
    assert len(set(texts)) == len(texts)


def test_every_built_in_function_is_called_by_a_case() -> None:
    every = "\n".join(text for text, _ in EVERY)
    assert [name for name in BUILTINS if f"{name}(" not in every] == []
