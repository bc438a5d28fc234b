"""Functions over lists (DMN 1.3, 10.3.4.4 and 10.3.4.8, tables 70 and 74).

`list replace` is that of DMN 1.4; `partition`, `duplicate values` and `is empty` are Camunda's.
Positions count from 1, from the end where they are negative. A value that is no list is a list of itself, except null. What only
reads a list is in `aggregate`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cmp_to_key
from typing import Any

from engine.expressions import limits
from engine.expressions.errors import LimitExceeded
from engine.expressions.feel.builtins.define import Group, NoResult, kind_of, made, number
from engine.expressions.feel.function import Function
from engine.expressions.feel.operators import equal, ordered, shown
from engine.expressions.values import Scope

LIST = Group()
_before = ordered("<")


@LIST.function("list contains", "list: list, element: any")
def _list_contains(scope: Scope, items: list[Any], element: Any) -> bool:
    return contains(scope, items, element)


def contains(scope: Scope, items: Iterable[Any], element: Any) -> bool:
    """Whether an item equals the element, which may be null."""
    return any(same(scope, item, element) for item in items)


def same(scope: Scope, left: Any, right: Any) -> bool:
    scope.spend(1)
    return equal(left, right, scope) is True


@LIST.function("sublist", "list: list, start position: whole, length?: whole")
def _sublist(scope: Scope, items: list[Any], start: int, length: int | None = None) -> list[Any]:
    first = index(items, start)
    if length is not None and not 1 <= length <= len(items) - first:
        raise NoResult(f"expected a length from 1 to {len(items) - first}, found {length}")
    return made(scope, items[first:] if length is None else items[first : first + length])


def index(items: list[Any], position: int) -> int:
    """The place from 0 on. Raises NoResult for a position that the list does not have."""
    if not 1 <= abs(position) <= len(items):
        raise NoResult(f"expected a position from 1 to {len(items)} or from -{len(items)} to -1, found {position}")
    return position - 1 if position > 0 else len(items) + position


@LIST.function("append", "list: list, item: any…")
def _append(scope: Scope, items: list[Any], *more: Any) -> list[Any]:
    return made(scope, [*items, *more])


@LIST.function("concatenate", "list: list…")
def _concatenate(scope: Scope, *lists: list[Any]) -> list[Any]:
    scope.spend(sum(map(len, lists)))
    return [item for items in lists for item in items]


@LIST.function("insert before", "list: list, position: whole, newItem: any")
def _insert_before(scope: Scope, items: list[Any], position: int, item: Any) -> list[Any]:
    at = index(items, position)
    return made(scope, [*items[:at], item, *items[at:]])


@LIST.function("remove", "list: list, position: whole")
def _remove(scope: Scope, items: list[Any], position: int) -> list[Any]:
    at = index(items, position)
    return made(scope, [*items[:at], *items[at + 1 :]])


@LIST.function("list replace", "list: list, position: whole, newItem: any", "list: list, match: function, newItem: any")
def _list_replace(scope: Scope, items: list[Any], which: int | Function, item: Any) -> list[Any]:
    if isinstance(which, int):
        at = index(items, which)
        return made(scope, [*items[:at], item, *items[at + 1 :]])
    return [item if _answer(scope, which, each, item) else each for each in items]


def _answer(scope: Scope, function: Function, *arguments: Any) -> bool:
    scope.spend(1)
    answer = function.call(scope, *arguments)
    if not isinstance(answer, bool):
        raise NoResult(f"expected a function that gives true or false, found {shown(answer)}")
    return answer


@LIST.function("reverse", "list: list")
def _reverse(scope: Scope, items: list[Any]) -> list[Any]:
    return made(scope, items[::-1])


@LIST.function("index of", "list: list, match: any")
def _index_of(scope: Scope, items: list[Any], match: Any) -> list[int]:
    return [at for at, item in enumerate(items, start=1) if same(scope, item, match)]


@LIST.function("union", "list: list…")
def _union(scope: Scope, *lists: list[Any]) -> list[Any]:
    return _distinct(scope, (item for items in lists for item in items))


@LIST.function("distinct values", "list: list")
def _distinct_values(scope: Scope, items: list[Any]) -> list[Any]:
    return _distinct(scope, items)


def _distinct(scope: Scope, items: Iterable[Any]) -> list[Any]:
    seen = _Seen(scope)
    return [item for item in items if seen.first(item)]


@LIST.function("duplicate values", "list: list")
def _duplicate_values(scope: Scope, items: list[Any]) -> list[Any]:
    once, twice = _Seen(scope), _Seen(scope)
    return [item for item in items if not once.first(item) and twice.first(item)]


class _Seen:
    """The items seen so far. Plain values are found by their hash, others one by one."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.plain: set[tuple[str, Any]] = set()
        self.others: list[Any] = []

    def first(self, item: Any) -> bool:
        """Whether this is the first one equal to itself."""
        self.scope.spend(1)
        key = _plain(item)
        if key is None:
            found = contains(self.scope, self.others, item)
            if not found:
                self.others.append(item)
            return not found
        before = len(self.plain)
        self.plain.add(key)
        return len(self.plain) > before


def _plain(value: Any) -> tuple[str, Any] | None:
    """The same for two values of a kind that are equal, if that can be told by a hash."""
    match kind_of(value):
        case "number":
            return ("number", number(value))
        case "null" | "string" | "boolean" | "date" | "days" | "months" as kind:
            return (kind, value)
    return None


@LIST.function("flatten", "list: list")
def _flatten(scope: Scope, items: list[Any]) -> list[Any]:
    found: list[Any] = []
    _flatten_into(scope, items, found, 1)
    return found


def _flatten_into(scope: Scope, items: Iterable[Any], found: list[Any], depth: int) -> None:
    if depth > limits.VALUE_DEPTH:
        raise LimitExceeded(f"expected values nested at most {limits.VALUE_DEPTH} deep")
    for item in items:
        scope.spend(1)
        if isinstance(item, (list, tuple)):
            _flatten_into(scope, item, found, depth + 1)
        else:
            found.append(item)


@LIST.function("partition", "list: list, size: whole")
def _partition(scope: Scope, items: list[Any], size: int) -> list[list[Any]]:
    if size < 1:
        raise NoResult(f"expected a size of at least 1, found {size}")
    scope.spend(len(items))
    return [items[at : at + size] for at in range(0, len(items), size)]


@LIST.function("is empty", "list: list")
def _is_empty(scope: Scope, items: list[Any]) -> bool:
    return not items


# ---- order


@LIST.function("sort", "list: list, precedes: function", "list: list")
def _sort(scope: Scope, items: list[Any], precedes: Function | None = None) -> list[Any]:
    if precedes is None:
        return in_order(scope, items)
    return _merged(scope, items, lambda left, right: _answer(scope, precedes, left, right))


def in_order(scope: Scope, items: list[Any]) -> list[Any]:
    """From the smallest to the largest. Raises NoResult for items that cannot be compared."""

    def before(left: Any, right: Any) -> bool:
        scope.spend(1)
        answer = _before(left, right, scope)
        if answer is None:
            raise NoResult(f"expected items that can be compared, found {shown(left)} and {shown(right)}")
        return answer

    if len(items) == 1:
        before(items[0], items[0])  # an item that cannot be compared with itself has no order either
    return _merged(scope, items, before)


def _merged(scope: Scope, items: list[Any], before: Callable[[Any, Any], bool]) -> list[Any]:
    """Stable: what neither precedes the other stays as it was."""
    return made(scope, sorted(items, key=cmp_to_key(lambda left, right: -1 if before(left, right) else int(before(right, left)))))
