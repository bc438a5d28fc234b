"""What starts a process by itself: its start events, as a deployment would write them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from engine.bpmn.definition import ProcessDefinition
from engine.core.reading import as_text


@dataclass(frozen=True, slots=True)
class Deployed:
    """A process of the house, in its first and only version."""

    id: UUID
    file: str
    definition: ProcessDefinition


@dataclass(frozen=True, slots=True)
class Start:
    """A start event that a message or signal (`what`) of this name triggers."""

    process: Deployed
    element_id: str
    what: str
    name: str


def starts_of(process: Deployed) -> Iterator[Start]:
    """By event, or by part of a multiple one. Names see no variables."""
    for what in ("message", "signal"):
        for element_id, event in events_of(process.definition, what):
            yield Start(process, element_id, what, as_text(event.name.evaluate({})))


def events_of(definition: ProcessDefinition, what: str) -> Iterator[tuple[str, Any]]:
    """The start events of this kind (timer, message, signal), each with its configuration."""
    for key in definition.starts.get(None, ()):
        for part in definition.parts.get(key, (key,)):
            config = getattr(definition.nodes[part].config, what, None)
            if config is not None:
                yield part, config
