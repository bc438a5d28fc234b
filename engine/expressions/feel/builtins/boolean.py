"""Functions over booleans and over whether there is a value (DMN 1.3, 10.3.4.2; `get or else` and `is defined` as Camunda has them).

For a name that does not exist, `is defined` and `get or else` are answered where names are looked up.
"""

from __future__ import annotations

from typing import Any

from engine.expressions.feel.builtins.define import Group
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


@BOOLEAN.function("assert", "value: any, condition: boolean, cause?: string")
def _assert(scope: Scope, value: Any, condition: bool, cause: str = "") -> Any:
    return value if condition else None
