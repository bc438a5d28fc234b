"""Variables that expressions read under a name that nothing sets, while nearly the same name is set.

A process may be started with any variable, and a handler may return any. So a name that nothing in the model sets says nothing by
itself; that it is one letter away from one that is set does.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, fields, is_dataclass
from difflib import get_close_matches
from typing import Any

from engine.bpmn.definition import DataOutput, FormField, Node, ProcessDefinition

NEAR = 0.84  # of difflib's ratio: one letter in six
SHORTEST = 4  # `a` and `b` are near, too
ALWAYS = frozenset({"now", "businessKey", "initiator", "loopCounter"})
_TARGETS = ("result_variable", "code_variable", "message_variable", "initiator", "output", "element", "index")
_PAIRS = ("inputs", "outputs", "results", "locals", "variables")


@dataclass(frozen=True, slots=True)
class Misspelled:
    element_id: str
    read: str
    set: str


def misspelled(definition: ProcessDefinition) -> Iterator[Misspelled]:
    """In the order of elements."""
    known = ALWAYS.union(*(_set_by(node) for node in definition.nodes.values()))
    reading = [*definition.nodes.items(), *definition.flows.items()]
    for element_id, element in reading:
        for name in sorted(names_read_in(element) - known):
            near = get_close_matches(name, sorted(each for each in known - ALWAYS if len(each) >= SHORTEST), 1, NEAR)
            if near and len(name) >= SHORTEST and not _plural(name, near[0]):
                yield Misspelled(element_id, name, near[0])


def _plural(one: str, other: str) -> bool:
    """`positions` and `position`: a loop reads the one and sets the other."""
    return one.startswith(other) or other.startswith(one)


def names_read_in(part: Any) -> Set[str]:
    """The names in every expression of an element, however deep in its configuration."""
    if isinstance(found := getattr(part, "names", None), frozenset):
        return found
    if isinstance(part, tuple):
        return frozenset[str]().union(*(names_read_in(each) for each in part))
    if is_dataclass(part):
        return frozenset[str]().union(*(names_read_in(getattr(part, field.name)) for field in fields(part)))
    return frozenset()


def _set_by(node: Node) -> Set[str]:
    return frozenset(_targets(node)) | frozenset(node.locals)


def _targets(part: Any) -> Iterator[str]:
    if isinstance(part, tuple):
        for each in part:
            yield from _targets(each)
        return
    if not is_dataclass(part) or hasattr(part, "names"):
        return
    if isinstance(part, FormField):
        yield part.id
    if isinstance(part, DataOutput):
        yield part.target
    for field in fields(part):
        value = getattr(part, field.name)
        if field.name in _TARGETS and isinstance(value, str) and value:
            yield value
        elif field.name in _PAIRS and isinstance(value, tuple):
            yield from (pair[0] for pair in value if isinstance(pair, tuple) and pair and isinstance(pair[0], str))
        else:
            yield from _targets(value)
