"""Values of FEEL as variables of a process hold them (engine.core.values).

Numbers without a fraction are integers, moments with a zone stay, and times, durations and moments without a zone are the text that
FEEL reads back. Ranges and functions are values of no variable.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from engine.expressions import limits
from engine.expressions.errors import ExpressionError, LimitExceeded
from engine.expressions.feel.temporal import MonthsDuration, show
from engine.expressions.feel.types import kind


def as_variable(value: Any) -> Any:
    """Raises ExpressionError for a value that no variable can hold."""
    return _outward(value, _Count(), 1)


class _Count:
    """Values seen so far: a list that holds one list twice, and so on, is larger than it looks."""

    def __init__(self) -> None:
        self.seen = 0

    def one(self, depth: int) -> None:
        self.seen += 1
        if depth > limits.VALUE_DEPTH:
            raise LimitExceeded(f"expected values nested at most {limits.VALUE_DEPTH} deep")
        if self.seen > limits.VALUES:
            raise LimitExceeded(f"expected a result of at most {limits.VALUES} values, found more")


def _outward(value: Any, count: _Count, depth: int) -> Any:
    match value:
        case None | bool() | str() | int() | float():
            return value
        case Decimal():
            return int(value) if _is_whole(value) else value
        case list() | tuple():
            count.one(depth)
            return [_counted(item, count, depth + 1) for item in value]
        case Mapping():
            count.one(depth)
            return {str(key): _counted(item, count, depth + 1) for key, item in value.items()}
        case datetime():
            return show(value) if value.tzinfo is None else value
        case date():
            return value
        case time() | timedelta() | MonthsDuration():
            return show(value)
    raise ExpressionError(f"expected a value that a variable can hold, found a {kind(value)}")


def _counted(value: Any, count: _Count, depth: int) -> Any:
    count.one(depth)
    return _outward(value, count, depth)


def _is_whole(value: Decimal) -> bool:
    """Whether it was calculated from whole numbers alone: 3, and not 3.0, which a variable of type double keeps."""
    exponent = value.as_tuple().exponent
    return isinstance(exponent, int) and 0 <= exponent <= limits.DIGITS and abs(value) < 2**63
