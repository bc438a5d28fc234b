"""What the API reads, strictly: each wrong field is named with what was expected."""

from __future__ import annotations

import json
from typing import Any

import pytest

from webapp.api.bodies import Field, Word, Wrong, check, names, number, one_of, text, truth, uuid, variables, whole

FIELDS = {"name": Field(text(longest=5)), "count": Field(whole(least=1, most=3), 1)}


def problems(value: Any) -> dict[str, str]:
    return dict(check(value, FIELDS)[1])


def test_defaults_fill_what_was_not_sent() -> None:
    assert check({"name": "x"}, FIELDS) == ({"name": "x", "count": 1}, [])


def test_every_problem_is_named_at_once() -> None:
    assert problems({"count": 9, "colour": 1}) == {
        "colour": "unknown field; expected one of name, count",
        "name": "expected, not found",
        "count": "expected 1 to 3, found 9",
    }


@pytest.mark.parametrize("value", [[], "x", 3, None, True])
def test_a_body_that_is_no_object_is_refused(value: Any) -> None:
    assert problems(value)[""].startswith("expected an object, found")


@pytest.mark.parametrize(
    ("reader", "value"),
    [
        (text(), 3),
        (text(), ""),
        (text(), None),
        (text(longest=3), "four"),
        (text(), "a\0b"),
        (text(), "\ud800"),
        (whole(), True),
        (whole(), 1.5),
        (whole(), "1"),
        (whole(), Word("-1")),
        (whole(), Word("１")),
        (truth, "true"),
        (whole(), 2**63),
        (number(), True),
        (number(), float("inf")),
        (number(), float("nan")),
        (number(least=1), 0),
        (truth, 1),
        (truth, "yes"),
        (one_of("a", "b"), "c"),
        (uuid, "x"),
        (uuid, 3),
        (names(), []),
        (names(), "topic"),
        (names(), ["a", ""]),
        (names(), ["a", 1]),
        (names(most=2), ["a", "b", "c"]),
        (variables, []),
        (variables, {"": 1}),
        (variables, {"n" * 256: 1}),
        (variables, {"n": 2**63}),
        (variables, {"n": float("inf")}),
        (variables, {"n": ["a\0"]}),
        (variables, {"n": {"\ud800": 1}}),
    ],
)
def test_what_does_not_fit_is_refused(reader: Any, value: Any) -> None:
    with pytest.raises(Wrong):
        reader(value)


@pytest.mark.parametrize("value", [{}, {"a.b": 1, "response-x": [1, 2.5, None, True, {"x": "y"}]}, {"n": -(2**63)}, {"n": 2**63 - 1}])
def test_S36_variables_may_be_any_json_under_any_name(value: Any) -> None:
    assert variables(value) is value


def test_variables_that_are_nested_too_deep_are_refused_not_overflowed() -> None:
    with pytest.raises(Wrong, match="levels"):
        variables({"n": json.loads("[" * 500 + "]" * 500)})


def test_query_numbers_are_read_from_their_digits() -> None:
    assert whole(most=200)(Word("50")) == 50
    assert truth(Word("true")) is True
    assert truth(Word("false")) is False
