"""Methods of objects, which are the maps of Java. `get` alone gives null for a key that is not there, as it does in Java."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.expressions.errors import MissingName
from engine.expressions.methods.method import Method, entries, string
from engine.expressions.values import Scope, same


def _contains_key(scope: Scope, target: Mapping[str, Any], key: Any) -> bool:
    return string(key, "containsKey") in target


def _contains_value(scope: Scope, target: Mapping[str, Any], value: Any) -> bool:
    return any(same(each, value, scope, 1) for each in target.values())


def _get(scope: Scope, target: Mapping[str, Any], key: Any) -> Any:
    return target.get(string(key, "get"))


def _get_or_default(scope: Scope, target: Mapping[str, Any], key: Any, default: Any) -> Any:
    return target.get(string(key, "getOrDefault"), default)


def _prop(scope: Scope, target: Mapping[str, Any], key: Any) -> Any:
    name = string(key, "prop")
    if name not in target:
        raise MissingName(name, f"expected a key {name[:100]!r} with .prop(), found an object of {len(target)} without it")
    return target[name]


def _keys(scope: Scope, target: Mapping[str, Any]) -> list[str]:
    return list(entries(target, scope))


def _values(scope: Scope, target: Mapping[str, Any]) -> list[Any]:
    return list(entries(target, scope).values())


METHODS: Mapping[str, Method] = {
    "contains": Method(_contains_key, 1, 1),
    "containsKey": Method(_contains_key, 1, 1),
    "containsValue": Method(_contains_value, 1, 1),
    "get": Method(_get, 1, 1),
    "getOrDefault": Method(_get_or_default, 2, 2),
    "hasProp": Method(_contains_key, 1, 1),  # of Camunda Spin
    "isEmpty": Method(lambda scope, target: not target),
    "keySet": Method(_keys),
    "length": Method(lambda scope, target: len(target)),
    "prop": Method(_prop, 1, 1),  # of Camunda Spin
    "size": Method(lambda scope, target: len(target)),
    "values": Method(_values),
}
