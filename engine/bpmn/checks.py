"""Rules of structure over a process that is read: which flows, starts, gateways and boundary events fit together.

Each check names every violation with element and line. Clauses are those of BPMN 2.0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from engine.bpmn import ad_hoc, compensation, names
from engine.bpmn.context import named
from engine.bpmn.definition import (
    BoundaryConfig,
    CallConfig,
    CatchConfig,
    Flow,
    MessageConfig,
    MultiInstance,
    Node,
    ReceiveTaskConfig,
    ScriptConfig,
    ServiceTaskConfig,
    StartConfig,
    ThrowConfig,
    events_in,
    occurs,
)
from engine.bpmn.event_checks import event_gateways
from engine.bpmn.names import Element
from engine.bpmn.structure import Structure

EVENT_SUBPROCESS = "event_subprocess"


def check(structure: Structure) -> None:
    """Every rule, over every element."""
    for rule in RULES:
        rule(structure)


def _starts(structure: Structure) -> None:
    """10.5.2: a process has start events, at most one of them none; a subprocess has exactly one, and that is none."""
    for scope, starts in structure.starts.items():
        if scope is not None and structure.nodes[scope].kind in (EVENT_SUBPROCESS, ad_hoc.KIND):
            continue
        place = structure.process if scope is None else structure.sources[scope]
        plain = [key for key in starts if _is_none_start(structure.nodes[key])]
        if scope is not None and not any(_starts_something(structure, key) for key in starts):
            if not starts and not _has_refused_start(place):
                why = "a start event, or an activity; it is done at once"
                structure.context.warn(place, f"{named(place)} holds nothing that begins", why)
            continue  # what no flow leads to begins: engine.bpmn.implicit
        if not starts:
            if not _has_refused_start(place):
                structure.context.problem(place, f"{named(place)} has no start event", "a start event")
            continue
        for key in plain[1:]:
            structure.problem(key, f"is a second none start event, besides {plain[0]!r}", "one none start event in each scope")
        for key in starts:
            config = structure.nodes[key].config
            if scope is not None and key not in plain:
                structure.problem(
                    key, "starts an embedded subprocess by an event", "a none start event: the subprocess starts when it is entered"
                )
            elif isinstance(config, StartConfig) and any(each.error or each.escalation or each.compensate for each in events_in(config)):
                what = f"starts a process by {'compensation' if config.compensate else 'an error or escalation'}"
                structure.problem(key, what, "an event subprocess around it: only they start so")
            elif isinstance(config, StartConfig) and config.parallel:
                why = "an event-based gateway before it that starts instances, with the type Parallel"
                structure.problem(key, "starts a process by all of several events", why)
            elif isinstance(config, StartConfig) and any(each.condition for each in events_in(config)):
                why = "an event subprocess around it, or a message or timer: before a process starts there are no variables to look at"
                structure.problem(key, "starts a process by a condition", why)


def _starts_something(structure: Structure, key: str) -> bool:
    return structure.table[key].role == "start" or getattr(structure.nodes[key].config, "instantiate", False)


def _is_none_start(node: Node) -> bool:
    """One whose event could not be read counts as none: it has a problem of its own."""
    config = node.config
    thrown = (each.error or each.escalation or each.compensate for each in events_in(config)) if isinstance(config, StartConfig) else ()
    triggered = isinstance(config, StartConfig) and (occurs(config) or any(thrown))
    return node.kind == "start_event" and not triggered


def _event_subprocesses(structure: Structure) -> None:
    """10.3.5 and 13.5.4: an event subprocess has one start event, which has an event; no flows and no boundary events lead to it."""
    for key, node in structure.nodes.items():
        if node.kind != EVENT_SUBPROCESS:
            continue
        if node.loop is not None:
            structure.problem(key, "is an event subprocess with loop characteristics", "none: each occurrence of its event begins it")
        starts = structure.starts.get(key, ())
        if len(starts) != 1 and (starts or not _has_refused_start(structure.sources[key])):
            structure.problem(key, f"is an event subprocess with {len(starts)} start events", "one, with an event")
        for start in starts:
            config = structure.nodes[start].config
            if next(_event_definitions(structure.sources[start]), None) is None:
                why = "a timer, message, signal, condition, error, escalation or compensation"
                structure.problem(start, "starts an event subprocess without an event", why)
            elif isinstance(config, StartConfig) and any(each.error for each in events_in(config)) and not config.interrupting:
                what = "starts an event subprocess by an error and does not interrupt"
                structure.problem(start, what, "isInterrupting true: errors always interrupt")
        for flow in (*node.incoming, *node.outgoing):
            structure.problem(flow, f"leads to or from the event subprocess {key!r}", "no flow: its event starts it")
    _check_same_start(structure)


def _event_definitions(event: Element) -> Iterator[Element]:
    return (child for child in names.elements(event) if names.local(child).endswith("EventDefinition"))


def _check_same_start(structure: Structure) -> None:
    """Two event subprocesses of one scope for the same error or escalation: which one gets it would be chance."""
    scopes: dict[str | None, list[str]] = {}
    for key, node in structure.nodes.items():
        if node.kind == EVENT_SUBPROCESS:
            scopes.setdefault(node.parent, []).extend(structure.starts.get(key, ()))
    for starts in scopes.values():
        _name_same_codes(structure, starts, "in the same scope", "one event subprocess for each of them")


def _has_refused_start(place: Element) -> bool:
    """A start event that was refused is named already; its absence need not be."""
    return next(names.bpmn(place, "startEvent"), None) is not None


def _ends_of_flows(structure: Structure) -> None:
    """8.3.13: what has no incoming flows, and what has no outgoing ones."""
    for flow in structure.flows.values():
        target, source = structure.table[flow.target], structure.table[flow.source]
        if target.role == "start":
            structure.problem(flow.id, f"leads to the start event {flow.target!r}", "no flow into a start event")
        if target.role == "boundary":
            structure.problem(flow.id, f"leads to the boundary event {flow.target!r}", "no flow into a boundary event")
        if source.role == "end":
            structure.problem(flow.id, f"leaves the end event {flow.source!r}", "no flow out of an end event")


def _listed_flows(structure: Structure) -> None:
    """The incoming and outgoing children of a node repeat what flows say; they must not say otherwise."""
    for key, node in structure.nodes.items():
        for tag, flows in (("incoming", node.incoming), ("outgoing", node.outgoing)):
            for child in names.bpmn(structure.sources[key], tag):
                listed = names.reference(names.text(child))
                flow = structure.flows.get(listed or "")
                if listed is not None and listed not in structure.known:
                    structure.problem(key, f"lists {listed!r} as {tag}, which does not exist", "the id of a sequenceFlow of this process")
                elif flow is not None and listed not in flows:
                    structure.problem(
                        key,
                        f"lists {listed!r} as {tag}, which {_leads(flow)}",
                        f"a flow that {'enters' if tag == 'incoming' else 'leaves'} it",
                    )


def _leads(flow: Flow) -> str:
    return f"leads from {flow.source!r} to {flow.target!r}"


def _conditions(structure: Structure) -> None:
    """8.3.13, 10.6.2 and 10.6.3: who may have conditional flows, and who must."""
    for key, node in structure.nodes.items():
        supported = structure.table[key]
        for flow in (structure.flows[each] for each in node.outgoing):
            has_condition = _has_condition(structure.sources[flow.id])
            if has_condition and not supported.conditional:
                structure.problem(
                    flow.id,
                    f"has a condition and leaves {named(structure.sources[key])}",
                    "a condition only after an exclusive, inclusive or complex gateway, or an activity",
                )
            if has_condition and node.default == flow.id:
                structure.problem(
                    flow.id, f"has a condition and is the default flow of {key!r}", "no condition: it is taken when no other flow is"
                )
        if node.default is not None and not supported.conditional:
            structure.problem(
                key,
                f"has the default flow {node.default!r}",
                "a default flow only at an exclusive, inclusive or complex gateway, or an activity",
            )


def _has_condition(flow: Element) -> bool:
    """Also one that could not be read: that is named already."""
    return next(names.bpmn(flow, "conditionExpression"), None) is not None


def _boundaries(structure: Structure) -> None:
    """10.5.4: a boundary event is attached to an activity of its own scope."""
    for key, node in structure.nodes.items():
        if not isinstance(node.config, BoundaryConfig):
            continue
        host = node.config.attached_to
        if not host:
            structure.problem(key, "is attached to nothing", "attachedToRef: the id of an activity")
        elif host not in structure.nodes:
            if host not in structure.known:  # else it was refused, and is named already
                structure.problem(
                    key, f"is attached to {host!r}, which does not exist", "attachedToRef: the id of an activity of this process"
                )
        elif not structure.table[host].activity or structure.nodes[host].kind == EVENT_SUBPROCESS:
            structure.problem(key, f"is attached to {named(structure.sources[host])}", "attachedToRef: the id of an activity")
        elif structure.nodes[host].parent != node.parent:
            structure.problem(key, f"is attached to {host!r} in another scope", "an activity of the same process or subprocess")
    for activity in structure.nodes.values():
        _name_same_codes(structure, activity.attached, "on the same activity", "one boundary event for each of them")


def _name_same_codes(structure: Structure, events: Iterable[str], where: str, why: str) -> None:
    """Two events that catch the same error or escalation: which one gets it would be chance."""
    caught: dict[tuple[str, str | None], str] = {}
    for key in events:
        parts = events_in(structure.nodes[key].config)
        for what, config in ((what, getattr(each, what, None)) for each in parts for what in ("error", "escalation")):
            if config is None:
                continue
            other = caught.setdefault((what, config.code), key)
            if other != key:
                said = f"every {what}" if config.code is None else f"the {what} {config.code!r}"
                structure.problem(key, f"catches {said} like {other!r} {where}", why)


def _links(structure: Structure) -> None:
    """10.5.5: a link leads from one or more throws to the one catch of its name in the same scope, and not by flows."""
    catches: dict[tuple[str | None, str], str] = {}
    for key, node in structure.nodes.items():
        if isinstance(node.config, CatchConfig) and node.config.link is not None:
            other = catches.setdefault((node.parent, node.config.link), key)
            if other != key:
                structure.problem(key, f"catches the link {node.config.link!r} like {other!r}", "one catch for each link of a scope")
            elif key not in structure.links.values():
                what = f"catches the link {node.config.link!r}, which nothing throws in its scope"
                structure.problem(key, what, "an intermediateThrowEvent with a linkEventDefinition of that name beside it")
            if node.incoming:
                structure.problem(key, "catches a link and has an incoming flow", "none: its throws lead to it")
        if isinstance(node.config, ThrowConfig) and node.config.link is not None:
            if key not in structure.links:
                what = f"throws the link {node.config.link!r}, which nothing catches in its scope"
                structure.problem(key, what, "an intermediateCatchEvent with a linkEventDefinition of that name beside it")
            if node.outgoing:
                structure.problem(key, "throws a link and has an outgoing flow", "none: it goes on at the catch")


DIRECTIONS: Mapping[
    str, tuple[Callable[[int, int], bool], str]
] = {  # gatewayDirection: what is wrong with (flows in, flows out); drawn flows count, those with problems included
    "Diverging": (lambda flows_in, flows_out: flows_in > 1 or flows_out < 2, "at most one flow in and several out"),
    "Converging": (lambda flows_in, flows_out: flows_in < 2 or flows_out > 1, "several flows in and at most one out"),
    "Mixed": (lambda flows_in, flows_out: flows_in < 2 or flows_out < 2, "several flows in and several out"),
}


def _gateway_directions(structure: Structure) -> None:
    """10.6.1: the direction of a gateway, where it has one, is that of its flows. The execution does not depend on it."""
    for key, node in structure.nodes.items():
        direction = structure.sources[key].get("gatewayDirection", "Unspecified")
        if structure.table[key].role != "gateway" or direction == "Unspecified" or structure.drawn.get(key, 0) > len(node.outgoing):
            continue
        if direction not in DIRECTIONS:
            structure.problem(key, f"has the gatewayDirection {direction!r}", f"one of Unspecified, {', '.join(DIRECTIONS)}")
            continue
        contradicts, expected = DIRECTIONS[direction]
        if contradicts(len(node.incoming), len(node.outgoing)):
            what = f"has the gatewayDirection {direction}, {len(node.incoming)} flows in and {len(node.outgoing)} out"
            structure.problem(key, what, f"{expected}, or another gatewayDirection")


def _receivers_that_start(structure: Structure) -> None:
    """10.3.3.3: a receive task that starts instances has no incoming flows."""
    for key, node in structure.nodes.items():
        if not (isinstance(node.config, ReceiveTaskConfig) and node.config.instantiate):
            continue
        if node.incoming:
            structure.problem(key, "starts instances and has an incoming flow", "none, or instantiate false")
        if node.loop is not None:
            structure.problem(key, "starts instances and has loop characteristics", "none: its message starts an instance once")


def _gateways_without_way_out(structure: Structure) -> None:
    """10.6: a gateway controls flows that leave it."""
    for key in structure.nodes:
        if structure.table[key].role == "gateway" and not structure.drawn.get(key):
            structure.problem(key, "has no outgoing flow", "one or more: a gateway is no end")


def _boundaries_that_never_occur(structure: Structure) -> None:
    """Warnings: an activity that is left as soon as it is entered is never interrupted, and a task throws no escalation."""
    for key, node in structure.nodes.items():
        config = node.config
        host = structure.nodes.get(config.attached_to) if isinstance(config, BoundaryConfig) else None
        if host is None:
            continue
        element, activity = structure.sources[key], named(structure.sources[host.id])
        if config.compensate or config.cancel:
            continue
        if _takes_no_time(host):
            what = f"{named(element)} never occurs: {activity} is done as soon as it begins"
            structure.context.warn(element, what, "an activity that waits for something")
        elif config.escalation is not None and not (structure.table[host.id].container or _may_escalate(host)):
            structure.context.warn(element, f"{named(element)} never occurs: {activity} throws no escalation", "a subprocess")


def _may_escalate(node: Node) -> bool:
    """Without flow elements of its own: what it calls does (10.3.6), or the instances of its loop (10.3.8.2)."""
    throws = node.loop.throws if isinstance(node.loop, MultiInstance) else ()
    return isinstance(node.config, CallConfig) or any(event.escalation is not None for event in throws)


def _takes_no_time(node: Node) -> bool:
    """Looped ones neither: without waiting they are all done in one step."""
    match node.config:
        case None:
            return node.kind in ("task", "manual_task")
        case ServiceTaskConfig(work=work):
            return work == "deliver"
        case ReceiveTaskConfig(instantiate=instantiate):
            return instantiate
    return isinstance(node.config, ScriptConfig | MessageConfig)


def _reachability(structure: Structure) -> None:
    """Warnings: elements that no token can reach, and those from which none can come to an end. Silent beside problems."""
    if structure.context.problems:
        return
    backwards: dict[str, list[str]] = {}
    for key in structure.nodes:
        for following in _onward(structure, key):
            backwards.setdefault(following, []).append(key)
    begun = [key for starts in structure.starts.values() for key in starts]
    begun += [
        key
        for key, node in structure.nodes.items()
        if node.kind == EVENT_SUBPROCESS or node.for_compensation or getattr(node.config, "begins", False) or ad_hoc.begins(structure, node)
    ]
    reached = _spread(begun, lambda key: _onward(structure, key))
    finals = (key for key, node in structure.nodes.items() if not node.outgoing and key not in structure.links)
    ending = _spread(finals, lambda key: backwards.get(key, ()))
    for key in structure.nodes:
        element = structure.sources[key]
        if key not in reached:
            structure.context.warn(element, f"{named(element)} is never reached", "a way to it from a start event")
        elif key not in ending:
            structure.context.warn(element, f"{named(element)} leads to no end", "a way from it to where a token ends")


def _onward(structure: Structure, key: str) -> list[str]:
    """Where a token may go next: along a flow, over a link, or out of a boundary event."""
    node = structure.nodes[key]
    linked = [structure.links[key]] if key in structure.links else []
    return [structure.flows[flow].target for flow in node.outgoing] + linked + [each for each in node.attached if each in structure.nodes]


def _spread(starts: Iterable[str], onward: Callable[[str], Iterable[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = list(starts)
    while waiting:
        key = waiting.pop()
        if key not in reached:
            reached.add(key)
            waiting.extend(onward(key))
    return reached


RULES: tuple[Callable[[Structure], None], ...] = (
    _starts,
    _event_subprocesses,
    _ends_of_flows,
    _listed_flows,
    _conditions,
    _boundaries,
    event_gateways,
    _gateway_directions,
    _links,
    _receivers_that_start,
    _gateways_without_way_out,
    ad_hoc.check,
    _boundaries_that_never_occur,
    compensation.check,
    _reachability,
)
