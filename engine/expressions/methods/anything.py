"""What every kind of value but null can do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.expressions.methods.method import Method
from engine.expressions.values import Scope, bounded, same, text


def _equals(scope: Scope, target: Any, other: Any) -> bool:
    """Unlike `==`, values of unlike kinds are unequal, not an error."""
    return same(target, other, scope, 1)


def _to_string(scope: Scope, target: Any) -> str:
    return bounded(text(target, scope), scope)


METHODS: Mapping[str, Method] = {"equals": Method(_equals, 1, 1), "toString": Method(_to_string)}
