"""What FEEL reads and what it makes of it, construct by construct (DMN 1.3, 10.3.1.2 and 10.3.2)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from engine.expressions import MissingName, parse

VARIABLES: dict[str, Any] = {
    "count": 33,
    "price": Decimal("10.1"),
    "name": "Ada",
    "nothing": None,
    "order": {"id": 7, "lines": [{"n": 2}, {"n": 5}]},
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("= order.id", 7),
        ("order.id + 1", 8),
        ('count > 30 and name = "Ada"', True),
        ("order.lines[n > 2].n", [5]),
        ("order.lines[1].n", 2),
        ("nothing = null", True),
        ("nosuch = null", True),
        ("2 ** 3 ** 2", 64),
        ('if count in [1..40] then "in" else "out"', "in"),
        ("for i in 1..3 return i * 2", [2, 4, 6]),
        ("some line in order.lines satisfies line.n > 4", True),
        ("{a b: 1, c: a b + 1}.c", 2),
        ("{f: function(x, y) x - y, r: f(y: 1, x: 3)}.r", 2),
    ],
)
def test_an_expression_has_the_value_that_feel_gives_it(text: str, expected: Any) -> None:
    assert parse(text, language="feel").evaluate(VARIABLES) == expected


def test_a_missing_variable_is_not_null() -> None:
    with pytest.raises(MissingName, match="'nosuch'"):
        parse("nosuch > 1", language="feel").evaluate(VARIABLES)
