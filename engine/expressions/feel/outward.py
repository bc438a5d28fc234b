"""Values of FEEL as variables of a process hold them (engine.core.values).

Numbers without a fraction are integers, moments with a zone stay, and times, durations and moments without a zone are the text that
FEEL reads back. Ranges and functions are values of no variable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from engine.expressions import limits
from engine.expressions.errors import ExpressionError, LimitExceeded
from engine.expressions.feel.temporal import MonthsDuration, show
from engine.expressions.feel.types import kind

_AS_THEY_ARE = frozenset({type(None), bool, int, float, str})


def as_variable(value: Any) -> Any:
    """Raises ExpressionError for a value that no variable can hold."""
    return _Conversion().whole(value).value if isinstance(value, (list, tuple, Mapping)) else _scalar(value)


@dataclass(frozen=True, slots=True)
class _Made:
    """A converted list or context, how many values it is with all that lies in it, and how deep they are nested."""

    value: Any
    size: int
    depth: int


class _Conversion:
    """Each list and context is converted once: one that holds another twice, which does so too, is larger than its memory."""

    def __init__(self) -> None:
        self.made: dict[int, _Made] = {}

    def whole(self, value: Sequence[Any] | Mapping[Any, Any]) -> _Made:
        key = id(value)
        if key not in self.made:
            self.made[key] = self._converted(value)
        return self.made[key]

    def _converted(self, value: Sequence[Any] | Mapping[Any, Any]) -> _Made:
        items = value.values() if isinstance(value, Mapping) else value
        found: list[Any] = []
        size, depth = 1 + len(value), 0
        for item in items:
            if type(item) in _AS_THEY_ARE:
                found.append(item)
            elif isinstance(item, (list, tuple, Mapping)):
                part = self.whole(item)
                size, depth = size + part.size - 1, max(depth, part.depth)
                found.append(part.value)
            else:
                found.append(_scalar(item))
        if size > limits.VALUES:
            raise LimitExceeded(f"expected a result of at most {limits.VALUES} values, found more")
        if depth >= limits.VALUE_DEPTH:
            raise LimitExceeded(f"expected values nested at most {limits.VALUE_DEPTH} deep")
        return _Made(dict(zip(map(str, value), found, strict=True)) if isinstance(value, Mapping) else found, size, depth + 1)


def _scalar(value: Any) -> Any:
    match value:
        case None | bool() | str() | int() | float():
            return value
        case Decimal():
            return int(value) if _is_whole(value) else value
        case datetime():
            return show(value) if value.tzinfo is None else value
        case date():
            return value
        case time() | timedelta() | MonthsDuration():
            return show(value)
    raise ExpressionError(f"expected a value that a variable can hold, found a {kind(value)}")


def _is_whole(value: Decimal) -> bool:
    """Whether it was calculated from whole numbers alone: 3, and not 3.0, which a variable of type double keeps."""
    exponent = value.as_tuple().exponent
    return isinstance(exponent, int) and 0 <= exponent <= limits.DIGITS and abs(value) < 2**63
