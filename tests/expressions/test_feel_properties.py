"""FEEL made by chance: a printed tree reads back as itself, and no text and no value raises anything but an ExpressionError."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.expressions import ExpressionError, as_condition, as_variable, parse, parse_unary_tests
from engine.expressions.feel.parser import parse_feel
from engine.expressions.feel.parser import parse_unary_tests as tree_of_tests
from engine.expressions.feel.ranges import Range
from engine.expressions.feel.temporal import MonthsDuration
from engine.expressions.tree import (
    Between,
    Binary,
    Conditional,
    Equals,
    Filter,
    For,
    FunctionOf,
    In,
    InstanceOf,
    Invocation,
    Iteration,
    ListOf,
    Literal,
    Logical,
    Member,
    Name,
    Node,
    ObjectOf,
    Quantified,
    RangeOf,
    Type,
    Unary,
    UnaryTests,
)
from tests.expressions.feel_text import printed

NAMES = st.sampled_from(["a", "b", "order total", "größe", "item", "x1", "date", "?"])
KEYS = st.sampled_from(["a", "b", "order total", "net price", "item", "if", "date"])
LITERALS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(0, 10**30),
    st.decimals(0, 10**6, places=3),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6),
).map(Literal)
SIMPLE = st.sampled_from(["Any", "Null", "number", "string", "date and time", "days and time duration", "time"]).map(Type)
TYPES = st.recursive(
    SIMPLE,
    lambda inner: st.one_of(
        st.builds(lambda part: Type("list", (("", part),)), inner),
        st.builds(lambda part: Type("range", (("", part),)), inner),
        st.builds(lambda part, other: Type("context", (("a", part), ("b c", other))), inner, inner),
        st.builds(lambda part, result: Type("function", (("", part),), result), inner, inner),
    ),
    max_leaves=3,
)


def _trees(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    some = st.lists(inner, max_size=3).map(tuple)
    entries = st.dictionaries(KEYS, inner, max_size=3).map(lambda found: tuple(found.items()))
    loops = st.lists(
        st.builds(Iteration, st.sampled_from(["x", "y", "each line"]), inner, st.one_of(st.none(), inner)), min_size=1, max_size=2
    ).map(tuple)
    parameters = st.dictionaries(st.sampled_from(["x", "y", "a b"]), st.one_of(st.none(), TYPES), max_size=2)
    return st.one_of(
        st.builds(Member, inner, KEYS.filter(lambda key: key != "?")),
        st.builds(Unary, st.just("-"), inner),
        st.builds(Binary, st.sampled_from(["+", "-", "*", "/", "**", "=", "!=", "<", "<=", ">", ">="]), inner, inner),
        st.builds(Logical, st.sampled_from(["and", "or"]), inner, inner),
        st.builds(Conditional, inner, inner, inner),
        some.map(ListOf),
        entries.map(ObjectOf),
        st.builds(Filter, inner, inner),
        st.builds(Between, inner, inner, inner),
        st.builds(RangeOf, inner, inner, st.booleans(), st.booleans()),
        st.builds(In, inner, st.lists(_a_test(inner), min_size=1, max_size=3).map(tuple)),
        st.builds(For, loops, inner),
        st.builds(Quantified, st.sampled_from(["some", "every"]), loops, inner),
        st.builds(InstanceOf, inner, TYPES),
        st.builds(FunctionOf, parameters.map(lambda found: tuple(found.items())), inner),
        st.builds(Invocation, inner, some, st.just(())),
        st.builds(Invocation, inner, st.just(()), entries),
    )


def _a_test(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    return st.one_of(
        inner,
        st.builds(lambda end, closed: RangeOf(None, end, False, closed), inner, st.booleans()),
        st.builds(lambda end, closed: RangeOf(end, None, closed, False), inner, st.booleans()),
        st.builds(Equals, inner, st.booleans()),
    )


TREES = st.recursive(st.one_of(LITERALS, NAMES.map(Name)), _trees, max_leaves=10)


@given(tree=TREES)
@settings(max_examples=400, deadline=None)
def test_a_printed_tree_reads_back_as_itself(tree: Node) -> None:
    assert parse_feel(printed(tree)) == tree


@given(tests=st.lists(_a_test(TREES), min_size=1, max_size=3).map(tuple), negated=st.booleans())
@settings(max_examples=150, deadline=None)
def test_printed_tests_read_back_as_themselves(tests: tuple[Node, ...], negated: bool) -> None:
    assert tree_of_tests(printed(UnaryTests(tests, negated))) == UnaryTests(tests, negated)


# ---- nothing but ExpressionError


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.integers(),
    st.decimals(allow_nan=True, allow_infinity=True),
    st.floats(),
    st.text(max_size=8),
    st.just(date(2026, 1, 31)),
    st.just(time(10, 30)),
    st.just(time(10, 30, tzinfo=UTC)),
    st.just(datetime(2026, 1, 1, tzinfo=UTC)),
    st.just(datetime(2026, 1, 1)),
    st.timedeltas(),
    st.integers(-100, 100).map(MonthsDuration),
    st.builds(Range, st.integers(), st.integers(), st.booleans(), st.booleans()),
    st.builds(object),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abc"), inner, max_size=3)),
    max_leaves=6,
)
VARIABLES = st.fixed_dictionaries(dict.fromkeys(("a", "b", "order total", "größe", "item", "x1", "date", "?"), VALUES))


def _evaluated(text: str, variables: dict[str, Any]) -> None:
    """As every use of a text evaluates it."""
    for read in (lambda: parse(text, language="feel"), lambda: parse_unary_tests(text)):
        try:
            expression = read()
            expression.evaluate(variables)
            as_variable(expression).evaluate(variables)
            as_condition(expression).evaluate(variables)
        except ExpressionError as error:
            assert str(error)


@given(tree=TREES, variables=VARIABLES)
@settings(max_examples=300, deadline=None)
def test_a_tree_made_by_chance_has_a_value_or_is_an_expression_error(tree: Node, variables: dict[str, Any]) -> None:
    _evaluated(printed(tree), variables)


WORDS = """a b . , .. ( ) [ ] { } + - * / ** = != < <= > >= : and or not( if then else for in return some every satisfies between instance
of number string list< function( 1 0 2.5 "x" true false null ? item @"P1D" @"2026-01-01" date( count( sum( -> partial // /* */ ` '"""
SIGNS = st.sampled_from(WORDS.split())


@given(signs=st.lists(SIGNS, max_size=14), variables=VARIABLES)
@settings(max_examples=500, deadline=None)
def test_tokens_in_any_order_are_an_expression_or_an_expression_error(signs: list[str], variables: dict[str, Any]) -> None:
    _evaluated(" ".join(signs), variables)


@given(text=st.text(max_size=40))
@settings(max_examples=300, deadline=None)
def test_any_text_is_read_or_refused(text: str) -> None:
    _evaluated(text, {})


@given(a=st.integers(-(10**6), 10**6), b=st.integers(-(10**6), 10**6), c=st.decimals(-1000, 1000, places=2))
def test_arithmetic_is_that_of_decimal_numbers(a: int, b: int, c: Decimal) -> None:
    variables = {"a": a, "b": b, "c": c}

    def value(text: str) -> Any:
        return parse(text, language="feel").evaluate(variables)

    assert value("a + b * c - b") == a + b * c - b
    assert value("a + b = b + a and (a < b or a >= b)") is True
    assert value("a in [b..b + 10]") is (b <= a <= b + 10)
    assert value("if b = 0 then null else a / b * b - a between -0.0001 and 0.0001") is (None if b == 0 else True)


@given(items=st.lists(st.integers(-20, 20), max_size=8), limit=st.integers(-20, 20))
def test_filters_loops_and_quantifiers_agree_with_each_other(items: list[int], limit: int) -> None:
    variables = {"items": items, "limit": limit}

    def value(text: str) -> Any:
        return parse(text, language="feel").evaluate(variables)

    kept = [item for item in items if item > limit]
    assert value("items[item > limit]") == kept
    assert value("for x in items[item > limit] return x - limit") == [item - limit for item in kept]
    assert value("some x in items satisfies x > limit") is bool(kept)
    assert value("every x in items satisfies not(x > limit)") is (not kept)
    assert value("limit in items") is (limit in items)


@given(length=st.timedeltas(min_value=timedelta(days=-1000), max_value=timedelta(days=1000)))
def test_a_moment_and_a_duration_lead_there_and_back(length: timedelta) -> None:
    moment = datetime(2026, 3, 1, 12, tzinfo=UTC)
    variables = {"m": moment, "d": length}
    assert parse("m + d - d = m and (m + d) - m = d", language="feel").evaluate(variables) is True
