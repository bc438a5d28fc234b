"""Multiple events (10.5.1, 10.5.4): several event definitions in one event, of which any occurs, or (parallelMultiple) all must.

Several that are thrown are all thrown. Each definition is read by the parser of events that have it alone. A catching event then
has a part for each of them, which is a node of its own; what waits for a part refers to that node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from engine.bpmn import names
from engine.bpmn.context import Context, named
from engine.bpmn.definition import PART, Node
from engine.bpmn.names import Element
from engine.bpmn.support import TABLE, Supported, register

ANY, ALL = "multiple", "parallelMultiple"  # in the table of what is supported, in the place of an event definition
SHARED = ("attached_to", "interrupting", "fields", "initiator")  # attributes of the event, not of a definition
TOGETHER: Mapping[str, tuple[str, ...]] = {  # by tag: the event definitions that may stand beside others
    "startEvent": ("timer", "message", "signal", "conditional", "error", "escalation"),
    "boundaryEvent": ("timer", "message", "signal", "conditional", "error", "escalation"),
    "intermediateCatchEvent": ("timer", "message", "signal", "conditional"),
    "intermediateThrowEvent": ("message", "signal", "escalation"),
    "endEvent": ("message", "signal", "escalation", "error", "terminate"),
}
MAX_PARTS = 100  # each is read with the others left out
THROWS = ("intermediateThrowEvent", "endEvent")
ENDS = ("error", "terminate")  # what an end event may do last
THROWN = ("error", "escalation")  # to whoever catches them; they cannot be waited for together with others


def register_all() -> None:
    """After all others: a multiple event is of the kind that its event definitions make alone."""
    for tag, together in TOGETHER.items():
        alone = next(row for each in together if (row := TABLE.get((tag, _definition(each)))) is not None)
        for event in (ANY,) if tag in THROWS else (ANY, ALL):
            register(tag, Supported(alone.kind, alone.role, parse), event=event)


def row_of(event: Element, definitions: Sequence[Element], context: Context) -> Supported | None:
    """The row of an event with several definitions; None, and a problem, where they do not go together."""
    tag = names.local(event)
    if len(definitions) > MAX_PARTS:
        context.problem(event, f"{named(event)} has {len(definitions):,} event definitions", f"at most {MAX_PARTS}")
        return None
    parallel = _is_parallel(event)
    allowed = [name for each in TOGETHER.get(tag, ()) if (tag, name := _definition(each)) in TABLE]
    for name in map(names.local, definitions):
        if name not in allowed:
            what = f"{named(event)} has several event definitions, one of them {_a(name)}"
            context.problem(event, what, f"several of {', '.join(allowed)}" if allowed else "one event definition")
            return None
        if parallel and name in map(_definition, THROWN):
            what = f"{named(event)} waits for all of several events, one of them {_a(name)}"
            context.problem(event, what, "parallelMultiple false: it ends what the others would wait at")
            return None
    if sum(names.local(each) in map(_definition, ENDS) for each in definitions) > 1:
        context.problem(event, f"{named(event)} throws more than one error, or an error and terminates", "at most one of them")
        return None
    return TABLE[tag, ALL if parallel and tag not in THROWS else ANY]


def _definition(name: str) -> str:
    return f"{name}EventDefinition"


def _is_parallel(event: Element) -> bool:
    return names.flag(event.get("parallelMultiple"), default=False)


def _a(name: str) -> str:
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def parts_of(node: Node) -> tuple[Node, ...]:
    """The parts of an event that catches, as nodes; none if it is not multiple."""
    if not hasattr(node.config, "parallel"):
        return ()
    return tuple(
        Node(f"{node.id}{PART}{number}", "event_part", name=node.name or node.id, parent=node.parent, line=node.line, config=config)
        for number, config in enumerate(getattr(node.config, "parts", ()), start=1)
    )


def parse(event: Element, context: Context) -> Any:
    """The configuration of the event: what its attributes say, and a part for each definition."""
    definitions = [child for child in names.elements(event) if names.local(child).endswith("EventDefinition")]
    parts = []
    for definition in definitions:
        with _alone(event, definition, definitions):
            parts.append(TABLE[names.local(event), names.local(definition)].parse(event, context))
    shared = {name: getattr(parts[0], name) for name in SHARED if hasattr(parts[0], name)}
    if names.local(event) in THROWS:
        return type(parts[0])(**shared, parts=tuple(parts))
    parallel = _is_parallel(event)
    return type(parts[0])(**shared, parts=tuple(replace(part, parallel=parallel) for part in parts), parallel=parallel)


@contextmanager
def _alone(event: Element, definition: Element, definitions: Sequence[Element]) -> Iterator[None]:
    """The event as if this were its only definition."""
    children = list(event)
    for each in definitions:
        if each is not definition:
            event.remove(each)
    try:
        yield
    finally:
        event[:] = children
