"""The tree of a FEEL expression -> one closure a node (DMN 1.3, 10.3.2). What has no result is null; a missing name is an error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from engine.expressions.errors import ExpressionError, MissingName
from engine.expressions.feel import cells, functions, loops, operators, timeline
from engine.expressions.feel.builtins import BUILTINS
from engine.expressions.feel.outward import as_variable
from engine.expressions.feel.ranges import Range
from engine.expressions.feel.scope import MISSING, FeelScope
from engine.expressions.feel.temporal import TemporalError
from engine.expressions.feel.types import is_instance, kind
from engine.expressions.missing import missing_variable
from engine.expressions.tree import (
    AsCondition,
    AsVariable,
    Between,
    Binary,
    Conditional,
    Feel,
    Filter,
    For,
    FunctionOf,
    In,
    InstanceOf,
    Invocation,
    ListOf,
    Literal,
    Logical,
    Member,
    Name,
    Node,
    ObjectOf,
    Quantified,
    RangeOf,
    Unary,
    UnaryTests,
)
from engine.expressions.values import Scope

Closure = Callable[[FeelScope], Any]
_ENDS = {"start": "low", "end": "high", "start included": "low_closed", "end included": "high_closed"}


def compile_feel(root: Feel | AsVariable | AsCondition) -> Callable[[Scope], Any]:
    """The closure that evaluates a FEEL expression in the scope of any language."""
    match root:
        case AsVariable(body):
            inner = _entry(body)
            return lambda scope: as_variable(inner(FeelScope.of(scope)))
        case AsCondition(body):
            return _condition(_entry(body))
    inner = compile_node(root.body)
    return lambda scope: inner(FeelScope.of(scope))


def _entry(node: Node) -> Closure:
    return compile_node(node.body if isinstance(node, Feel) else node)


def _condition(inner: Closure) -> Callable[[Scope], Any]:
    def evaluate(scope: Scope) -> Any:
        frame = FeelScope.of(scope)
        value = inner(frame)
        key = frame.absent
        if key is not None:
            raise MissingName(key, f"expected a key {key!r} in the context, found none")
        if value is None:
            raise ExpressionError(f"expected true or false, found null{_because(frame)}")
        return value

    return evaluate


def _because(frame: FeelScope) -> str:
    return f": {frame.notes[0]}" if frame.notes else ""


def compile_node(node: Node) -> Closure:
    match node:
        case Literal(value):
            return lambda scope: value
        case Name(name):
            return _name(name)
        case Member(target, key):
            return _member(compile_node(target), key)
        case Unary(_, operand):
            inner = compile_node(operand)
            return lambda scope: operators.negative(inner(scope), scope)
        case Binary(operator, left, right):
            return _binary(operator, left, right)
        case Logical(operator, left, right):
            return _logical(operator, compile_node(left), compile_node(right))
        case Conditional(condition, then, otherwise):
            return _conditional(compile_node(condition), compile_node(then), compile_node(otherwise))
        case ListOf(items):
            closures = [compile_node(item) for item in items]
            return lambda scope: [closure(scope) for closure in closures]
        case ObjectOf(entries):
            return _context([(key, compile_node(value)) for key, value in entries])
        case RangeOf(low, high, low_closed, high_closed):
            ends = [None if end is None else compile_node(end) for end in (low, high)]
            return _range(ends[0], ends[1], low_closed=low_closed, high_closed=high_closed)
        case InstanceOf(value, wanted):
            inner = compile_node(value)
            return lambda scope: is_instance(inner(scope), wanted, scope)
    return _larger(node)


def _larger(node: Node) -> Closure:
    """What evaluates its parts more than once, or in frames of their own."""
    match node:
        case Between(value, low, high):
            return _between(compile_node(value), compile_node(low), compile_node(high))
        case In(value, wanted):
            return cells.membership(compile_node(value), [cells.test(each, compile_node, in_cell=False) for each in wanted])
        case UnaryTests(wanted, negated):
            return cells.cell([cells.test(each, compile_node, in_cell=True) for each in wanted], turned=negated)
        case Filter(target, condition):
            return loops.filtered(compile_node(target), condition, compile_node(condition))
        case For(iterations, result):
            return loops.for_each(loops.domains(iterations, compile_node), result, compile_node(result))
        case Quantified(quantifier, iterations, condition):
            return loops.quantified(quantifier, loops.domains(iterations, compile_node), compile_node(condition))
        case FunctionOf(parameters, body):
            return functions.definition(parameters, compile_node(body))
        case Invocation(callee, positional, named):
            return _invocation(callee, positional, named)
        case Feel(body):
            return compile_node(body)
    raise TypeError(f"expected a node of FEEL, found a {type(node).__name__}")


# ---- names


def _name(name: str) -> Closure:
    def evaluate(scope: FeelScope) -> Any:
        value = scope.find(name)
        if value is MISSING:
            raise missing_variable(name, scope.variables)
        return value

    return evaluate


def _member(target: Closure, key: str) -> Closure:
    def evaluate(scope: FeelScope) -> Any:
        return _key_of(target(scope), key, scope)

    return evaluate


def _key_of(value: Any, key: str, scope: FeelScope) -> Any:
    """An entry, a property, or the list of them for a list (10.3.2.5, table 65)."""
    match value:
        case Mapping():
            if key in value:
                return value[key]
            if scope.root.absent is None:
                scope.root.absent = key
            return operators.nothing(scope, f"no key {key!r} in the context")
        case list() | tuple():
            scope.spend(len(value))
            return [_key_of(item, key, scope) if not isinstance(item, (list, tuple)) else None for item in value]
        case Range() if key in _ENDS:
            return getattr(value, _ENDS[key])
    if timeline.is_temporal(value):
        try:
            return timeline.property_of(value, key)
        except TemporalError as error:
            return operators.nothing(scope, str(error))
    return operators.nothing(scope, f"no key {key!r} in {operators.shown(value)}")


def _asked(node: Node) -> Closure:
    """A name, or a path from one, that may be missing: MISSING then."""
    match node:
        case Name(name):
            return lambda scope: scope.find(name)
        case Member(target, key):
            inner = _asked(target)

            def evaluate(scope: FeelScope) -> Any:
                value = inner(scope)
                if value is MISSING or (isinstance(value, Mapping) and key not in value):
                    return MISSING
                return _key_of(value, key, scope)

            return evaluate
    return compile_node(node)


def _or_null(node: Node) -> Closure:
    inner = _asked(node)

    def evaluate(scope: FeelScope) -> Any:
        value = inner(scope)
        return None if value is MISSING else value

    return evaluate


# ---- operators


def _binary(sign: str, left: Node, right: Node) -> Closure:
    if sign in ("=", "!="):
        return _equality(left, right, negated=sign == "!=")
    a, b = compile_node(left), compile_node(right)
    apply = operators.ordered(sign) if sign in ("<", "<=", ">", ">=") else operators.arithmetic(sign)
    return lambda scope: apply(a(scope), b(scope), scope)


def _equality(left: Node, right: Node, *, negated: bool) -> Closure:
    """Beside the literal null a name may be missing: whoever asks that way means it."""
    null = Literal(None)
    a = _or_null(left) if right == null else compile_node(left)
    b = _or_null(right) if left == null else compile_node(right)
    if negated:
        return lambda scope: operators.negated(operators.equal(a(scope), b(scope), scope))
    return lambda scope: operators.equal(a(scope), b(scope), scope)


def _logical(word: str, left: Closure, right: Closure) -> Closure:
    """Tables 48 and 49. The right side is evaluated only if the left one does not decide."""
    decides = word == "or"

    def evaluate(scope: FeelScope) -> Any:
        first = operators.truth(left(scope))
        if first is decides:
            return decides
        second = operators.truth(right(scope))
        if second is decides:
            return decides
        return None if first is None or second is None else not decides

    return evaluate


def _conditional(condition: Closure, then: Closure, otherwise: Closure) -> Closure:
    """10.3.2.15: what is not true is taken as false."""
    return lambda scope: then(scope) if condition(scope) is True else otherwise(scope)


def _between(value: Closure, low: Closure, high: Closure) -> Closure:
    at_most = operators.ordered("<=")

    def evaluate(scope: FeelScope) -> Any:
        found = value(scope)
        above, below = at_most(low(scope), found, scope), at_most(found, high(scope), scope)
        if above is False or below is False:
            return False
        return None if above is None or below is None else True

    return evaluate


def _context(entries: list[tuple[str, Closure]]) -> Closure:
    """Each entry sees those before it (10.3.2.6)."""

    def evaluate(scope: FeelScope) -> dict[str, Any]:
        made: dict[str, Any] = {}
        frame = scope.within(made)
        for key, closure in entries:
            made[key] = closure(frame)
        return made

    return evaluate


def _range(low: Closure | None, high: Closure | None, *, low_closed: bool, high_closed: bool) -> Closure:
    def evaluate(scope: FeelScope) -> Range | None:
        start, end = low and low(scope), high and high(scope)
        if (low and start is None) or (high and end is None) or (low and high and kind(start) != kind(end)):
            operators.nothing(scope, f"no range from {operators.shown(start)} to {operators.shown(end)}")
            return None
        return Range(start, end, low_closed, high_closed)

    return evaluate


# ---- functions


def _invocation(callee: Node, positional: tuple[Node, ...], named: tuple[tuple[str, Node], ...]) -> Closure:
    name = callee.name if isinstance(callee, Name) else None
    every = [*positional, *(value for _, value in named)]
    if name == "is defined" and len(every) == 1:
        asked = _asked(every[0])
        return lambda scope: asked(scope) is not MISSING
    arguments = [compile_node(each) for each in positional]
    by_name = [(key, compile_node(each)) for key, each in named]
    if name == "get or else" and positional:
        arguments[0] = _or_null(positional[0])
    if name is not None and name in BUILTINS:
        return functions.call_of_builtin(name, arguments, by_name)
    return functions.call(compile_node(callee), arguments, by_name)
