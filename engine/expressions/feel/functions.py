"""Functions that an expression defines, and calls of these and of the built-in ones (DMN 1.3, 10.3.2.13.3 and 10.3.2.13.4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from engine.expressions.feel.builtins import BUILTINS
from engine.expressions.feel.function import Builtin, Function
from engine.expressions.feel.operators import nothing, shown
from engine.expressions.feel.scope import MISSING, FeelScope
from engine.expressions.feel.types import is_instance
from engine.expressions.tree import Type
from engine.expressions.values import Scope

Closure = Callable[[FeelScope], Any]
Named = Sequence[tuple[str, Closure]]


@dataclass(frozen=True, slots=True)
class Defined:
    """A function that an expression made, with the frame in which it was made."""

    parameters: tuple[tuple[str, Type | None], ...]
    body: Closure = field(repr=False)
    frame: FeelScope = field(repr=False)

    def call(self, scope: Scope, *arguments: Any) -> Any:
        """Null for arguments that are too many, too few, or of other types."""
        if len(arguments) != len(self.parameters):
            return nothing(scope, f"no result of {len(arguments)} arguments for {len(self.parameters)} parameters")
        for (name, wanted), argument in zip(self.parameters, arguments, strict=True):
            if wanted is not None and argument is not None and not is_instance(argument, wanted, scope):
                return nothing(scope, f"no result for {name}: expected a {wanted.name}, found {shown(argument)}")
        self.frame.enter_function()
        try:
            return self.body(self.frame.within({name: argument for (name, _), argument in zip(self.parameters, arguments, strict=True)}))
        finally:
            self.frame.leave_function()


def definition(parameters: tuple[tuple[str, Type | None], ...], body: Closure) -> Closure:
    return lambda scope: Defined(parameters, body, scope)


def call_of_builtin(name: str, positional: Sequence[Closure], named: Named) -> Closure:
    """A name that only looks like a built-in function is called if it is a function; a variable of that name is none."""
    builtin = BUILTINS[name]
    plainly = not named and builtin.takes(len(positional))

    def evaluate(scope: FeelScope) -> Any:
        own = scope.find(name)
        if plainly and own is MISSING:
            return builtin.call(scope, *[argument(scope) for argument in positional])
        function = own if _is_function(own) else builtin
        return _called(function, name, positional, named, scope)

    return evaluate


def call(callee: Closure, positional: Sequence[Closure], named: Named) -> Closure:
    def evaluate(scope: FeelScope) -> Any:
        function = callee(scope)
        if not _is_function(function):
            return nothing(scope, f"no result of calling {shown(function)}")
        return _called(function, "the function", positional, named, scope)

    return evaluate


def _is_function(value: Any) -> TypeGuard[Function]:
    """Asked for every call: a protocol would be asked for its attributes each time, which takes longer than the call."""
    return isinstance(value, (Builtin, Defined))


def _called(function: Function, name: str, positional: Sequence[Closure], named: Named, scope: FeelScope) -> Any:
    arguments: Sequence[Any] | None = [argument(scope) for argument in positional]
    if named:
        arguments = _in_order(function, {key: argument(scope) for key, argument in named})
    if arguments is None or (isinstance(function, Builtin) and not function.takes(len(arguments))):
        return nothing(scope, f"no result of {name} with these arguments: {len(positional)}, {', '.join(key for key, _ in named)}")
    return function.call(scope, *arguments)


def _in_order(function: Function, named: dict[str, Any]) -> Sequence[Any] | None:
    if isinstance(function, Builtin):
        return function.positional(named)
    if isinstance(function, Defined) and named.keys() == {name for name, _ in function.parameters}:
        return [named[name] for name, _ in function.parameters]
    return None
