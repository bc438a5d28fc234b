"""THE table of what is supported: (tag, event definition) -> kind and parser. What is not in it is refused by name.

Built-in parsers lie in `elements/<kind>.py`. A new element is a file that calls `register`; nothing else here changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from engine.bpmn.context import Context
from engine.bpmn.names import Element

Role = Literal["start", "end", "catch", "throw", "boundary", "activity", "gateway"]
Parser = Callable[[Element, Context], Any]  # -> the config of the node; problems go to the context


@dataclass(frozen=True, slots=True)
class Supported:
    """One row of the table. `role` decides the structural checks."""

    kind: str
    role: Role
    parse: Parser
    conditional: bool = False  # its outgoing flows may carry conditions, and one may be the default
    container: bool = False  # it has flow elements of its own
    children: frozenset[str] = frozenset()  # BPMN children that its parser reads, besides COMMON_CHILDREN
    joins: bool = True  # more than one incoming flow is meant
    by_event: str | None = None  # the kind that it is with triggeredByEvent

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of node that elements of this row become."""
        return frozenset({self.kind} if self.by_event is None else {self.kind, self.by_event})

    @property
    def activity(self) -> bool:
        """Whether boundary events may be attached."""
        return self.role == "activity"


TABLE: dict[tuple[str, str | None], Supported] = {}


def register(tag: str, supported: Supported, *, event: str | None = None) -> None:
    """Add a row. `tag` is a local name of BPMN, or {namespace}name; `event` the tag of the one event definition."""
    if (tag, event) in TABLE:
        raise ValueError(f"{tag} with {event or 'no event definition'} is in the table already, as {TABLE[tag, event].kind}")
    TABLE[tag, event] = supported


@contextmanager
def registered(tag: str, supported: Supported, *, event: str | None = None) -> Iterator[None]:
    """The row is in the table while the block runs."""
    register(tag, supported, event=event)
    try:
        yield
    finally:
        del TABLE[tag, event]


# ---- beside the table

COMMON_CHILDREN = frozenset({"incoming", "outgoing", "documentation", "extensionElements"})

# Drawn or descriptive, without a meaning for the run. Nothing is said about them.
IGNORED = frozenset(
    {
        "documentation",
        "extensionElements",
        "laneSet",
        "textAnnotation",
        "association",
        "group",
        "category",
        "dataObject",
        "dataObjectReference",
        "dataStoreReference",
        "auditing",
        "monitoring",
        "correlationSubscription",  # reported as not read: correlation is by name and key
    }
)

# Read past with a warning: the process runs on variables instead.
DATA = frozenset(
    {"ioSpecification", "dataInputAssociation", "dataOutputAssociation", "property", "dataInput", "dataOutput", "inputSet", "outputSet"}
)

# Children of activities that change how often they run (engine.bpmn.loops); refused on everything else.
LOOPS = frozenset({"multiInstanceLoopCharacteristics", "standardLoopCharacteristics"})

# Children of definitions. Those that executable processes refer to are looked up by their ids.
ROOT_ELEMENTS = frozenset(
    {
        "process",
        "collaboration",
        "message",
        "error",
        "signal",
        "escalation",
        "itemDefinition",
        "interface",
        "dataStore",
        "resource",
        "category",
        "import",
        "extension",
        "extensionElements",
        "relationship",
        "documentation",
        "endPoint",
        "partnerEntity",
        "partnerRole",
        "correlationProperty",
        "globalTask",
        "globalUserTask",
        "globalManualTask",
        "globalScriptTask",
        "globalBusinessRuleTask",
        "choreography",
        "globalChoreographyTask",
        "conversation",
        "globalConversation",
        "eventDefinition",
        "cancelEventDefinition",
        "compensateEventDefinition",
        "conditionalEventDefinition",
        "errorEventDefinition",
        "escalationEventDefinition",
        "linkEventDefinition",
        "messageEventDefinition",
        "signalEventDefinition",
        "terminateEventDefinition",
        "timerEventDefinition",
    }
)

# Of these, what is drawn beside processes, and never run.
DRAWN = ("collaboration", "choreography", "globalChoreographyTask", "conversation", "globalConversation")

# What to do instead, where there is something to say; other elements get the general sentence.
INSTEAD = {
    "potentialOwner": "candidateUsers and candidateGroups",
    "humanPerformer": "assignee",
}
