"""The built-in functions of FEEL, called directly: whatever they are given, they have a result, null with a note, or a named limit."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.expressions import ExpressionError, parse
from engine.expressions.clock import CLOCK
from engine.expressions.feel.builtins import BUILTINS
from engine.expressions.feel.function import Builtin
from engine.expressions.feel.ranges import Range
from engine.expressions.feel.temporal import MonthsDuration
from engine.expressions.values import Scope


class Noting(Scope):
    """A scope that keeps what it is told."""

    def __init__(self, variables: dict[str, Any] | None = None) -> None:
        super().__init__(variables or {})
        self.notes: list[str] = []

    def warn(self, text: str) -> None:
        self.notes.append(text)


def call(name: str, *arguments: Any) -> Any:
    return BUILTINS[name].call(Noting(), *arguments)


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 12) | st.integers(),
    st.decimals(allow_nan=True, allow_infinity=True),
    st.floats(),
    st.text(max_size=8) | st.sampled_from(["a", "2020-02-30", "10:00:00@Europe/Paris", "P1D", "(a", "[", "$1", "i", "1,5", "."]),
    st.sampled_from([date(2026, 1, 1), date(1, 1, 1), datetime(9999, 12, 31), datetime(2026, 1, 1, tzinfo=UTC)]),
    st.sampled_from([time(10), time(10, tzinfo=ZoneInfo("Europe/Paris")), time(10, tzinfo=UTC)]),
    st.timedeltas(),
    st.builds(MonthsDuration, st.integers(-100, 100)),
    st.builds(object),
    st.just(BUILTINS["abs"]),
)
VALUES = st.recursive(
    SCALARS | st.builds(Range, SCALARS, SCALARS, st.booleans(), st.booleans()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["key", "value", "a"]), inner, max_size=3),
    max_leaves=6,
)


@given(builtin=st.sampled_from(sorted(BUILTINS.values(), key=lambda each: each.name)), arguments=st.lists(VALUES, max_size=4))
@settings(max_examples=1500, deadline=None)
def test_a_function_raises_nothing_but_expression_errors(builtin: Builtin, arguments: list[Any]) -> None:
    scope = Noting()
    try:
        builtin.call(scope, *arguments)
    except ExpressionError as error:
        assert str(error)


def test_every_function_stands_in_the_table_of_the_documentation() -> None:
    text = (Path(__file__).parents[2] / "docs/expressions.md").read_text().partition("### Functions of FEEL")[2].partition("\n## ")[0]
    assert [name for name in BUILTINS if f"`{name}`" not in text and f"`{name}(" not in text] == []


def test_R11_now_is_the_time_that_the_caller_gives_and_never_the_machines() -> None:
    at = datetime(2026, 11, 30, 3, 0, tzinfo=UTC)
    assert BUILTINS["now"].call(Scope({CLOCK: at})) == at
    assert BUILTINS["today"].call(Scope({CLOCK: at, "now": "hidden"})) == date(2026, 11, 30)
    for name in ("now", "today"):
        with pytest.raises(ExpressionError, match="expected the time from whoever evaluates"):
            BUILTINS[name].call(Scope({}))


@pytest.mark.parametrize(
    ("text", "language"),
    [("${now() > due}", "juel"), ("${dateTime() == due}", "juel"), ("= now() > due", "feel"), ("= today() > due", "feel")],
)
def test_who_asks_what_time_it_is_is_looked_at_with_every_change(text: str, language: str) -> None:
    assert parse(text, language=language).names == {"now", "due"}


def test_named_arguments_come_in_the_order_of_a_way_to_call_the_function() -> None:
    assert BUILTINS["date"].positional({"day": 3, "month": 2, "year": 1}) == (1, 2, 3)
    assert BUILTINS["date"].positional({"from": "x"}) == ("x",)
    assert BUILTINS["date"].positional({"from": "x", "day": 3}) is None
    assert BUILTINS["time"].takes(3)
    assert not BUILTINS["time"].takes(2)


def test_a_duration_is_kept_in_its_bounds() -> None:
    assert call("abs", timedelta(days=-3)) == timedelta(days=3)
    assert call("abs", timedelta.min) == timedelta(days=999_999_999)
