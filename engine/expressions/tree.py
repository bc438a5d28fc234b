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


Node = Literal | Name | Member | Index | Call | Provided | Asked | Unary | Binary | Logical | Conditional | Template | ListOf | ObjectOf


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
