"""What FEEL refuses to read, with its place, and names that are missing: neither null nor false (decision 0080)."""

from __future__ import annotations

from typing import Any

import pytest

from engine.expressions import ExpressionError, MissingName, parse, parse_unary_tests

VARIABLES: dict[str, Any] = {
    "nothing": None,
    "xs": [1, 2, 3, 4],
    "order": {"id": 7, "lines": [{"n": 2, "sku": "a"}, {"n": 5, "sku": "b"}, {"n": 9}]},
    "order total": 120,
}


def value(text: str) -> Any:
    return parse(text, language="feel").evaluate(VARIABLES)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "expected a value, found the end of the expression (character 1)"),
        ("1 +", "expected a value, found the end of the expression (character 4)"),
        ("1 2", "expected an operator or the end, found '2' (character 3)"),
        ("(1", "expected ), found the end"),
        ("[1, 2", "expected ], found the end"),
        ("{a 1}", "expected a key and a colon, found 'a'"),
        ("{a: 1, a: 2}", "expected each key once, found 'a' again"),
        ("{a: 1", "expected }, found the end"),
        ("{1: 2}", "expected a key and a colon"),
        ("if a then b", "expected else, found the end"),
        ("if a b then c else d", None),
        ("for x of xs return x", "expected in"),
        ("for in xs return x", "expected a name, found 'in'"),
        ("for x in xs", "expected return, found the end"),
        ("some x in xs return x", "expected satisfies, found 'return'"),
        ("1 between 2 or 3", "expected and, found 'or'"),
        ("1 in", "expected a value"),
        ("x instance of nosuch", "expected one of the types"),
        ("x instance of list<number, string>", "expected one type in list<…>"),
        ("[1..2", "expected ], ) or [ to end the range"),
        ("1..2", "expected an operator or the end, found '..'"),
        ('"open', 'expected a closing "'),
        ("`open", "expected a name and a closing `"),
        ("/* open", "expected */ to end the comment"),
        (r'"\ud83d"', "halves of surrogate pairs"),
        ('@"soon"', "expected a date such as"),
        ('@"2026-02-30"', "expected a date of the calendar"),
        ("@x", "expected a text after @, such as @\"2026-11-29\", found 'x'"),
        ("f(1, a: 2)", "expected all arguments by name, or none"),
        ("f(a: 1, a: 2)", "expected each argument once, found 'a' again"),
        ("f(1", "expected ,"),
        ("function(1) 2", "expected the name of a parameter, found '1'"),
        ("function(x) external {java: {}}", "no foreign code is run"),
        ("a && b", "FEEL writes and"),
        ("!a", "FEEL writes or, not(…) and !="),
        ("a == b", "expected a value, found '='"),
        ("a.", "expected a name, found the end"),
        ("and", "expected a value, found 'and'"),
        ("a ? b : c", "expected an operator or the end, found '?'"),
        ("${a}", None),
        ("a; b", "expected a value or an operator, found ';'"),
        ("99999999999999999999999999999999999", "at most 34 digits"),
    ],
)
def test_what_is_no_feel_is_refused_with_its_place(text: str, part: str | None) -> None:
    with pytest.raises(ExpressionError) as caught:
        value(text)
    if part is not None:
        assert part in str(caught.value)
        assert not isinstance(caught.value, MissingName)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("nosuch", "nosuch"),
        ("nosuch = 1", "nosuch"),
        ("nosuch.a", "nosuch"),
        ("not(nosuch)", "nosuch"),
        ("nosuch(1)", "nosuch"),
        ("for x in nosuch return x", "nosuch"),
        ("xs[nosuch > 1]", "nosuch"),
        ("order.lines[nosuch = 1]", "nosuch"),
        ("if nosuch then 1 else 2", "nosuch"),
        ("order totl", "order totl"),
        ("{a: b, b: 1}", "b"),
    ],
)
def test_a_missing_name_is_an_error_that_names_it(text: str, name: str) -> None:
    with pytest.raises(MissingName) as caught:
        value(text)
    assert caught.value.name == name


def test_a_missing_name_is_told_with_what_may_be_meant() -> None:
    with pytest.raises(MissingName, match="there is one called 'order total'"):
        value("order totl + 1")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nosuch = null", True),
        ("null != nosuch", False),
        ("nosuch.a.b = null", True),
        ("order.nosuch = null", True),
        ("is defined(nosuch)", False),
        ("is defined(nothing)", True),
        ("is defined(order.nosuch)", False),
        ("is defined(order.id)", True),
        ("get or else(nosuch, 3)", 3),
        ("get or else(order.nosuch, 3)", 3),
        ("get or else(order.id, 3)", 7),
    ],
)
def test_missing_is_neither_null_nor_false_and_who_asks_is_told(text: str, expected: Any) -> None:
    assert value(text) == expected


def test_names_of_the_caller_are_one_name_each() -> None:
    assert parse("order-total * 2", language="feel", names=["order-total"]).evaluate({"order-total": 3}) == 6
    assert parse_unary_tests("< max-value", names=["max-value"]).evaluate({"max-value": 3, "?": 2}) is True
