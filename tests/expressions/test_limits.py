"""What stays within the limits, and expressions made by chance: refused or evaluated, and never anything else."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.expressions import ExpressionError, LimitExceeded, limits, parse


def test_a_number_that_is_too_small_is_zero() -> None:
    assert parse("${1e-308 / 1e300}").evaluate({}) == 0


def test_what_stays_within_the_limits_works() -> None:
    terms = limits.DEPTH - 1
    assert parse("${" + " + ".join(["1"] * terms) + "}").evaluate({}) == terms
    assert parse("${" + "(" * 50 + "1" + ")" * 50 + "}").evaluate({}) == 1
    text = "x" * limits.TEXT_LENGTH
    assert parse("${a}${b}").evaluate({"a": text, "b": ""}) == text
    assert parse("${a}").evaluate({"a": text * 3}) == text * 3  # nothing is made: only handed on
    with pytest.raises(LimitExceeded, match="1000000 characters"):
        parse("${a}${b}").evaluate({"a": text, "b": "y"})


def test_user_data_is_never_evaluated() -> None:
    assert parse("Hello ${name}").evaluate({"name": "${secret}", "secret": 1}) == "Hello ${secret}"


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.decimals(allow_nan=True, allow_infinity=True),
    st.floats(),
    st.text(max_size=8),
    st.just(date(2026, 1, 1)),
    st.just(datetime(2026, 1, 1, tzinfo=UTC)),
    st.just(datetime(2026, 1, 1)),
    st.builds(object),
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)), max_leaves=6
)
WORDS = """a b c . [ ] ( ) + - * / % == != < > <= >= && || ! and or not empty ? : 1 0 2.5 'x' "y" true false null .size() .contains("""
SIGNS = st.sampled_from([*WORDS.split(), "`a b`"])


@given(signs=st.lists(SIGNS, max_size=14), variables=st.dictionaries(st.sampled_from(["a", "b", "c"]), VALUES, max_size=3))
@settings(max_examples=400, deadline=None)
def test_evaluation_raises_nothing_but_expression_errors(signs: list[str], variables: dict[str, Any]) -> None:
    for text in ("${" + " ".join(signs) + "}", "text ${" + " ".join(signs) + "}!"):
        try:
            parse(text).evaluate(variables)
        except ExpressionError as error:
            assert str(error)


@given(text=st.text(max_size=40))
@settings(max_examples=300, deadline=None)
def test_any_text_parses_or_is_refused(text: str) -> None:
    for source in (text, "${" + text, "${" + text + "}"):
        try:
            parse(source).evaluate({})
        except ExpressionError as error:
            assert str(error)


@given(left=st.decimals(-(10**9), 10**9, places=4), right=st.decimals(-(10**9), 10**9, places=4))
def test_decimal_arithmetic_is_exact(left: Decimal, right: Decimal) -> None:
    variables = {"a": left, "b": right}
    assert parse("${a + b}").evaluate(variables) == left + right
    assert parse("${a - b + b == a}").evaluate(variables) is True
    assert parse("${a < b}").evaluate(variables) is (left < right)
