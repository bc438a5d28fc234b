"""One method of one kind of value, and what methods ask of their arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.expressions.errors import ExpressionError
from engine.expressions.values import shown


@dataclass(frozen=True, slots=True)
class Method:
    """`least` and `most`: how many arguments."""

    apply: Callable[..., Any]  # (scope, target, *arguments)
    least: int = 0
    most: int = 0

    def takes(self, count: int) -> bool:
        return self.least <= count <= self.most

    @property
    def wanted(self) -> str:
        """How many arguments, in words."""
        return worded(self.least, self.most)


def worded(least: int, most: int) -> str:
    """How many arguments, in words."""
    if most == 0:
        return "no arguments"
    if least == most:
        return "1 argument" if most == 1 else f"{most} arguments"
    return f"{least} to {most} arguments"


def string(value: Any, method: str) -> str:
    if isinstance(value, str):
        return value
    raise ExpressionError(f"expected a string with .{method}(), found {shown(value)}")


def whole_number(value: Any, method: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ExpressionError(f"expected a whole number with .{method}(), found {shown(value)}")


def place(value: Any, length: int, method: str) -> int:
    """An index from 0 to `length`."""
    found = whole_number(value, method)
    if not 0 <= found <= length:
        raise ExpressionError(f"expected an index from 0 to {length} with .{method}(), found {shown(value)}")
    return found


def entries(value: Mapping[str, Any], scope: Any) -> Mapping[str, Any]:
    """An object of which every entry is looked at."""
    scope.spend(len(value))
    return value
