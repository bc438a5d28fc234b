"""How points and ranges lie to each other (DMN 1.3, 10.3.4.10, table 76). Half of the functions are the others with the sides changed.

A range without a start begins before everything, one without an end ends after everything.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from engine.expressions.feel.builtins.define import Group, NoResult, Written
from engine.expressions.feel.operators import equal, ordered, shown
from engine.expressions.feel.ranges import Range
from engine.expressions.values import Scope

RANGE = Group()
_POINT = "number|string|date and time|date|time|days|months"
_before = ordered("<")


class _Line:
    """Ends of ranges, compared. Raises NoResult for ends that cannot be."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    def less(self, left: tuple[int, Any], right: tuple[int, Any]) -> bool:
        if left[0] or right[0]:
            return left[0] < right[0]
        answer = _before(left[1], right[1], self.scope)
        if answer is None:
            raise NoResult(f"expected values that can be compared, found {shown(left[1])} and {shown(right[1])}")
        return answer

    def same(self, left: tuple[int, Any], right: tuple[int, Any]) -> bool:
        if left[0] or right[0]:
            return left[0] == right[0]
        self.less(left, right)  # that they can be compared
        return equal(left[1], right[1], self.scope) is True


def _start(span: Range) -> tuple[int, Any]:
    return (-1, None) if span.low is None else (0, span.low)


def _end(span: Range) -> tuple[int, Any]:
    return (1, None) if span.high is None else (0, span.high)


def _as_range(value: Any) -> Range:
    """A point is the range that holds it alone."""
    return value if isinstance(value, Range) else Range(value, value)


def _before_(line: _Line, a: Any, b: Any) -> bool:
    a, b = _as_range(a), _as_range(b)
    if line.less(_end(a), _start(b)):
        return True
    return line.same(_end(a), _start(b)) and not (a.high_closed and b.low_closed)


def _meets(line: _Line, a: Range, b: Range) -> bool:
    return a.high_closed and b.low_closed and line.same(_end(a), _start(b))


def _overlaps(line: _Line, a: Range, b: Range) -> bool:
    return not _before_(line, a, b) and not _before_(line, b, a)


def _starts_earlier(line: _Line, a: Range, b: Range) -> bool:
    return line.less(_start(a), _start(b)) or (line.same(_start(a), _start(b)) and a.low_closed and not b.low_closed)


def _ends_earlier_or_together(line: _Line, a: Range, b: Range) -> bool:
    return line.less(_end(a), _end(b)) or (line.same(_end(a), _end(b)) and (not a.high_closed or b.high_closed))


def _starts_later_or_together(line: _Line, a: Range, b: Range) -> bool:
    return line.less(_start(b), _start(a)) or (line.same(_start(a), _start(b)) and (not a.low_closed or b.low_closed))


def _overlaps_before(line: _Line, a: Range, b: Range) -> bool:
    reaches = line.less(_start(b), _end(a)) or (line.same(_end(a), _start(b)) and a.high_closed and b.low_closed)
    return _starts_earlier(line, a, b) and reaches and _ends_earlier_or_together(line, a, b)


def _finishes(line: _Line, a: Any, b: Range) -> bool:
    a_span = _as_range(a)
    if a_span.high_closed != b.high_closed or not line.same(_end(a_span), _end(b)):
        return False
    return not isinstance(a, Range) or _starts_later_or_together(line, a_span, b)


def _starts(line: _Line, a: Any, b: Range) -> bool:
    a_span = _as_range(a)
    if a_span.low_closed != b.low_closed or not line.same(_start(a_span), _start(b)):
        return False
    return not isinstance(a, Range) or _ends_earlier_or_together(line, a_span, b)


def _during(line: _Line, a: Any, b: Range) -> bool:
    a = _as_range(a)
    return _starts_later_or_together(line, a, b) and _ends_earlier_or_together(line, a, b)


def _coincides(line: _Line, a: Any, b: Any) -> bool:
    a, b = _as_range(a), _as_range(b)
    closed = (a.low_closed, a.high_closed) == (b.low_closed, b.high_closed)
    return line.same(_start(a), _start(b)) and line.same(_end(a), _end(b)) and closed


# ---- the table


def _function(holds: Callable[[_Line, Any, Any], bool], scope: Scope, a: Any, b: Any) -> bool:
    return holds(_Line(scope), a, b)


def _reversed(holds: Callable[[_Line, Any, Any], bool], scope: Scope, a: Any, b: Any) -> bool:
    return holds(_Line(scope), b, a)


_TWO_POINTS = f"point1: {_POINT}, point2: {_POINT}"
_POINT_RANGE, _RANGE_POINT = f"point: {_POINT}, range: range", f"range: range, point: {_POINT}"
_TWO_RANGES = "range1: range, range2: range"

_TABLE: tuple[tuple[str, Written, tuple[str, ...]], ...] = (
    ("before", partial(_function, _before_), (_TWO_POINTS, _POINT_RANGE, _RANGE_POINT, _TWO_RANGES)),
    ("after", partial(_reversed, _before_), (_TWO_POINTS, _POINT_RANGE, _RANGE_POINT, _TWO_RANGES)),
    ("meets", partial(_function, _meets), (_TWO_RANGES,)),
    ("met by", partial(_reversed, _meets), (_TWO_RANGES,)),
    ("overlaps", partial(_function, _overlaps), (_TWO_RANGES,)),
    ("overlaps before", partial(_function, _overlaps_before), (_TWO_RANGES,)),
    ("overlaps after", partial(_reversed, _overlaps_before), (_TWO_RANGES,)),
    ("finishes", partial(_function, _finishes), (_POINT_RANGE, _TWO_RANGES)),
    ("finished by", partial(_reversed, _finishes), (_RANGE_POINT, _TWO_RANGES)),
    ("includes", partial(_reversed, _during), (_RANGE_POINT, _TWO_RANGES)),
    ("during", partial(_function, _during), (_POINT_RANGE, _TWO_RANGES)),
    ("starts", partial(_function, _starts), (_POINT_RANGE, _TWO_RANGES)),
    ("started by", partial(_reversed, _starts), (_RANGE_POINT, _TWO_RANGES)),
    ("coincides", partial(_function, _coincides), (_TWO_POINTS, _TWO_RANGES)),
)
for _name, _written, _ways in _TABLE:
    RANGE.function(_name, *_ways)(_written)
