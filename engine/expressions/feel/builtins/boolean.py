"""Functions over booleans and over whether there is a value (DMN 1.3, 10.3.4.2 and 10.3.4.11).

`get or else`, `is defined` and `assert` are Camunda's. For a name that does not exist, the first two are answered where names are
looked up.
"""

from __future__ import annotations

from typing import Any

from engine.expressions.feel.builtins.define import Group, kind_of
from engine.expressions.feel.operators import equal
from engine.expressions.feel.temporal import show
from engine.expressions.values import Scope

BOOLEAN = Group()


@BOOLEAN.function("not", "negand: boolean")
def _not(scope: Scope, negand: bool) -> bool:
    return not negand


@BOOLEAN.function("is defined", "value: any")
def _is_defined(scope: Scope, value: Any) -> bool:
    return True  # null is a value


@BOOLEAN.function("get or else", "value: any, default: any")
def _get_or_else(scope: Scope, value: Any, default: Any) -> Any:
    return default if value is None else value


@BOOLEAN.function("is", "value1: any, value2: any")
def _is(scope: Scope, left: Any, right: Any) -> bool:
    """Whether two values are the same one: times of the same moment in two zones are not (10.3.4.11)."""
    if kind_of(left) != kind_of(right):
        return False
    if kind_of(left) in ("time", "date and time"):
        return show(left) == show(right)
    return equal(left, right, scope) is True


@BOOLEAN.function("assert", "value: any, condition: boolean, cause?: string")
def _assert(scope: Scope, value: Any, condition: bool, cause: str = "") -> Any:
    return value if condition else None
