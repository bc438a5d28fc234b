"""What expressions do with values: kinds, comparison, arithmetic, text. Strict: nothing is coerced silently."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Context, Decimal, DecimalException, DivisionByZero, InvalidOperation, Overflow
from typing import Any

from engine.expressions import limits
from engine.expressions.errors import ExpressionError, LimitExceeded

# Decimal arithmetic, so that 0.1 + 0.2 == 0.3. Underflow goes to the nearest number that a double can carry.
NUMBERS = Context(prec=limits.DIGITS, Emax=limits.EXPONENT, Emin=-limits.EXPONENT, traps=[InvalidOperation, DivisionByZero, Overflow])
_LARGEST = 10**limits.DIGITS
_DIRECT = frozenset({str, int, bool})  # two values of one of these types are compared as they are
_WHOLE: Mapping[str, Callable[[Any, Any], Any]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_ORDERS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


class Scope:
    """What one evaluation sees, and the steps that it may still take."""

    __slots__ = ("steps", "variables")

    def __init__(self, variables: Mapping[str, Any]) -> None:
        self.variables = variables
        self.steps = limits.STEPS

    def spend(self, steps: int) -> None:
        self.steps -= steps
        if self.steps < 0:
            raise too_many_steps()


def too_many_steps() -> LimitExceeded:
    return LimitExceeded(f"expected at most {limits.STEPS} steps, the expression needs more")


def kind(value: Any) -> str:
    """What people call the kind of a value. Raises ExpressionError for what no variable can hold."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | Decimal() | float():
            return "number"
        case str():
            return "string"
        case datetime():
            return "date and time"
        case date():
            return "date"
        case list() | tuple():
            return "list"
        case Mapping():
            return "object"
    raise ExpressionError(f"expected a value of a variable, found a {type(value).__name__}")


def truth(value: Any, where: str) -> bool:
    if value is True or value is False:
        return bool(value)
    raise ExpressionError(f"expected true or false {where}, found {shown(value)}")


def shown(value: Any) -> str:
    """A value in an error message: its kind and its beginning."""
    match value:
        case None | bool():
            return "null" if value is None else str(value).lower()
        case str():
            return f"the string {value!r}" if len(value) <= 40 else f"the string {value[:40]!r}…"
        case int() | Decimal() | float():
            return f"the number {_number_text(value)}"
        case datetime() | date():
            return f"the {kind(value)} {value.isoformat()}"
        case list() | tuple() | Mapping():
            return f"a {kind(value)} of {len(value)}" if kind(value) == "list" else f"an object of {len(value)}"
    return f"a {type(value).__name__}"


# ---- comparison


def equal(left: Any, right: Any, scope: Scope) -> bool:
    """Null equals null alone. Values of unlike kinds cannot be compared; inside lists and objects they are unequal."""
    if type(left) is type(right) and type(left) in _DIRECT:
        return bool(left == right)
    if left is None or right is None:
        return left is right
    _alike(left, right, "==")
    return same(left, right, scope, 1)


def ordered(sign: str) -> Callable[[Any, Any], bool]:
    """<, <=, > or >= over two numbers, strings, dates, or dates with times."""
    holds = _ORDERS[sign]

    def compare(left: Any, right: Any) -> bool:
        if type(left) is type(right) and type(left) in _DIRECT and type(left) is not bool:
            return bool(holds(left, right))
        found = kind(left)
        _alike(left, right, sign)
        if found not in ("number", "string", "date", "date and time"):
            raise ExpressionError(f"expected numbers, strings or dates beside {sign}, found {shown(left)}")
        return bool(holds(_comparable(left), _comparable(right)))

    return compare


def _alike(left: Any, right: Any, sign: str) -> None:
    if kind(left) != kind(right):
        raise ExpressionError(f"expected two values of one kind beside {sign}, found {shown(left)} and {shown(right)}")


def same(left: Any, right: Any, scope: Scope, depth: int) -> bool:
    scope.spend(1)
    if depth > limits.VALUE_DEPTH:
        raise LimitExceeded(f"expected values nested at most {limits.VALUE_DEPTH} deep")
    if kind(left) != kind(right):
        return False
    match left:
        case list() | tuple():
            return len(left) == len(right) and all(same(a, b, scope, depth + 1) for a, b in zip(left, right, strict=True))
        case Mapping():
            return left.keys() == right.keys() and all(same(value, right[key], scope, depth + 1) for key, value in left.items())
    return bool(_comparable(left) == _comparable(right))


def _comparable(value: Any) -> Any:
    match value:
        case bool():
            return value
        case int() | Decimal() | float():
            return _number(value)
        case datetime():
            if value.tzinfo is None:
                raise ExpressionError(f"expected a date and time with a zone, found {value.isoformat()}")
    return value


# ---- arithmetic


def add(left: Any, right: Any, scope: Scope) -> Any:
    """The sum of two numbers, or one string after the other."""
    if isinstance(left, str) and isinstance(right, str):
        return bounded(left + right, scope) if len(left) + len(right) <= limits.TEXT_LENGTH else too_long(len(left) + len(right))
    if isinstance(left, str) or isinstance(right, str):
        raise ExpressionError(f"expected two numbers or two strings beside +, found {shown(left)} and {shown(right)}")
    return _sum(left, right)


def arithmetic(sign: str) -> Callable[[Any, Any], Any]:
    """+, -, *, / or % over two numbers."""
    exact = _WHOLE.get(sign)
    if exact is None:
        return lambda left, right: _calculate(sign, left, right)

    def calculate(left: Any, right: Any) -> Any:
        if type(left) is int and type(right) is int and -_LARGEST < left < _LARGEST and -_LARGEST < right < _LARGEST:
            result = exact(left, right)
            if -_LARGEST < result < _LARGEST:
                return result
        return _calculate(sign, left, right)

    return calculate


_sum = arithmetic("+")


def negative(value: Any) -> Any:
    return _calculate("-", 0, value)


def whole(value: Any) -> int:
    """A number without its fraction."""
    number = _number(value)
    return number if isinstance(number, int) else _within(int(number))


def _within(value: int) -> int:
    if abs(value) >= _LARGEST:
        raise LimitExceeded(f"expected a number of at most {limits.DIGITS} digits, found {value.bit_length()} bits")
    return value


def _calculate(sign: str, left: Any, right: Any) -> int | Decimal:
    for value in (left, right):
        if kind(value) != "number":
            raise ExpressionError(f"expected numbers beside {sign}, found {shown(left)} and {shown(right)}")
    a, b = _number(left), _number(right)
    if sign in "/%" and not b:
        raise ExpressionError(f"expected a divisor other than 0 in {_number_text(a)} {sign} 0")
    whole = isinstance(a, int) and isinstance(b, int)
    try:
        match sign:
            case "+":
                result = a + b if whole else NUMBERS.add(_decimal(a), _decimal(b))
            case "-":
                result = a - b if whole else NUMBERS.subtract(_decimal(a), _decimal(b))
            case "*":
                result = a * b if whole else NUMBERS.multiply(_decimal(a), _decimal(b))
            case "/":
                result = NUMBERS.divide(_decimal(a), _decimal(b))
            case _:
                result = NUMBERS.remainder(_decimal(a), _decimal(b))  # the sign of the dividend
    except DecimalException as error:
        raise LimitExceeded(f"expected a result of at most {limits.DIGITS} digits of {left} {sign} {right}") from error
    return _number(int(result) if whole and sign != "/" else result)


def _number(value: Any) -> int | Decimal:
    if isinstance(value, float):
        value = Decimal(repr(value))
    if isinstance(value, int):
        return _within(value)
    number: Decimal = value
    if not number.is_finite() or (number and abs(number.adjusted()) > 2 * limits.EXPONENT):
        raise LimitExceeded(f"expected a number with an exponent up to {limits.EXPONENT}, found {number:.6E}")
    return number


def _decimal(value: int | Decimal) -> Decimal:
    return value if isinstance(value, Decimal) else Decimal(value)


# ---- text


def text(value: Any, scope: Scope) -> str:
    """A value within a text: null is nothing, 33.0 is 33, lists and objects are JSON."""
    match value:
        case None:
            return ""
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | Decimal() | float():
            return _number_text(_number(value))
        case datetime() | date():
            return value.isoformat()
    kind(value)
    return json.dumps(_plain(value, scope, 1), ensure_ascii=False, separators=(",", ":"))


def bounded(value: str, scope: Scope) -> str:
    if len(value) > limits.TEXT_LENGTH:
        too_long(len(value))
    scope.spend(len(value) // 64)
    return value


def storable(value: str) -> str | None:
    """The text with pairs of surrogates joined to the sign that they stand for; None if it has half a pair or NUL, which nothing stores."""
    if value.isascii():
        return None if "\x00" in value else value
    try:
        return None if "\x00" in value else value.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        return None


def too_long(length: int) -> str:
    raise LimitExceeded(f"expected a text of at most {limits.TEXT_LENGTH} characters, found {length}")


def _number_text(value: int | Decimal | float) -> str:
    if isinstance(value, float):
        value = Decimal(repr(value))
    if isinstance(value, int):
        return str(value) if abs(value) < _LARGEST else f"of {value.bit_length()} bits"
    if not value.is_finite() or (value and abs(value.adjusted()) > 2 * limits.EXPONENT):
        return f"{value:.6E}" if value.is_finite() else str(value)
    plain = format(value or abs(value), "f")  # minus zero is 0
    return plain.rstrip("0").rstrip(".") if "." in plain else plain


def _plain(value: Any, scope: Scope, depth: int) -> Any:
    scope.spend(1)
    if depth > limits.VALUE_DEPTH:
        raise LimitExceeded(f"expected values nested at most {limits.VALUE_DEPTH} deep")
    match value:
        case Mapping():
            return {str(key): _plain(item, scope, depth + 1) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item, scope, depth + 1) for item in value]
        case Decimal():
            _number(value)
            return int(value) if value == value.to_integral_value() else float(value)
        case datetime() | date():
            return value.isoformat()
        case str():
            scope.spend(len(value) // 64)
            return value
    kind(value)
    return value
