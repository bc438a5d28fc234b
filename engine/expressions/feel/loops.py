"""`for`, `some`, `every` and filters (DMN 1.3, 10.3.2.5, 10.3.2.14, 10.3.2.16). Every round is a step of the expression's budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from engine.expressions.feel.operators import Truth, any_true, is_number, negated, nothing, number, shown, truth
from engine.expressions.feel.ranges import Range
from engine.expressions.feel.scope import FeelScope, Items
from engine.expressions.tree import Binary, Iteration, Literal, Name, Node, Unary, walk

Closure = Callable[[FeelScope], Any]


class NoDomain(Exception):
    """What should be iterated over is nothing that can be. The whole loop is null then."""


@dataclass(frozen=True, slots=True)
class Domain:
    """The compiled iterator: its name, and what it goes through."""

    name: str
    start: Closure
    until: Closure | None


def domains(iterations: Sequence[Iteration], compiled: Callable[[Node], Closure]) -> list[Domain]:
    return [Domain(each.name, compiled(each.domain), None if each.until is None else compiled(each.until)) for each in iterations]


def for_each(over: Sequence[Domain], result: Node, compiled: Closure) -> Closure:
    """The results of all rounds. `partial` is the list of those so far."""
    asks_partial = any(isinstance(each, Name) and each.name == "partial" for each, _ in walk(result))

    def evaluate(scope: FeelScope) -> list[Any] | None:
        made: list[Any] = []
        kept = scope.root.absent
        try:
            for frame in _rounds(over, scope, 0):
                if asks_partial:
                    scope.spend(len(made) // 8)
                    frame = frame.within({"partial": list(made)})  # a copy, for a result may hold it
                made.append(compiled(frame))
        except NoDomain:
            return None
        scope.root.absent = kept
        return made

    return evaluate


def quantified(quantifier: str, over: Sequence[Domain], condition: Closure) -> Closure:
    """True if it holds for one round, or for all; null if that depends on a round that has no answer."""

    def answers(scope: FeelScope) -> Iterator[Truth]:
        for frame in _rounds(over, scope, 0):
            answer = truth(condition(frame))
            yield answer if quantifier == "some" else negated(answer)

    def evaluate(scope: FeelScope) -> Truth:
        kept = scope.root.absent
        try:
            found = any_true(answers(scope))
        except NoDomain:
            return None
        scope.root.absent = kept
        return found if quantifier == "some" else negated(found)

    return evaluate


def _rounds(over: Sequence[Domain], scope: FeelScope, at: int) -> Iterator[FeelScope]:
    """A frame for every combination; later iterators see the names of earlier ones."""
    domain = over[at]
    for item in _items(domain, scope):
        scope.spend(1)
        frame = scope.within({domain.name: item})
        if at + 1 < len(over):
            yield from _rounds(over, frame, at + 1)
        else:
            yield frame


def _items(domain: Domain, scope: FeelScope) -> Iterable[Any]:
    start = domain.start(scope)
    if domain.until is not None:
        return _span(start, domain.until(scope), scope)
    match start:
        case list() | tuple():
            return start
        case Range(low, high, low_closed, high_closed):
            return _span(low, high, scope, low_closed=low_closed, high_closed=high_closed)
        case None:
            nothing(scope, "no list to go through, but null")
            raise NoDomain
    return (start,)


def _span(low: Any, high: Any, scope: FeelScope, *, low_closed: bool = True, high_closed: bool = True) -> Iterable[Any]:
    """Whole numbers or days from one to the other, downwards too."""
    if is_number(low) and is_number(high):
        first, last = number(low), number(high)
        if int(first) == first and int(last) == last:
            return _steps(int(first), int(last), low_closed=low_closed, high_closed=high_closed)
    if isinstance(low, date) and isinstance(high, date) and not isinstance(low, datetime) and not isinstance(high, datetime):
        days = _steps(0, (high - low).days, low_closed=low_closed, high_closed=high_closed)
        return (low + timedelta(days=day) for day in days)
    nothing(scope, f"no whole numbers or dates from {shown(low)} to {shown(high)}")
    raise NoDomain


def _steps(first: int, last: int, *, low_closed: bool, high_closed: bool) -> range:
    step = 1 if first <= last else -1
    return range(first + (0 if low_closed else step), last + (step if high_closed else 0), step)


# ---- filters


def filtered(target: Closure, condition: Node, compiled: Closure) -> Closure:
    """`target[condition]`. A value that is no list is one of itself."""
    always_number = _is_number(condition)

    def evaluate(scope: FeelScope) -> Any:
        value = target(scope)
        if value is None:
            return nothing(scope, "no items of null")
        items = value if isinstance(value, (list, tuple)) else (value,)
        if always_number:
            return _numbered(items, compiled(scope), scope)
        return _chosen(items, compiled, scope)

    return evaluate


def _is_number(node: Node) -> bool:
    """Whether only a number can come of it, so that it is asked once."""
    match node:
        case Literal(value):
            return is_number(value)
        case Unary():
            return True
    return isinstance(node, Binary) and node.operator in ("-", "*", "/", "**")


def _numbered(items: Sequence[Any], at: Any, scope: FeelScope) -> Any:
    """The item with that number: from 1, or from -1 backwards."""
    if is_number(at) and at == int(at) and 1 <= abs(at) <= len(items):
        return items[int(at) - 1 if at > 0 else int(at)]
    return nothing(scope, f"no item {shown(at)} in a list of {len(items)}")


def _chosen(items: Sequence[Any], condition: Closure, scope: FeelScope) -> Any:
    """The items for which the condition is true. It may turn out to be the number of one, the same for each."""
    keys = Items(items)
    kept = scope.root.absent
    found: list[Any] = []
    for item in items:
        scope.spend(1)
        frame = scope.within({"item": item}, keys)
        answer = condition(frame.within(item) if isinstance(item, Mapping) else frame)
        if answer is True:
            found.append(item)
        elif is_number(answer):
            return _numbered(items, answer, scope)
    scope.root.absent = kept
    return found
