"""THE table of methods that an expression may call. They read; none of them reaches beyond the value.

Named after those of Java, which models for Camunda 7 call. docs/expressions.md lists them, and a test compares.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from engine.expressions.errors import ExpressionError
from engine.expressions.methods import anything, dates, lists, numbers, objects, strings
from engine.expressions.methods.method import Method
from engine.expressions.values import kind, shown

__all__ = ["BY_KIND", "METHODS", "Method", "counts", "dispatch"]

# kind of value, as people call it -> name -> method
BY_KIND: Mapping[str, Mapping[str, Method]] = {
    "string": {**anything.METHODS, **strings.METHODS},
    "number": {**anything.METHODS, **numbers.METHODS},
    "boolean": {**anything.METHODS, **numbers.OF_BOOLEANS},
    "list": {**anything.METHODS, **lists.METHODS},
    "object": {**anything.METHODS, **objects.METHODS},
    "date": {**anything.METHODS, **dates.OF_DATES},
    "date and time": {**anything.METHODS, **dates.OF_TIMES},
}
METHODS = frozenset(name for methods in BY_KIND.values() for name in methods)

_KINDS: Mapping[type, str] = {
    str: "string",
    int: "number",
    Decimal: "number",
    float: "number",
    bool: "boolean",
    list: "list",
    tuple: "list",
    dict: "object",
    date: "date",
    datetime: "date and time",
}


def counts(name: str) -> tuple[int, int]:
    """The fewest and the most arguments that a method takes, of whatever kind of value."""
    found = [methods[name] for methods in BY_KIND.values() if name in methods]
    return min(method.least for method in found), max(method.most for method in found)


def dispatch(name: str, count: int) -> Callable[..., Any]:
    """The function (scope, target, *arguments) that calls the method of the target's kind."""
    having = {each: methods[name] for each, methods in BY_KIND.items() if name in methods}
    direct = {of: having[each].apply for of, each in _KINDS.items() if each in having and having[each].takes(count)}

    def call(scope: Any, target: Any, *arguments: Any) -> Any:
        apply = direct.get(type(target))
        if apply is None:
            method = having.get(kind(target))
            if method is None:
                raise ExpressionError(f"expected {_listed(having)} before .{name}(), found {shown(target)}")
            if not method.takes(count):
                raise ExpressionError(f"expected {method.wanted} for .{name}() of a {kind(target)}, found {count}")
            apply = method.apply
        return apply(scope, target, *arguments)

    return call


def _listed(kinds: Mapping[str, Method]) -> str:
    article = "an" if next(iter(kinds)) == "object" else "a"
    *others, last = kinds
    return f"{article} {', '.join(others)} or {last}" if others else f"{article} {last}"
