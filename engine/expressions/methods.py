"""THE table of methods that an expression may call. They read; none of them reaches beyond the value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.expressions.errors import ExpressionError
from engine.expressions.values import Scope, same, shown


@dataclass(frozen=True, slots=True)
class Method:
    arguments: int
    apply: Callable[..., Any]  # (scope, target, *arguments)


def _contains(scope: Scope, target: Any, item: Any) -> bool:
    match target:
        case str():
            scope.spend(len(target) // 64)
            return _string(item, "contains") in target
        case list() | tuple():
            return any(same(each, item, scope, 1) for each in target)
        case Mapping():
            return _string(item, "contains") in target
    raise ExpressionError(f"expected a string, list or object before .contains(), found {shown(target)}")


def _size(scope: Scope, target: Any) -> int:
    if isinstance(target, (str, list, tuple, Mapping)):
        return len(target)
    raise ExpressionError(f"expected a string, list or object before .size(), found {shown(target)}")


def _starts(scope: Scope, target: Any, item: Any) -> bool:
    return _string(target, "startsWith").startswith(_string(item, "startsWith"))


def _ends(scope: Scope, target: Any, item: Any) -> bool:
    return _string(target, "endsWith").endswith(_string(item, "endsWith"))


def _string(value: Any, method: str) -> str:
    if isinstance(value, str):
        return value
    raise ExpressionError(f"expected a string with .{method}(), found {shown(value)}")


METHODS: Mapping[str, Method] = {
    "contains": Method(1, _contains),
    "containsKey": Method(1, _contains),
    "size": Method(0, _size),
    "length": Method(0, _size),
    "isEmpty": Method(0, lambda scope, target: _size(scope, target) == 0),
    "startsWith": Method(1, _starts),
    "endsWith": Method(1, _ends),
}
