"""What the rules of structure look at: one process that is read, with where everything in it came from."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass

from engine.bpmn.context import Context, named
from engine.bpmn.definition import Flow, Node
from engine.bpmn.names import Element
from engine.bpmn.support import Supported


@dataclass(frozen=True, slots=True)
class Structure:
    """One process with everything that the checks look at."""

    process: Element
    nodes: Mapping[str, Node]
    flows: Mapping[str, Flow]
    sources: Mapping[str, Element]
    table: Mapping[str, Supported]
    starts: Mapping[str | None, tuple[str, ...]]
    links: Mapping[str, str]  # link throw event -> link catch event
    drawn: Mapping[str, int]  # flows that leave an id, those with problems included
    known: Container[str]  # every id of the file's processes, those of refused elements included
    context: Context

    def problem(self, key: str, what: str, why: str) -> None:
        element = self.sources[key]
        self.context.problem(element, f"{named(element)} {what}", why)
