"""Functions over contexts (DMN 1.3, 10.3.4.9, table 75; `context put`, `context merge` and `context` as DMN 1.4 defines them)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.expressions import limits
from engine.expressions.errors import LimitExceeded
from engine.expressions.feel.builtins.define import Group, NoResult, made
from engine.expressions.values import Scope

CONTEXT = Group()


@CONTEXT.function("get value", "m: context, key: string", "context: context, keys: list")
def _get_value(scope: Scope, context: Mapping[str, Any], key: str | list[Any]) -> Any:
    found: Any = context
    for each in [key] if isinstance(key, str) else key:
        scope.spend(1)
        if not isinstance(found, Mapping) or not isinstance(each, str) or each not in found:
            return None
        found = found[each]
    return found


@CONTEXT.function("get entries", "m: context")
def _get_entries(scope: Scope, context: Mapping[str, Any]) -> list[Any]:
    return made(scope, [{"key": key, "value": value} for key, value in context.items()])


@CONTEXT.function("context put", "context: context, key: string, value: any", "context: context, keys: list, value: any")
def _context_put(scope: Scope, context: Mapping[str, Any], key: str | list[Any], value: Any) -> dict[str, Any]:
    keys = [key] if isinstance(key, str) else key
    if not keys or not all(isinstance(each, str) for each in keys):
        raise NoResult("expected at least one key, and strings as keys")
    if len(keys) > limits.VALUE_DEPTH:
        raise LimitExceeded(f"expected at most {limits.VALUE_DEPTH} keys within each other, found {len(keys)}")
    return _put(scope, context, keys, value)


def _put(scope: Scope, context: Any, keys: Sequence[str], value: Any) -> dict[str, Any]:
    if context is not None and not isinstance(context, Mapping):
        raise NoResult(f"expected a context to put {keys[0][:40]!r} into, found another value")
    found = dict(context or {})
    scope.spend(len(found) + 1)
    first, *rest = keys
    found[first] = _put(scope, found.get(first), rest, value) if rest else value
    return found


@CONTEXT.function("context merge", "contexts: list")
def _context_merge(scope: Scope, contexts: list[Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in contexts:
        if not isinstance(each, Mapping):
            raise NoResult("expected a list of contexts, found another value in it")
        scope.spend(len(each) + 1)
        found.update(each)
    return found


@CONTEXT.function("context", "entries: list")
def _context(scope: Scope, entries: list[Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in entries:
        scope.spend(1)
        if not isinstance(each, Mapping) or not isinstance(each.get("key"), str) or "value" not in each:
            raise NoResult("expected entries with a key, which is a string, and a value")
        if each["key"] in found:
            raise NoResult(f"expected keys that differ, found {each['key'][:40]!r} twice")
        found[each["key"]] = each["value"]
    return found
