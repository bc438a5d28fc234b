"""Tests of a value: what stands behind `in`, and in the cells of decision tables (DMN 1.3, 10.3.2.8 and rules 7, 15 to 18)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from engine.expressions.errors import MissingName
from engine.expressions.feel.operators import Truth, any_true, equal, matches, negated, ordered, truth
from engine.expressions.feel.scope import MISSING, FeelScope
from engine.expressions.tree import (
    Between,
    Binary,
    Conditional,
    Equals,
    In,
    InstanceOf,
    Invocation,
    Literal,
    Logical,
    Name,
    Node,
    Quantified,
    RangeOf,
    walk,
)

Closure = Callable[[FeelScope], Any]
Test = Callable[[FeelScope, Any], Truth]

INPUT = "?"
_COMPARISONS = frozenset({"=", "!=", "<", "<=", ">", ">="})


def membership(value: Closure, tests: Sequence[Test]) -> Closure:
    """`value in tests`."""
    if len(tests) == 1:
        (only,) = tests
        return lambda scope: only(scope, value(scope))

    def evaluate(scope: FeelScope) -> Truth:
        found = value(scope)
        return any_true(test(scope, found) for test in tests)

    return evaluate


def cell(tests: Sequence[Test], *, turned: bool) -> Closure:
    """What a cell says about its input. The dash, which has no tests, holds for everything."""
    if not tests:
        return lambda scope: True

    def evaluate(scope: FeelScope) -> Truth:
        value = scope.find(INPUT)
        if value is MISSING:
            raise MissingName(INPUT, "expected the input value as ?, found none")
        answer = any_true(test(scope, value) for test in tests)
        return negated(answer) if turned else answer

    return evaluate


def test(node: Node, compiled: Callable[[Node], Closure], *, in_cell: bool) -> Test:
    """One test. An expression is a value to equal, unless it asks about `?` or, in a cell, is a condition of its own."""
    match node:
        case RangeOf(low, high, low_closed, high_closed) if low is None or high is None:
            return _one_sided(low, high, compiled, closed=low_closed or high_closed)
        case Equals(wanted, unlike):
            inner = compiled(wanted)
            return lambda scope, value: negated(equal(inner(scope), value, scope)) if unlike else equal(inner(scope), value, scope)
    inner = compiled(node)
    if any(isinstance(each, Name) and each.name == INPUT for each, _ in walk(node)):
        return lambda scope, value: truth(inner(scope if in_cell else scope.within({INPUT: value})))
    decides = in_cell and _is_condition(node)
    means_null = node == Literal(None)  # `not(null)` asks for any value

    def evaluate(scope: FeelScope, value: Any) -> Truth:
        found = inner(scope)
        if decides and (found is True or found is False):
            return bool(found)
        if found is None and value is not None and not means_null:
            return None
        return matches(found, value, scope)

    return evaluate


def _one_sided(low: Node | None, high: Node | None, compiled: Callable[[Node], Closure], *, closed: bool) -> Test:
    compare = ordered((">" if high is None else "<") + ("=" if closed else ""))
    end = compiled(low or high or Literal(None))
    return lambda scope, value: compare(value, end(scope), scope)


def _is_condition(node: Node) -> bool:
    match node:
        case Binary(sign):
            return sign in _COMPARISONS
    return isinstance(node, (Between, Conditional, In, InstanceOf, Invocation, Logical, Quantified))
