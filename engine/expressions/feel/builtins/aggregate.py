"""Functions that make one value of a list, or of their arguments: `sum([1, 2])` is `sum(1, 2)` (DMN 1.3, 10.3.4.4, table 70)."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import reduce
from typing import Any

from engine.expressions.feel.builtins.define import WRONG, Group, NoResult, items_of, kind_of, number
from engine.expressions.feel.operators import any_true, is_number, negated, ordered, shown, truth
from engine.expressions.values import NUMBERS, Scope

AGGREGATE = Group()
_before = ordered("<")


@AGGREGATE.function("count", "list: any…")
def _count(scope: Scope, *arguments: Any) -> int:
    return len(items_of(arguments))


@AGGREGATE.function("min", "list: any…")
def _min(scope: Scope, *arguments: Any) -> Any:
    return _extreme(scope, items_of(arguments), lambda left, right: _before(left, right, scope))


@AGGREGATE.function("max", "list: any…")
def _max(scope: Scope, *arguments: Any) -> Any:
    return _extreme(scope, items_of(arguments), lambda left, right: _before(right, left, scope))


def _extreme(scope: Scope, items: list[Any], better: Callable[[Any, Any], bool | None]) -> Any:
    scope.spend(len(items))
    best = _first(items)
    for item in items:
        answer = better(item, best)
        if answer is None:
            raise NoResult(f"expected items that can be compared, found {shown(best)} and {shown(item)}")
        best = item if answer else best
    return best


def _first(items: list[Any]) -> Any:
    if not items:
        raise NoResult("expected at least one item, found an empty list")
    return items[0]


@AGGREGATE.function("sum", "list: any…")
def _sum(scope: Scope, *arguments: Any) -> Decimal:
    return _total(_numbers(scope, arguments))


def _numbers(scope: Scope, arguments: tuple[Any, ...]) -> list[Decimal]:
    items = items_of(arguments)
    _first(items)
    scope.spend(len(items))
    return [_number(item) for item in items]


def _number(value: Any) -> Decimal:
    found = number(value) if is_number(value) else WRONG
    if not isinstance(found, Decimal):
        raise NoResult(f"expected numbers, found {kind_of(value)}")
    return found


def _total(numbers: list[Decimal]) -> Decimal:
    return reduce(NUMBERS.add, numbers)


@AGGREGATE.function("product", "list: any…")
def _product(scope: Scope, *arguments: Any) -> Decimal:
    return reduce(NUMBERS.multiply, _numbers(scope, arguments))


@AGGREGATE.function("mean", "list: any…")
def _mean(scope: Scope, *arguments: Any) -> Decimal:
    return _average(_numbers(scope, arguments))


def _average(numbers: list[Decimal]) -> Decimal:
    return NUMBERS.divide(_total(numbers), Decimal(len(numbers)))


@AGGREGATE.function("median", "list: any…")
def _median(scope: Scope, *arguments: Any) -> Decimal:
    numbers = sorted(_numbers(scope, arguments))
    middle = len(numbers) // 2
    return numbers[middle] if len(numbers) % 2 else _average(numbers[middle - 1 : middle + 1])


@AGGREGATE.function("stddev", "list: any…")
def _stddev(scope: Scope, *arguments: Any) -> Decimal:
    """Of a sample: divided by one less than the count."""
    numbers = _numbers(scope, arguments)
    if len(numbers) < 2:
        raise NoResult("expected at least two numbers, found one")
    mean = _average(numbers)
    distances = [NUMBERS.subtract(each, mean) for each in numbers]
    squares = _total([NUMBERS.multiply(each, each) for each in distances])
    return NUMBERS.sqrt(NUMBERS.divide(squares, Decimal(len(numbers) - 1)))


@AGGREGATE.function("mode", "list: any…")
def _mode(scope: Scope, *arguments: Any) -> list[Decimal]:
    """The most frequent numbers, in ascending order."""
    if items_of(arguments) == []:
        return []
    counts: dict[Decimal, int] = {}
    for each in _numbers(scope, arguments):
        counts[each] = counts.get(each, 0) + 1
    most = max(counts.values())
    return sorted(each for each, count in counts.items() if count == most)


def _all(scope: Scope, *arguments: Any) -> bool | None:
    items = items_of(arguments)
    scope.spend(len(items))
    return negated(any_true(negated(truth(item)) for item in items))


def _any(scope: Scope, *arguments: Any) -> bool | None:
    items = items_of(arguments)
    scope.spend(len(items))
    return any_true(truth(item) for item in items)


# `and` and `or` are their names in DMN 1.1 and in Camunda.
for _names, _written in ((("all", "and"), _all), (("any", "or"), _any)):
    for _name in _names:
        AGGREGATE.function(_name, "list: any…")(_written)
