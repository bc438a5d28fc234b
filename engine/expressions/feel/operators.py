"""What the operators of FEEL do with values: null for what has no result, and a note why (DMN 1.3, tables 42 to 57)."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal, DecimalException, DivisionByZero, InvalidOperation
from typing import Any

from engine.expressions import limits, values
from engine.expressions.errors import LimitExceeded
from engine.expressions.feel import timeline
from engine.expressions.feel.ranges import Range
from engine.expressions.feel.scope import FeelScope
from engine.expressions.feel.temporal import TemporalError, show
from engine.expressions.feel.types import kind
from engine.expressions.values import NUMBERS, Scope

Truth = bool | None
Operation = Callable[[Any, Any, FeelScope], Any]

_LARGEST = 10**limits.DIGITS
_WHOLE: dict[str, Callable[[Any, Any], int]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_DECIMAL = {"+": NUMBERS.add, "-": NUMBERS.subtract, "*": NUMBERS.multiply, "/": NUMBERS.divide}
_TEMPORAL = {"+": timeline.add, "-": timeline.subtract, "*": timeline.multiply, "/": timeline.divide}
_ORDERS: dict[str, Callable[[Any, Any], bool]] = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_DIRECT = frozenset({str, int})  # two values of one of these types are compared as they are


# ---- logic


def truth(value: Any) -> Truth:
    """True, false, or null for everything else."""
    return value if value is True or value is False else None


def negated(value: Truth) -> Truth:
    return None if value is None else not value


def any_true(answers: Iterable[Truth]) -> Truth:
    """True if one is; else null if one is null; else false. Looks no further than the first that is true."""
    unknown = False
    for answer in answers:
        if answer is True:
            return True
        unknown = unknown or answer is not False
    return None if unknown else False


# ---- numbers


def is_number(value: Any) -> bool:
    return isinstance(value, (int, Decimal, float)) and not isinstance(value, bool)


def number(value: int | Decimal | float) -> int | Decimal:
    """The number as it is calculated with. Raises LimitExceeded for one that FEEL cannot hold."""
    if isinstance(value, int):
        if value.bit_length() > limits.EXPONENT * 4:
            raise LimitExceeded(f"expected a number with an exponent up to {limits.EXPONENT}, found {value.bit_length()} bits")
        return value if abs(value) < _LARGEST else NUMBERS.create_decimal(value)
    found = Decimal(repr(value)) if isinstance(value, float) else value
    if not found.is_finite() or (found and abs(found.adjusted()) > 2 * limits.EXPONENT):
        raise LimitExceeded(f"expected a number with an exponent up to {limits.EXPONENT}, found {found:.6E}")
    return found


def arithmetic(sign: str) -> Operation:
    """+ - * / or **."""
    whole, joins = _WHOLE.get(sign), sign == "+"

    def calculate(left: Any, right: Any, scope: FeelScope) -> Any:
        if whole is not None and type(left) is int and type(right) is int:
            result = whole(left, right)
            if -_LARGEST < result < _LARGEST:
                return result
        if joins and isinstance(left, str) and isinstance(right, str):
            return _joined(left, right, scope)
        if is_number(left) and is_number(right):
            return _of_numbers(sign, number(left), number(right), scope)
        if sign in _TEMPORAL and (timeline.is_temporal(left) or timeline.is_temporal(right)):
            return _of_times(sign, left, right, scope)
        return nothing(scope, f"no {sign} of {shown(left)} and {shown(right)}")

    return calculate


def _of_numbers(sign: str, left: int | Decimal, right: int | Decimal, scope: Scope) -> Any:
    a, b = Decimal(left), Decimal(right)
    try:
        if sign == "**":
            return _power(a, b, whole=isinstance(left, int) and isinstance(right, int))
        return _DECIMAL[sign](a, b)
    except (DivisionByZero, InvalidOperation):
        return nothing(scope, f"no {sign} of {shown(left)} and {shown(right)}")
    except DecimalException as error:
        raise LimitExceeded(f"expected a result with an exponent up to {limits.EXPONENT} of {left} {sign} {right}") from error


def _power(base: Decimal, exponent: Decimal, *, whole: bool) -> int | Decimal:
    if not base and exponent < 0:
        raise DivisionByZero  # which Decimal calls infinite
    result = NUMBERS.power(base, exponent) if exponent else Decimal(1)
    if not whole or exponent < 0:
        return result
    if abs(result) >= _LARGEST:
        raise LimitExceeded(f"expected a whole number of at most {limits.DIGITS} digits of {base} ** {exponent}, found {result:.3E}")
    return int(result)


def _joined(left: str, right: str, scope: Scope) -> str:
    length = len(left) + len(right)
    return values.bounded(left + right, scope) if length <= limits.TEXT_LENGTH else values.too_long(length)


def _of_times(sign: str, left: Any, right: Any, scope: Scope) -> Any:
    numbers = [Decimal(repr(value)) if isinstance(value, float) else value for value in (left, right)]
    try:
        return _TEMPORAL[sign](*numbers)
    except TemporalError as error:
        return nothing(scope, str(error))


def negative(value: Any, scope: FeelScope) -> Any:
    if is_number(value):
        found = number(value)
        return -found if isinstance(found, int) else NUMBERS.minus(found)
    if timeline.is_temporal(value):
        try:
            return timeline.negative(value)
        except TemporalError as error:
            return nothing(scope, str(error))
    return nothing(scope, f"no negative of {shown(value)}")


# ---- comparison


def equal(left: Any, right: Any, scope: Scope, depth: int = 1) -> Truth:
    """Null equals null alone; null for values of unlike kinds, which within lists and contexts are merely unequal (table 53)."""
    if type(left) is type(right) and type(left) in _DIRECT:
        return bool(left == right)
    if left is None or right is None:
        return left is right
    scope.spend(1)
    if depth > limits.VALUE_DEPTH:
        raise LimitExceeded(f"expected values nested at most {limits.VALUE_DEPTH} deep")
    if kind(left) != kind(right):
        nothing(scope, f"no = of {shown(left)} and {shown(right)}")
        return None
    return _same(left, right, scope, depth)


def _same(left: Any, right: Any, scope: Scope, depth: int) -> bool:
    match left:
        case bool():
            return left is right
        case int() | Decimal() | float():
            return bool(number(left) == number(right))
        case list() | tuple():
            scope.spend(len(left))
            return len(left) == len(right) and all(equal(a, b, scope, depth + 1) is True for a, b in zip(left, right, strict=True))
        case Mapping():
            scope.spend(len(left))
            return left.keys() == right.keys() and all(equal(value, right[key], scope, depth + 1) is True for key, value in left.items())
        case Range(low, high, low_closed, high_closed):
            ends = (low_closed, high_closed) == (right.low_closed, right.high_closed)
            return ends and equal(low, right.low, scope, depth + 1) is True and equal(high, right.high, scope, depth + 1) is True
    if timeline.is_temporal(left):
        try:
            return timeline.equal(left, right)
        except TemporalError:
            return False
    return bool(left == right)


def ordered(sign: str) -> Callable[[Any, Any, Scope], Truth]:
    """<, <=, > or >= over two numbers, strings, dates, times or durations of one kind; else null (table 54)."""
    holds = _ORDERS[sign]

    def compare(left: Any, right: Any, scope: Scope) -> Truth:
        if type(left) is type(right) and type(left) in _DIRECT:
            return holds(left, right)
        if is_number(left) and is_number(right):
            return holds(number(left), number(right))
        if timeline.is_temporal(left) and kind(left) == kind(right):
            try:
                return holds(timeline.order(left, right), 0)
            except TemporalError as error:
                nothing(scope, str(error))
                return None
        nothing(scope, f"no {sign} of {shown(left)} and {shown(right)}")
        return None

    return compare


_LESS, _AT_MOST = ordered("<"), ordered("<=")


def contains(span: Range, value: Any, scope: FeelScope) -> Truth:
    """Whether a value lies in a range."""
    after = True if span.low is None else (_AT_MOST if span.low_closed else _LESS)(span.low, value, scope)
    if after is not True:
        return after
    return True if span.high is None else (_AT_MOST if span.high_closed else _LESS)(value, span.high, scope)


def matches(wanted: Any, value: Any, scope: FeelScope, depth: int = 1) -> Truth:
    """Whether a value is what a test says: in the range, one of the list, or equal to it (10.3.2.8, table 55)."""
    if isinstance(wanted, Range):
        return contains(wanted, value, scope)
    if isinstance(wanted, (list, tuple)):
        scope.spend(len(wanted) + 1)
        if type(value) is str and value in wanted:
            return True
        if depth > limits.VALUE_DEPTH:
            raise LimitExceeded(f"expected values nested at most {limits.VALUE_DEPTH} deep")
        if any(matches(each, value, scope, depth + 1) is True for each in wanted):
            return True
        return isinstance(value, (list, tuple)) and equal(wanted, value, scope) is True
    return equal(wanted, value, scope)


# ---- notes


def nothing(scope: Scope, reason: str) -> Any:
    """Null, and a note why."""
    if isinstance(scope, FeelScope):
        scope.warn(reason)
    return None


def shown(value: Any) -> str:
    """A value in a note: its kind and its beginning."""
    if timeline.is_temporal(value):
        return f"the {kind(value)} {show(value)}"
    return f"a {kind(value)}" if isinstance(value, Range) or kind(value) == "function" else values.shown(value)
