"""The syntax tree that every front end makes and `compile` turns into closures. Frozen, and free of behaviour."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Literal:
    value: Any  # None, bool, int, Decimal or str


@dataclass(frozen=True, slots=True)
class Name:
    """A variable."""

    name: str


@dataclass(frozen=True, slots=True)
class Member:
    """`target.key`, always a key of an object."""

    target: Node
    key: str


@dataclass(frozen=True, slots=True)
class Index:
    """`target[index]`: an item of a list by its number from 0, or a key of an object by a string."""

    target: Node
    index: Node


@dataclass(frozen=True, slots=True)
class Call:
    """`target.method(arguments)`, of the methods in `methods.py` and no others."""

    target: Node
    method: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Provided:
    """What the language itself has: a function, or what it knows of the case, of the table in `provided.py`."""

    name: str
    arguments: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """A variable that may be missing: its value or null, or `whether` it is there."""

    name: str
    whether: bool


@dataclass(frozen=True, slots=True)
class Unary:
    operator: str  # - ! empty
    operand: Node


@dataclass(frozen=True, slots=True)
class Binary:
    operator: str  # + - * / % += == != < <= > >=
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Logical:
    """`&&` and `||`: the right side is evaluated only if the left one does not decide."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Conditional:
    condition: Node
    then: Node
    otherwise: Node


@dataclass(frozen=True, slots=True)
class Template:
    """Text with embedded expressions: always a string."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class ListOf:
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class ObjectOf:
    entries: tuple[tuple[str, Node], ...]


# ---- of FEEL alone


@dataclass(frozen=True, slots=True)
class Feel:
    """What is below follows the rules of FEEL: null for what has no result, three truth values, one kind of number."""

    body: Node


@dataclass(frozen=True, slots=True)
class AsVariable:
    """The value as a variable of a process can hold it: dates stay, times and durations are their text."""

    body: Node


@dataclass(frozen=True, slots=True)
class AsCondition:
    """True or false, and an error that names a key that was read and is not there."""

    body: Node


@dataclass(frozen=True, slots=True)
class Filter:
    """`target[condition]`: the items for which the condition is true, or the one with that number, from 1."""

    target: Node
    condition: Node


@dataclass(frozen=True, slots=True)
class Between:
    value: Node
    low: Node
    high: Node


@dataclass(frozen=True, slots=True)
class RangeOf:
    """`[low..high]`, and `< high` and the like, where one end is None."""

    low: Node | None
    high: Node | None
    low_closed: bool
    high_closed: bool


@dataclass(frozen=True, slots=True)
class Equals:
    """`= value` and `!= value` as a test."""

    value: Node
    negated: bool


@dataclass(frozen=True, slots=True)
class In:
    """`value in tests`: true if one of them is."""

    value: Node
    tests: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class UnaryTests:
    """A cell of a decision table: what it says about `?`. Without tests it is true."""

    tests: tuple[Node, ...]
    negated: bool


@dataclass(frozen=True, slots=True)
class Iteration:
    """`name in domain`, or `name in domain..until`."""

    name: str
    domain: Node
    until: Node | None


@dataclass(frozen=True, slots=True)
class For:
    iterators: tuple[Iteration, ...]
    result: Node


@dataclass(frozen=True, slots=True)
class Quantified:
    """`some` and `every`."""

    quantifier: str
    iterators: tuple[Iteration, ...]
    condition: Node


@dataclass(frozen=True, slots=True)
class InstanceOf:
    value: Node
    type: Type


@dataclass(frozen=True, slots=True)
class FunctionOf:
    """`function(parameters) body`."""

    parameters: tuple[tuple[str, Type | None], ...]
    body: Node


@dataclass(frozen=True, slots=True)
class Invocation:
    """`callee(positional)` or `callee(name: named)`."""

    callee: Node
    positional: tuple[Node, ...]
    named: tuple[tuple[str, Node], ...]


@dataclass(frozen=True, slots=True)
class Type:
    """A type of FEEL by its name, with the types in its angle brackets: of items, of entries by their names, of parameters."""

    name: str
    parts: tuple[tuple[str, Type], ...] = ()
    result: Type | None = None


Node = (
    Literal
    | Name
    | Member
    | Index
    | Call
    | Provided
    | Asked
    | Unary
    | Binary
    | Logical
    | Conditional
    | Template
    | ListOf
    | ObjectOf
    | Feel
    | AsVariable
    | AsCondition
    | Filter
    | Between
    | RangeOf
    | Equals
    | In
    | UnaryTests
    | For
    | Quantified
    | InstanceOf
    | FunctionOf
    | Invocation
)


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly below, left to right."""
    match node:
        case Literal() | Name() | Asked():
            return ()
        case Member(target, _):
            return (target,)
        case Index(target, index):
            return (target, index)
        case Call(target, _, arguments):
            return (target, *arguments)
        case Provided(_, arguments):
            return arguments
        case Unary(_, operand):
            return (operand,)
        case Binary(_, left, right) | Logical(_, left, right):
            return (left, right)
        case Conditional(condition, then, otherwise):
            return (condition, then, otherwise)
        case Template(parts):
            return parts
        case ListOf(items):
            return items
        case ObjectOf(entries):
            return tuple(value for _, value in entries)
    return _children_of_feel(node)


def _children_of_feel(node: Node) -> tuple[Node, ...]:
    match node:
        case Feel(body) | AsVariable(body) | AsCondition(body) | FunctionOf(_, body):
            return (body,)
        case Filter(target, condition):
            return (target, condition)
        case Between(value, low, high):
            return (value, low, high)
        case RangeOf(start, end, _, _):
            return tuple(each for each in (start, end) if each is not None)
        case Equals(value, _) | InstanceOf(value, _):
            return (value,)
        case In(value, tests):
            return (value, *tests)
        case UnaryTests(tests, _):
            return tests
        case For(iterations, result) | Quantified(_, iterations, result):
            domains = ((each.domain, each.until) for each in iterations)
            return (*(each for pair in domains for each in pair if each is not None), result)
        case Invocation(callee, positional, named):
            return (callee, *positional, *(value for _, value in named))
    raise TypeError(f"expected a node of the tree, found a {type(node).__name__}")


def path_of(node: Node) -> str | None:
    """`order.customer` of a variable and its keys; None for anything else."""
    keys: list[str] = []
    while isinstance(node, Member):
        keys.append(node.key)
        node = node.target
    return ".".join(reversed([*keys, node.name])) if isinstance(node, Name) else None


def walk(root: Node) -> Iterator[tuple[Node, int]]:
    """Every node with its depth, the root being at 1. Iterative, because the tree may be deeper than the stack."""
    stack = [(root, 1)]
    while stack:
        node, depth = stack.pop()
        yield node, depth
        stack.extend((child, depth + 1) for child in reversed(children(node)))
