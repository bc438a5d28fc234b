"""Cells of decision tables: for which inputs they hold (DMN 1.3, 10.3.1.2 rules 15 to 18, and 10.3.2.8)."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest

from engine.expressions import ExpressionSyntaxError, MissingName, parse_unary_tests

TESTS = [
    ("-", [1, None, "x"], []),
    ("", [1, None], []),
    ("5", [5, Decimal("5.0")], [4, None, "5"]),
    ('"a"', ["a"], ["b", None, 1]),
    ('"a", "b"', ["a", "b"], ["c", None]),
    ("null", [None], [1, ""]),
    ("true", [True], [False, None, 1]),
    ("false", [False], [True, None]),
    ("< 5", [4, -1], [5, None, "4"]),
    (">= 5", [5, 6], [4, None]),
    ("= 5", [5], [4, None]),
    ("!= 5", [4, None], [5]),
    ("[1..5]", [1, 5, 3], [0, 6, None, "3"]),
    ("(1..5)", [2], [1, 5]),
    ("]1..5[", [2], [1, 5]),
    ("[1..5[", [1], [5]),
    ("< 3, > 7", [2, 8], [3, 5, 7]),
    ("[1..2], [5..6], 9", [1, 6, 9], [3, 8]),
    ("not(5)", [4, None], [5]),
    ('not("a", "b")', ["c", None], ["a", "b"]),
    ("not(< 5)", [5, 6], [4, None]),
    ("not([1..5])", [6], [1, 5]),
    ("not(5) and ? > 3", [], [5, 6]),
    ("not(limit = 10) or ? = 1", [1], [2]),
    ("? > 3", [4], [3, None]),
    ("? > 3 and ? < 6", [4, 5], [3, 6]),
    ("? in [1, 2]", [1, 2], [3]),
    ("? = null or ? > 5", [None, 6], [5]),
    ('contains(?, "b")', ["abc"], ["ac", 1]),
    ("count(?) > 1", [[1, 2]], [[1], [], 1]),
    ("even(?)", [2], [3]),
    ("[1, 2, 3]", [1, 3, [1, 2, 3]], [4, [1, 2]]),
    ("allowed", [1, 2], [3]),
    ("limit", [10], [9]),
    ("limit * 2", [20], [10, 19]),
    ("< limit", [9], [10]),
    ("[limit - 1..limit + 1]", [9, 11], [8, 12]),
    ("limit > 5", [1, None, "x"], []),
    ("limit > 50", [], [1, None]),
    ("if limit > 5 then 1 else 2", [1], [2]),
    ('@"2026-01-01"', [date(2026, 1, 1)], [date(2026, 1, 2)]),
    ('< @"2026-01-01"', [date(2025, 1, 1)], [date(2026, 1, 1), "2025-01-01"]),
    ('[@"P1D"..@"P5D"]', [timedelta(days=2)], [timedelta(days=6)]),
    ('date("2026-01-01"), null', [date(2026, 1, 1), None], [date(2026, 1, 2)]),
    ("every x in ? satisfies x > 1", [[2, 3]], [[1, 2]]),
    ("{a: 1}", [{"a": 1}], [{"a": 2}, 1]),
]


@pytest.mark.parametrize(("text", "holds", "fails"), TESTS)
def test_a_cell_holds_for_these_inputs_and_not_for_those(text: str, holds: list[Any], fails: list[Any]) -> None:
    expression = parse_unary_tests(text)
    others = {"limit": 10, "allowed": [1, 2]}
    assert [each for each in holds if expression.evaluate({**others, "?": each}) is not True] == []
    assert [each for each in fails if expression.evaluate({**others, "?": each}) is True] == []


@pytest.mark.parametrize("text", ["5,", ", 5", "not(5", "- 5,", "< ", "[1..", "5 6", "> < 5", "=="])
def test_what_is_no_cell_is_refused(text: str) -> None:
    with pytest.raises(ExpressionSyntaxError):
        parse_unary_tests(text)


def test_a_cell_without_an_input_is_an_error_and_not_false() -> None:
    with pytest.raises(MissingName, match=r"\?"):
        parse_unary_tests("< 5").evaluate({})
