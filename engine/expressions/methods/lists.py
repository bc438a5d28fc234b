"""Methods of lists. A list that an expression reads is never changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.expressions.errors import ExpressionError
from engine.expressions.methods.method import Method, place
from engine.expressions.values import Scope, same, shown


def _contains(scope: Scope, target: Sequence[Any], item: Any) -> bool:
    if type(item) is str:  # which equals nothing but a string
        scope.spend(len(target))
        return item in target
    return any(same(each, item, scope, 1) for each in target)


def _contains_all(scope: Scope, target: Sequence[Any], items: Any) -> bool:
    if not isinstance(items, (list, tuple)):
        raise ExpressionError(f"expected a list with .containsAll(), found {shown(items)}")
    return all(_contains(scope, target, item) for item in items)


def _get(scope: Scope, target: Sequence[Any], at: Any) -> Any:
    if not target:
        raise ExpressionError("expected a list with items before .get(), found an empty one")
    return target[place(at, len(target) - 1, "get")]


def _index_of(scope: Scope, target: Sequence[Any], item: Any) -> int:
    return next((at for at, each in enumerate(target) if same(each, item, scope, 1)), -1)


def _last_index_of(scope: Scope, target: Sequence[Any], item: Any) -> int:
    return next((at for at in range(len(target) - 1, -1, -1) if same(target[at], item, scope, 1)), -1)


def _first(scope: Scope, target: Sequence[Any]) -> Any:
    return _get(scope, target, 0)


def _last(scope: Scope, target: Sequence[Any]) -> Any:
    return _get(scope, target, max(len(target) - 1, 0))


def _sub_list(scope: Scope, target: Sequence[Any], start: Any, end: Any) -> list[Any]:
    last = place(end, len(target), "subList")
    first = place(start, len(target), "subList")
    if first > last:
        raise ExpressionError(f"expected a start not behind the end with .subList(), found {first} and {last}")
    scope.spend(last - first)
    return list(target[first:last])


METHODS: Mapping[str, Method] = {
    "contains": Method(_contains, 1, 1),
    "containsAll": Method(_contains_all, 1, 1),
    "elements": Method(lambda scope, target: target),  # of Camunda Spin
    "get": Method(_get, 1, 1),
    "getFirst": Method(_first),
    "getLast": Method(_last),
    "indexOf": Method(_index_of, 1, 1),
    "isEmpty": Method(lambda scope, target: not target),
    "lastIndexOf": Method(_last_index_of, 1, 1),
    "length": Method(lambda scope, target: len(target)),
    "size": Method(lambda scope, target: len(target)),
    "subList": Method(_sub_list, 2, 2),
}
