"""The variables that an expression may ask for, and what it calls that is no function, as far as the tree shows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from engine.expressions.errors import ExpressionError
from engine.expressions.feel.builtins import BUILTINS
from engine.expressions.tree import (
    Asked,
    Feel,
    Filter,
    For,
    FunctionOf,
    Invocation,
    Iteration,
    Name,
    Node,
    ObjectOf,
    Provided,
    Quantified,
    children,
)

_TIMELY = frozenset({"now", "today"})  # functions that read the time, which counts as the name `now`
_OF_FILTERS = frozenset({"item"})
_OF_LOOPS = frozenset({"partial"})
_FEEL = frozenset({""})  # the names within are bound as FEEL binds them


def names_in(root: Node) -> frozenset[str]:
    """Names that nothing in the expression declares. A name within a filter may be a key of its items, and counts all the same."""
    return frozenset(name for name, _ in _free(root, frozenset()))


def refuse_unknown_functions(root: Node) -> None:
    """Raises ExpressionError for a name that is called and is neither built in nor declared: no variable of a process is a function."""
    unknown = sorted({name for name, called in _free(root, frozenset()) if called})
    if unknown:
        near = get_close_matches(unknown[0], BUILTINS, n=1)
        raise ExpressionError(f"expected a function of FEEL, found {unknown[0]}(){f'; there is one called {near[0]}()' if near else ''}")


def _free(node: Node, bound: frozenset[str]) -> Iterator[tuple[str, bool]]:
    """Each name with whether it is called. Recursive: the tree is at most as deep as `limits` says."""
    match node:
        case Name(name) | Asked(name, _):
            if name not in bound:
                yield name, False
            return
        case Invocation(Name(name), positional, named) if name not in bound:
            if name not in BUILTINS:
                yield name, True
            if name in _TIMELY:
                yield "now", False
            for each in (*positional, *(value for _, value in named)):
                yield from _free(each, bound)
            return
        case Provided("now" | "dateTime"):
            yield "now", False
            return
        case For(iterations, result):
            yield from _of_loop(iterations, result, bound, _OF_LOOPS)
            return
        case Quantified(_, iterations, condition):
            yield from _of_loop(iterations, condition, bound, frozenset())
            return
    yield from _of_frames(node, bound)


def _of_loop(iterations: Sequence[Iteration], body: Node, bound: frozenset[str], also: frozenset[str]) -> Iterator[tuple[str, bool]]:
    for each in iterations:
        for part in (each.domain, each.until):
            if part is not None:
                yield from _free(part, bound)
        bound |= {each.name}
    yield from _free(body, bound | also)


def _of_frames(node: Node, bound: frozenset[str]) -> Iterator[tuple[str, bool]]:
    match node:
        case Filter(target, condition):
            yield from _free(target, bound)
            yield from _free(condition, bound | _OF_FILTERS)
        case FunctionOf(parameters, body):
            yield from _free(body, bound | {name for name, _ in parameters})
        case Feel(body):
            yield from _free(body, bound | _FEEL)
        case ObjectOf(entries):
            for key, value in entries:
                itself = bound | {key} if isinstance(value, FunctionOf) else bound  # a function may call itself
                yield from _free(value, itself)
                bound |= {key} if bound >= _FEEL else frozenset()  # an object of another language declares nothing
        case _:
            for child in children(node):
                yield from _free(child, bound)
