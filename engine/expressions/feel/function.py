"""Functions of FEEL: what a built-in is, and how one says that its arguments have no result (DMN 1.3, 10.3.4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from engine.expressions.values import Scope


@runtime_checkable
class Function(Protocol):
    """Anything that an expression may call: built-ins, and functions that the expression itself defines."""

    @property
    def call(self) -> Callable[..., Any]:
        """Called with the scope and the positional arguments."""
        ...


@dataclass(frozen=True, slots=True)
class Builtin:
    """A built-in function. `call(scope, *arguments)` gives null for arguments that it has no result for, and notes why.

    `parameters` are the names of each way to call it, which named arguments use. A `variadic` one takes its last parameter any
    number of times.
    """

    name: str
    parameters: tuple[tuple[str, ...], ...]
    variadic: bool
    call: Callable[..., Any] = field(repr=False)

    def takes(self, count: int) -> bool:
        """Whether it may be called with so many positional arguments."""
        if self.variadic and count >= min(map(len, self.parameters)):
            return True
        return any(len(names) == count for names in self.parameters)

    def positional(self, named: Mapping[str, Any]) -> tuple[Any, ...] | None:
        """Named arguments in the order of the parameters; None if no way to call it has exactly these names."""
        for names in self.parameters:
            if named.keys() == set(names):
                return tuple(named[name] for name in names)
        return None


def no_result(scope: Scope, reason: str) -> None:
    """Null, which is what FEEL makes of wrong arguments. The reason is kept where the scope keeps notes."""
    warn = getattr(scope, "warn", None)
    if warn is not None:
        warn(reason)
