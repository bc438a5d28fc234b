"""A syntax tree of FEEL as text, every part in parentheses: what the parser must read back as the same tree."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from engine.expressions.tree import (
    Between,
    Binary,
    Conditional,
    Equals,
    Filter,
    For,
    FunctionOf,
    In,
    InstanceOf,
    Invocation,
    Iteration,
    ListOf,
    Literal,
    Logical,
    Member,
    Name,
    Node,
    ObjectOf,
    Quantified,
    RangeOf,
    Type,
    Unary,
    UnaryTests,
)


def printed(node: Node) -> str:
    match node:
        case Literal(value):
            return _literal(value)
        case Name(name):
            return name
        case Member(target, key):
            return f"{_in(target)}.{key}"
        case Unary(_, operand):
            return f"-{_in(operand)}"
        case Binary(sign, left, right) | Logical(sign, left, right):
            return f"{_in(left)} {sign} {_in(right)}"
        case Conditional(condition, then, otherwise):
            return f"if {_in(condition)} then {_in(then)} else {_in(otherwise)}"
        case ListOf(items):
            return f"[{', '.join(map(_in, items))}]"
        case ObjectOf(entries):
            return f"{{{', '.join(f'{key}: {_in(value)}' for key, value in entries)}}}"
        case Filter(target, condition):
            return f"{_in(target)}[{_in(condition)}]"
        case Between(value, low, high):
            return f"{_in(value)} between {_in(low)} and {_in(high)}"
        case In(value, tests):
            return f"{_in(value)} in ({', '.join(map(_test, tests))})"
        case InstanceOf(value, wanted):
            return f"{_in(value)} instance of {_type(wanted)}"
        case Invocation(callee, positional, named):
            return f"{_in(callee)}({', '.join([*map(_in, positional), *(f'{key}: {_in(value)}' for key, value in named)])})"
    return _larger(node)


def _larger(node: Node) -> str:
    match node:
        case RangeOf(low, high, low_closed, high_closed) if low is not None and high is not None:
            return f"{'[' if low_closed else '('}{_in(low)}..{_in(high)}{']' if high_closed else ')'}"
        case RangeOf() | Equals():
            return _test(node)
        case For(iterations, result):
            return f"for {_iterations(iterations)} return {_in(result)}"
        case Quantified(quantifier, iterations, condition):
            return f"{quantifier} {_iterations(iterations)} satisfies {_in(condition)}"
        case FunctionOf(parameters, body):
            given = ", ".join(name if wanted is None else f"{name}: {_type(wanted)}" for name, wanted in parameters)
            return f"function({given}) {_in(body)}"
        case UnaryTests(tests, negated):
            text = ", ".join(map(_test, tests)) or "-"
            return f"not({text})" if negated else text
    raise TypeError(f"expected a node of FEEL, found {type(node).__name__}")


def _in(node: Node) -> str:
    return printed(node) if isinstance(node, (Name, ListOf, ObjectOf)) else f"({printed(node)})"


def _test(node: Node) -> str:
    match node:
        case RangeOf(None, high, _, closed) if high is not None:
            return f"<{'=' if closed else ''} {_in(high)}"
        case RangeOf(low, None, closed, _) if low is not None:
            return f">{'=' if closed else ''} {_in(low)}"
        case Equals(value, negated):
            return f"{'!=' if negated else '='} {_in(value)}"
    return printed(node) if isinstance(node, RangeOf) else _in(node)


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return '"{}"'.format(value.replace("\\", "\\\\").replace('"', '\\"'))
    if isinstance(value, bool) or value is None:
        return "null" if value is None else str(value).lower()
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def _iterations(iterations: tuple[Iteration, ...]) -> str:
    return ", ".join(f"{each.name} in {_in(each.domain)}" + (f"..{_in(each.until)}" if each.until else "") for each in iterations)


def _type(wanted: Type) -> str:
    if not wanted.parts and wanted.result is None:
        return wanted.name
    parts = ", ".join((f"{name}: " if name else "") + _type(part) for name, part in wanted.parts)
    return f"{wanted.name}<{parts}>" + (f" -> {_type(wanted.result)}" if wanted.result else "")
