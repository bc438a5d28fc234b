"""The syntax tree -> one closure a node. No name is looked up by a string of the model except in the variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from engine.expressions import limits, values
from engine.expressions.errors import ExpressionError, LimitExceeded, MissingName
from engine.expressions.feel.compile import compile_feel
from engine.expressions.methods import dispatch
from engine.expressions.missing import missing_variable
from engine.expressions.provided import PROVIDED
from engine.expressions.tree import (
    AsCondition,
    Asked,
    AsVariable,
    Binary,
    Call,
    Conditional,
    Feel,
    Index,
    ListOf,
    Literal,
    Logical,
    Member,
    Name,
    Node,
    ObjectOf,
    Provided,
    Template,
    Unary,
    walk,
)
from engine.expressions.values import Scope

Closure = Callable[[Scope], Any]


def compile_tree(root: Node) -> Closure:
    """The closure that evaluates the tree. Raises LimitExceeded if it is too large or too deep."""
    for count, (_, depth) in enumerate(walk(root), start=1):
        if count > limits.NODES:
            raise LimitExceeded(f"expected an expression of at most {limits.NODES} parts, found more")
        if depth > limits.DEPTH:
            raise LimitExceeded(f"expected an expression at most {limits.DEPTH} operations deep, found a deeper one")
    return _compile(root)


def _compile(node: Node) -> Closure:
    match node:
        case Literal(value):
            return lambda scope: value
        case Name(name) | Feel(Name(name)):  # one that stands alone in FEEL, no frame can hide
            return _name(name)
        case Member(target, key):
            return _member(_compile(target), key)
        case Index(target, index):
            return _index(_compile(target), _compile(index))
        case Call(target, method, arguments):
            return _call(_compile(target), method, [_compile(argument) for argument in arguments])
        case Provided(name, arguments):
            return _called(PROVIDED[name].apply, [_compile(argument) for argument in arguments])
        case Asked(name, whether):
            return (lambda scope: name in scope.variables) if whether else (lambda scope: scope.variables.get(name))
        case Unary(operator, operand):
            return _unary(operator, _compile(operand))
        case Logical(operator, left, right):
            return _logical(operator, _compile(left), _compile(right))
        case Binary(operator, left, right):
            return _binary(operator, _compile(left), _compile(right))
        case Conditional(condition, then, otherwise):
            return _conditional(_compile(condition), _compile(then), _compile(otherwise))
        case Template(parts):
            return _template([_compile(part) for part in parts])
        case ListOf(items):
            closures = [_compile(item) for item in items]
            return lambda scope: [closure(scope) for closure in closures]
        case ObjectOf(entries):
            pairs = [(key, _compile(value)) for key, value in entries]
            return lambda scope: {key: closure(scope) for key, closure in pairs}
        case Feel() | AsVariable() | AsCondition():
            return compile_feel(node)
    raise TypeError(f"expected a node of ${{…}}, found a {type(node).__name__}")


def _name(name: str) -> Closure:
    def evaluate(scope: Scope) -> Any:
        try:
            return scope.variables[name]
        except KeyError:
            raise missing_variable(name, scope.variables) from None

    return evaluate


def _member(target: Closure, key: str) -> Closure:
    return lambda scope: _entry(target(scope), key)


def _index(target: Closure, index: Closure) -> Closure:
    def evaluate(scope: Scope) -> Any:
        value, at = target(scope), index(scope)
        if isinstance(value, Mapping):
            if not isinstance(at, str):
                raise ExpressionError(f"expected a string as key of an object, found {values.shown(at)}")
            return _entry(value, at)
        if not isinstance(value, (list, tuple)):
            raise ExpressionError(f"expected a list or an object before [, found {values.shown(value)}")
        if isinstance(at, bool) or not isinstance(at, int):
            raise ExpressionError(f"expected a whole number as index of a list, found {values.shown(at)}")
        if not 0 <= at < len(value):
            raise ExpressionError(f"expected an index from 0 to {len(value) - 1}, found {at}: the list has {len(value)} items")
        return value[at]

    return evaluate


def _entry(value: Any, key: str) -> Any:
    if not isinstance(value, Mapping):
        raise ExpressionError(f"expected an object with a key {key!r}, found {values.shown(value)}")
    try:
        return value[key]
    except KeyError:
        keys = ", ".join(repr(str(each)[:40]) for each in list(value)[:8]) or "no keys"
        raise MissingName(key, f"expected a key {key!r} in the object, found {keys}") from None


def _call(target: Closure, method: str, arguments: list[Closure]) -> Closure:
    return _called(dispatch(method, len(arguments)), [target, *arguments])


def _called(apply: Callable[..., Any], arguments: list[Closure]) -> Closure:
    match arguments:
        case []:
            return apply
        case [only]:
            return lambda scope: apply(scope, only(scope))
        case [first, second]:
            return lambda scope: apply(scope, first(scope), second(scope))
    return lambda scope: apply(scope, *(argument(scope) for argument in arguments))


def _unary(operator: str, operand: Closure) -> Closure:
    match operator:
        case "!":
            return lambda scope: not values.truth(operand(scope), "after not")
        case "-":
            return lambda scope: values.negative(operand(scope))
    return lambda scope: _is_empty(operand(scope))


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, (str, list, tuple, Mapping)) and len(value) == 0)


def _logical(operator: str, left: Closure, right: Closure) -> Closure:
    word = "and" if operator == "&&" else "or"
    where = f"beside {word}"
    if operator == "&&":
        return lambda scope: values.truth(left(scope), where) and values.truth(right(scope), where)
    return lambda scope: values.truth(left(scope), where) or values.truth(right(scope), where)


def _binary(operator: str, left: Closure, right: Closure) -> Closure:
    match operator:
        case "==":
            return lambda scope: values.equal(left(scope), right(scope), scope)
        case "!=":
            return lambda scope: not values.equal(left(scope), right(scope), scope)
        case "+":
            return lambda scope: values.add(left(scope), right(scope), scope)
        case "+=":
            return _joined(left, right)
        case "<" | "<=" | ">" | ">=":
            compare = values.ordered(operator)
            return lambda scope: compare(left(scope), right(scope))
    calculate = values.arithmetic(operator)
    return lambda scope: calculate(left(scope), right(scope))


def _joined(left: Closure, right: Closure) -> Closure:
    """Two values of any kind as one text."""
    return lambda scope: values.add(values.text(left(scope), scope), values.text(right(scope), scope), scope)


def _conditional(condition: Closure, then: Closure, otherwise: Closure) -> Closure:
    return lambda scope: then(scope) if values.truth(condition(scope), "before ?") else otherwise(scope)


def _template(parts: list[Closure]) -> Closure:
    def evaluate(scope: Scope) -> str:
        texts: list[str] = []
        length = 0
        for part in parts:
            made = values.text(part(scope), scope)
            length += len(made)
            if length > limits.TEXT_LENGTH:
                values.too_long(length)
            texts.append(made)
        return values.bounded("".join(texts), scope)

    return evaluate
