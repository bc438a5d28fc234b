"""What one evaluation of FEEL sees: names in frames within each other, and the work that it may still do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from engine.expressions import limits
from engine.expressions.errors import LimitExceeded
from engine.expressions.values import Scope, too_many_steps

MAX_NOTES = 20  # a person reads fewer


class Missing(Enum):
    """A name that is not there, which is neither null nor false."""

    MISSING = "missing"


MISSING = Missing.MISSING


class FeelScope(Scope):
    """One frame of names, and the frames around it, of which the outermost holds the variables and what all of them share."""

    __slots__ = ("absent", "calls", "items", "names", "notes", "outer", "root", "shared")

    def __init__(self, names: Mapping[str, Any], outer: FeelScope | None, shared: Scope, items: Items | None = None) -> None:
        self.names = names
        self.outer = outer
        self.items = items  # the list that a filter looks through
        self.shared = shared
        self.variables = shared.variables
        if outer is None:
            self.root: FeelScope = self
            self.calls = 0  # functions of the expression within each other
            self.notes: tuple[str, ...] = ()  # why something is null
            self.absent: str | None = None  # the first key that was read and is not there
        else:
            self.root = outer.root

    @classmethod
    def outermost(cls, variables: Mapping[str, Any]) -> FeelScope:
        """The frame of an expression that is FEEL altogether: what its frames share is itself."""
        frame = cls.__new__(cls)
        frame.variables = frame.names = variables
        frame.steps = limits.STEPS
        frame.outer = frame.items = frame.absent = None
        frame.root = frame.shared = frame
        frame.calls = 0
        frame.notes = ()
        return frame

    @classmethod
    def of(cls, scope: Scope) -> FeelScope:
        """The frame of an expression of FEEL within one of any language."""
        return scope if isinstance(scope, FeelScope) else cls(scope.variables, None, scope)

    def within(self, names: Mapping[str, Any], items: Items | None = None) -> FeelScope:
        """A frame in this one."""
        return FeelScope(names, self, self.shared, items)

    def spend(self, steps: int) -> None:
        shared = self.shared
        shared.steps -= steps
        if shared.steps < 0:
            raise too_many_steps()

    def warn(self, text: str) -> None:
        """Note why something is null."""
        if len(self.root.notes) < MAX_NOTES:
            self.root.notes += (text,)

    def find(self, name: str) -> Any:
        """The value of a name, or MISSING. A key that other items of a filtered list have is null in those that lack it."""
        frame: FeelScope | None = self
        while frame is not None:
            value = frame.names.get(name, MISSING)
            if value is not MISSING:
                return value
            frame = frame.outer
        frame = self
        while frame is not None:
            if frame.items is not None and frame.items.have(name, self):
                return None
            frame = frame.outer
        return MISSING

    def enter_function(self) -> None:
        self.root.calls += 1
        if self.root.calls > limits.CALLS:
            raise LimitExceeded(f"expected functions within each other at most {limits.CALLS} deep, found more")
        self.spend(limits.CALL_STEPS)

    def leave_function(self) -> None:
        self.root.calls -= 1


class Items:
    """The items of a list that is filtered, and the keys that any of them has."""

    __slots__ = ("_keys", "_values")

    def __init__(self, values: Sequence[Any]) -> None:
        self._values = values
        self._keys: set[Any] | None = None

    def have(self, name: str, scope: Scope) -> bool:
        if self._keys is None:
            scope.spend(len(self._values))
            self._keys = set().union(*(value for value in self._values if isinstance(value, Mapping)))
        return name in self._keys
