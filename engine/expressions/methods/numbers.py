"""Methods of numbers and booleans."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from engine.expressions.errors import ExpressionError
from engine.expressions.methods.method import Method
from engine.expressions.values import Scope, arithmetic, negative, ordered, shown, whole

_less = ordered("<")
_plus = arithmetic("+")


def _calculated(sign: str) -> Method:
    calculate = arithmetic(sign)
    return Method(lambda scope, target, other: calculate(target, other), 1, 1)


def _compare_to(scope: Scope, target: Any, other: Any) -> int:
    """-1, 0 or 1."""
    return _less(other, target) - _less(target, other)


def _sign(scope: Scope, target: Any) -> int:
    return _compare_to(scope, target, 0)


def _absolute(scope: Scope, target: Any) -> Any:
    return negative(target) if _less(target, 0) else _plus(target, 0)


def _better(of: Callable[[Any, Any], bool]) -> Method:
    return Method(lambda scope, target, other: other if of(other, target) else target, 1, 1)


def _decimal(scope: Scope, target: Any) -> Decimal:
    return Decimal(_plus(target, 0))


def _whole(scope: Scope, target: Any) -> int:
    """Without its fraction: 2.9 is 2, -2.9 is -2."""
    return whole(target)


METHODS: Mapping[str, Method] = {
    "abs": Method(_absolute),
    "add": _calculated("+"),
    "compareTo": Method(_compare_to, 1, 1),
    "divide": _calculated("/"),
    "doubleValue": Method(_decimal),
    "floatValue": Method(_decimal),
    "intValue": Method(_whole),
    "longValue": Method(_whole),
    "max": _better(ordered(">")),
    "min": _better(_less),
    "multiply": _calculated("*"),
    "negate": Method(lambda scope, target: negative(target)),
    "numberValue": Method(lambda scope, target: target),  # of Camunda Spin
    "remainder": _calculated("%"),
    "signum": Method(_sign),
    "subtract": _calculated("-"),
}


def _compare_booleans(scope: Scope, target: bool, other: Any) -> int:
    if not isinstance(other, bool):
        raise ExpressionError(f"expected true or false with .compareTo(), found {shown(other)}")
    return target - other


OF_BOOLEANS: Mapping[str, Method] = {
    "boolValue": Method(lambda scope, target: target),  # of Camunda Spin
    "booleanValue": Method(lambda scope, target: target),
    "compareTo": Method(_compare_booleans, 1, 1),
}
