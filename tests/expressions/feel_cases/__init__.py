"""FEEL, case by case: an expression and its value as DMN 1.3 has it, written by hand. tests/expressions/test_feel_cases.py runs them.

Numbers are written as int or, with a fraction, as Decimal; dates, times and durations as their text behind an @; ranges as FEEL
writes them behind an @.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from engine.expressions.clock import CLOCK

Case = tuple[str, Any]

VARIABLES: dict[str, Any] = {
    CLOCK: datetime(2026, 11, 30, 3, 4, 5, tzinfo=UTC),
    "count": 33,
    "price": Decimal("10.10"),
    "name": "Ada",
    "nothing": None,
    "yes": True,
    "no": False,
    "due": date(2026, 11, 29),
    "at": datetime(2026, 11, 29, 10, tzinfo=UTC),
    "order": {"id": 7, "lines": [{"sku": "a-1", "n": 2}, {"sku": "b", "n": 5}], "total price": Decimal("99.5")},
    "people": [
        {"name": "Ada", "age": 36, "city": "London"},
        {"name": "Bo", "age": 17, "city": "Berlin"},
        {"name": "Cy", "age": 52, "city": "Berlin"},
    ],
    "first name": "Ada",
    "a-b": 5,
    "größe": 3,
}
