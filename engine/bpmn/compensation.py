"""Compensation handlers (BPMN 2.0.2, 10.7 and 13.5.5): which activities can be compensated and by what, and the rules of it.

Associations lead from compensation boundary events to handlers; what else an association connects is drawn only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from engine.bpmn import names
from engine.bpmn.context import named
from engine.bpmn.definition import BoundaryConfig, CompensateConfig, EndConfig, Node, StartConfig, Undo
from engine.bpmn.names import BPMN, Element

if TYPE_CHECKING:
    from engine.bpmn.structure import Structure

EVENT_SUBPROCESS, TRANSACTION = "event_subprocess", "transaction"
HANDLER = 'an association to one activity of the same scope with isForCompensation="true"'


def associations(process: Element) -> list[tuple[str, str]]:
    """Source and target of every association of a process, in document order."""
    found = process.iter(f"{{{BPMN}}}association")
    return [(names.reference(each.get("sourceRef")) or "", names.reference(each.get("targetRef")) or "") for each in found]


def compensable(nodes: Mapping[str, Node], starts: Mapping[str | None, tuple[str, ...]], drawn: list[tuple[str, str]]) -> dict[str, Undo]:
    """The activities of which completed executions are kept, each with what compensates it. Empty for most processes."""
    handlers = {source: target for source, target in drawn if target in nodes and nodes[target].for_compensation}
    found: dict[str, Undo] = {}
    for key, node in nodes.items():
        if isinstance(node.config, BoundaryConfig) and node.config.compensate and key in handlers:
            if node.config.attached_to not in nodes:  # refused elsewhere, by name
                continue
            found[node.config.attached_to] = Undo(key, handlers[key])
        elif starts_by_compensation(nodes, starts, key) and node.parent is not None:
            found.setdefault(node.parent, Undo(None, key))
    for key in list(found):
        _mark_around(nodes, starts, key, found)
    return {key: undo for key, undo in found.items() if not nodes[key].for_compensation}


def _mark_around(nodes: Mapping[str, Node], starts: Mapping[str | None, tuple[str, ...]], key: str, found: dict[str, Undo]) -> None:
    """What lies around a compensable activity is compensated by compensating what it holds, unless it has a handler of its own."""
    around = nodes[key].parent
    while around is not None and not nodes[around].for_compensation and not starts_by_compensation(nodes, starts, around):
        found.setdefault(around, Undo())
        around = nodes[around].parent


def starts_by_compensation(nodes: Mapping[str, Node], starts: Mapping[str | None, tuple[str, ...]], key: str) -> bool:
    """Whether this is a compensation event subprocess."""
    configs = (nodes[start].config for start in starts.get(key, ())) if nodes[key].kind == EVENT_SUBPROCESS else ()
    return any(isinstance(config, StartConfig) and config.compensate for config in configs)


# ---- rules


def check(structure: Structure) -> None:
    """Every rule of compensation and of transactions."""
    for rule in (_check_handlers, _check_event_subprocesses, _check_throws, _check_cancels):
        rule(structure)


def _check_handlers(structure: Structure) -> None:
    """10.7 and 13.5.5.1: a compensation boundary event leads to one handler, which nothing else leads to."""
    drawn = associations(structure.process)
    led_to: set[str] = set()
    for key, node in structure.nodes.items():
        if isinstance(node.config, BoundaryConfig) and node.config.compensate:
            led_to.update(_check_boundary(structure, node, [target for source, target in drawn if source == key]))
    for key, node in structure.nodes.items():
        if not node.for_compensation or node.kind == EVENT_SUBPROCESS:
            continue
        flows = (*node.incoming, *node.outgoing)
        if flows:
            what = f"is for compensation, and the flow {flows[0]!r} leads {'to' if node.incoming else 'from'} it"
            structure.problem(key, what, "no flow: compensation boundary events lead to it")
        elif key not in led_to:
            why = "an association from a compensation boundary event of the same scope"
            what = "is for compensation, and no compensation boundary event leads to it"
            if structure.context.by_a_vendor:  # who run such a process, and never this activity
                structure.context.warn(structure.sources[key], f"{named(structure.sources[key])} {what}", f"{why}; it never runs")
            else:
                structure.problem(key, what, why)
        if getattr(node.config, "instantiate", False):
            structure.problem(key, "is for compensation and starts instances", "instantiate false")


def _check_boundary(structure: Structure, event: Node, targets: list[str]) -> list[str]:
    """The handlers that it leads to: one, else problems."""
    host = structure.nodes.get(event.config.attached_to)
    if host is not None and host.for_compensation:
        structure.problem(event.id, f"compensates {host.id!r}, which is for compensation itself", "an activity of the normal flow")
    if event.outgoing:
        structure.problem(
            event.id, f"is a compensation boundary event, and the flow {event.outgoing[0]!r} leaves it", f"no flow: {HANDLER}"
        )
    handlers = []
    for target in targets:
        node = structure.nodes.get(target)
        if node is None or not structure.table[target].activity:
            continue  # a text, or a problem that is named already
        if not node.for_compensation:
            structure.problem(event.id, f"leads to {target!r}, which is not for compensation", HANDLER)
        elif node.kind == EVENT_SUBPROCESS:
            structure.problem(event.id, f"leads to the event subprocess {target!r}", HANDLER)
        elif node.parent != event.parent:
            structure.problem(event.id, f"leads to {target!r} in another scope", HANDLER)
        handlers.append(target)
    refused = any(target in structure.known and target not in structure.nodes for target in targets)
    if len(handlers) != 1 and not (refused and not handlers):
        structure.problem(event.id, f"is a compensation boundary event with {len(handlers)} handlers", HANDLER)
    return handlers


def _check_event_subprocesses(structure: Structure) -> None:
    """10.7: a compensation event subprocess belongs to a subprocess, which has no other handler."""
    first: dict[str, str] = {}
    events = ((key, node.config) for key, node in structure.nodes.items())
    boundaries = {config.attached_to: key for key, config in events if isinstance(config, BoundaryConfig) and config.compensate}
    for key, node in structure.nodes.items():
        if not starts_by_compensation(structure.nodes, structure.starts, key):
            if node.for_compensation and node.kind == EVENT_SUBPROCESS:
                what = "is an event subprocess for compensation without a compensation start event"
                structure.problem(key, what, "a compensation start event, or isForCompensation false")
            continue
        for start in structure.starts[key]:
            if not structure.nodes[start].config.interrupting:
                what = "starts an event subprocess by compensation and does not interrupt"
                structure.problem(start, what, "isInterrupting true: what it compensates has completed")
        if node.parent is None:
            what = "is a compensation event subprocess of the process itself"
            structure.problem(key, what, "a subprocess around it: a process that has completed is not compensated")
        elif (other := first.setdefault(node.parent, key)) != key:
            structure.problem(key, f"is a second compensation event subprocess, besides {other!r}", "one for each subprocess")
        elif node.parent in boundaries:
            what = f"compensates {node.parent!r}, as the boundary event {boundaries[node.parent]!r} does"
            structure.problem(key, what, "one handler for each activity")


def _check_throws(structure: Structure) -> None:
    """10.5.5: what a compensation event names is visible from it, and can be compensated."""
    found = compensable(structure.nodes, structure.starts, associations(structure.process))
    for key, node in structure.nodes.items():
        config = getattr(node.config, "compensate", None)
        if not isinstance(config, CompensateConfig):
            continue
        visible = _visible(structure.nodes, node.parent)
        if config.activity is None:
            if not any(structure.nodes[each].parent in visible for each in found):
                structure.context.warn(
                    structure.sources[key],
                    f"{named(structure.sources[key])} compensates nothing: no activity that it sees can be compensated",
                    "an activity of the same scope with a compensation boundary event, or a subprocess with one inside",
                )
        elif config.activity not in structure.nodes:
            if config.activity not in structure.known:
                structure.problem(key, f"compensates {config.activity!r}, which does not exist", "activityRef: the id of an activity")
        elif not structure.table[config.activity].activity:
            structure.problem(key, f"compensates {named(structure.sources[config.activity])}", "activityRef: the id of an activity")
        elif structure.nodes[config.activity].parent not in visible:
            what = f"compensates {config.activity!r}, which is not visible from it"
            structure.problem(
                key, what, "an activity of the same scope, or of the scope around the event subprocess that it is in (10.5.4)"
            )
        elif config.activity not in found:
            what = f"compensates {config.activity!r}, which has no compensation handler"
            structure.problem(key, what, "a compensation boundary event on it, or, in a subprocess, something that has one")


def _visible(nodes: Mapping[str, Node], scope: str | None) -> list[str | None]:
    """The scopes whose activities an event sees: its own, and those around the event subprocesses that it is in."""
    found = [scope]
    while scope is not None and nodes[scope].kind == EVENT_SUBPROCESS:
        scope = nodes[scope].parent
        found.append(scope)
    return found


def _check_cancels(structure: Structure) -> None:
    """10.5.3 and 10.5.4: cancel end events inside transactions, cancel boundary events on them."""
    catching: dict[str, str] = {}
    for key, node in structure.nodes.items():
        if not (isinstance(node.config, BoundaryConfig) and node.config.cancel):
            continue
        host = structure.nodes.get(node.config.attached_to)
        if host is not None and host.kind != TRANSACTION:
            structure.problem(key, f"catches cancel at {named(structure.sources[host.id])}", "attachedToRef: the id of a transaction")
        if (other := catching.setdefault(node.config.attached_to, key)) != key:
            structure.problem(key, f"catches cancel like {other!r} on the same transaction", "one cancel boundary event")
    for key, node in structure.nodes.items():
        if not (isinstance(node.config, EndConfig) and node.config.cancel):
            continue
        around = node.parent
        while around is not None and structure.nodes[around].kind != TRANSACTION:
            around = structure.nodes[around].parent
        if around is None:
            structure.problem(key, "throws cancel outside of a transaction", "a transaction around it")
        elif around not in catching:
            structure.problem(
                key, f"cancels {around!r}, which has no cancel boundary event", "one: that is how a cancelled transaction is left"
            )
        elif structure.nodes[around].loop is not None:
            structure.problem(
                key, f"cancels {around!r}, which has loop characteristics", "a transaction that runs once, in a subprocess that is looped"
            )
