"""What the core must be told of definitions other than that of the triggering instance: those of callers, and what calls name.

A call is resolved outside: the core raises `NeedsDefinition` or `NeedsDecision`, the command finds the definition, or why there is
none, and asks again with that in `Known`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from uuid import UUID

from engine.bpmn.definition import ProcessDefinition
from engine.dmn.definition import DecisionGraph
from engine.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Call:
    """What a call activity names: a process key, and which of its versions.

    `binding`: latest, version (then `version` says which), tag (the newest that has the `tag`), or deployment (the newest one when the
    definition `by` was deployed).
    """

    key: str
    binding: str = "latest"
    version: int | None = None
    by: UUID | None = None
    tag: str | None = None


@dataclass(frozen=True, slots=True)
class Called:
    """The definition that a call means."""

    id: UUID
    definition: ProcessDefinition


@dataclass(frozen=True, slots=True)
class NotCallable:
    """Why a call cannot begin now; it becomes an incident at the call activity."""

    why: str


@dataclass(frozen=True, slots=True)
class DecisionCall:
    """What a business rule task names: the key of a decision, and which of its versions.

    `binding`: latest, version (then `version` says which), tag (the newest that has the `tag`), or deployment (the newest one when
    the definition `by` was deployed).
    """

    key: str
    binding: str = "latest"
    version: int | None = None
    tag: str | None = None
    by: UUID | None = None


@dataclass(frozen=True, slots=True)
class Decidable:
    """The decision that a call means. `members`: id and version of each decision of its file, by key."""

    key: str
    graph: DecisionGraph
    members: Mapping[str, tuple[UUID, int]]


@dataclass(frozen=True, slots=True)
class NotDecidable:
    """Why there is no such decision now; it becomes an incident at the task."""

    why: str


@dataclass(frozen=True, slots=True)
class Known:
    """`definitions`: of the instances in the snapshot, by id; `calls` and `decisions`: what each call means."""

    definitions: Mapping[UUID, ProcessDefinition] = field(default_factory=dict)
    calls: Mapping[Call, Called | NotCallable] = field(default_factory=dict)
    decisions: Mapping[DecisionCall, Decidable | NotDecidable] = field(default_factory=dict)


NOTHING_KNOWN = Known()


class NeedsDefinition(Exception):
    """A process is to be called that is not in `Known`. The command resolves `call` and asks again."""

    def __init__(self, call: Call) -> None:
        super().__init__(f"a call of {call.key}: which definition that is was not said")
        self.call = call


class NeedsDecision(Exception):
    """A decision is to be made that is not in `Known`. The command resolves the calls, it and those that may follow, and asks again."""

    def __init__(self, call: DecisionCall, ahead: Iterable[DecisionCall] = ()) -> None:
        super().__init__(f"a call of the decision {call.key}: which version that is was not said")
        self.calls = tuple(dict.fromkeys([call, *ahead]))
