"""What flows must not leave out (8.3.13, 10.5.2 to 10.5.4): elements that nothing leads to, or that lead nowhere."""

from __future__ import annotations

from collections.abc import Iterator

from engine.bpmn import names
from engine.bpmn.names import BPMN, Element
from engine.bpmn.whole_file import Rule, Whole

CONTAINERS = ("subProcess", "transaction")
INTERMEDIATE = ("intermediateCatchEvent", "intermediateThrowEvent")
NODES = frozenset(
    {
        "task",
        "userTask",
        "serviceTask",
        "sendTask",
        "receiveTask",
        "scriptTask",
        "manualTask",
        "businessRuleTask",
        "subProcess",
        "transaction",
        "adHocSubProcess",
        "callActivity",
        "exclusiveGateway",
        "inclusiveGateway",
        "parallelGateway",
        "complexGateway",
        "eventBasedGateway",
        "startEvent",
        "endEvent",
        "boundaryEvent",
        *INTERMEDIATE,
    }
)


def _scopes(whole: Whole) -> Iterator[Element]:
    yield from whole.processes
    yield from whole.within(*CONTAINERS)


def _nodes(scope: Element) -> Iterator[Element]:
    return (child for child in names.elements(scope) if names.namespace(child) == BPMN and names.local(child) in NODES)


def _ends_of_flows(scope: Element, end: str) -> set[str | None]:
    return {names.reference(flow.get(end)) for flow in names.bpmn(scope, "sequenceFlow")}


def _has(element: Element, event: str) -> bool:
    return next(names.bpmn(element, event), None) is not None


def _apart(element: Element) -> bool:
    """What stands outside the flows: event subprocesses, and activities for compensation."""
    return any(names.flag(element.get(name), default=False) for name in ("triggeredByEvent", "isForCompensation"))


def _nothing_leads_there(whole: Whole) -> None:
    """10.5.2: where a start event is used, a flow leads to everything else. 10.5.4: and to every intermediate event."""
    for scope in _scopes(whole):
        targets = _ends_of_flows(scope, "targetRef")
        started = _has(scope, "startEvent")
        for node in _nodes(scope):
            tag = names.local(node)
            begins = tag in ("startEvent", "boundaryEvent") or names.flag(node.get("instantiate"), default=False)
            if node.get("id") in targets or begins or _apart(node) or _has(node, "linkEventDefinition"):
                continue
            if started or tag in INTERMEDIATE:
                whole.problem(node, "has no incoming flow", "a flow that leads to it, as there is a start event" if started else "a flow")


def _leads_nowhere(whole: Whole) -> None:
    """10.5.3: where an end event is used, a flow leaves everything else. 10.5.4: and every intermediate and boundary event."""
    for scope in _scopes(whole):
        sources = _ends_of_flows(scope, "sourceRef")
        ended = _has(scope, "endEvent")
        for node in _nodes(scope):
            tag = names.local(node)
            if node.get("id") in sources or _apart(node) or _has(node, "linkEventDefinition") or _is_end(node):
                continue
            if ended or tag in (*INTERMEDIATE, "boundaryEvent"):
                whole.problem(node, "has no outgoing flow", "a flow that leaves it, as there is an end event" if ended else "a flow")


def _is_end(node: Element) -> bool:
    """What no flow leaves. Gateways have a rule of their own."""
    tag = names.local(node)
    return tag == "endEvent" or tag.endswith("Gateway") or (tag == "boundaryEvent" and _has(node, "compensateEventDefinition"))


def _starts_without_ends(whole: Whole) -> None:
    """10.5.3: where a start event is used, there is an end event."""
    for scope in _scopes(whole):
        if _has(scope, "startEvent") and not _has(scope, "endEvent"):
            whole.problem(scope, "has a start event and no end event", "an end event")


def _only_way_with_a_condition(whole: Whole) -> None:
    """8.3.13: an activity with a conditional flow has another flow, for when the condition does not hold."""
    for scope in _scopes(whole):
        flows: dict[str, list[Element]] = {}
        for flow in names.bpmn(scope, "sequenceFlow"):
            flows.setdefault(names.reference(flow.get("sourceRef")) or "", []).append(flow)
        for node in _nodes(scope):
            leaving = flows.get(node.get("id") or "", [])
            gateway = names.local(node).endswith(("Gateway", "Event"))
            if len(leaving) == 1 and not gateway and _has(leaving[0], "conditionExpression"):
                whole.problem(leaving[0], "is conditional and the only flow out of an activity", "a second flow, or no condition")


def _listed_at_one_end(whole: Whole) -> None:
    """A flow that its target lists as incoming is listed by its source as outgoing, and the other way round."""
    for scope in _scopes(whole):
        nodes = {node.get("id"): node for node in _nodes(scope)}
        lists = {(key, tag): set(whole.texts(node, tag)) for key, node in nodes.items() for tag in ("incoming", "outgoing")}
        for flow in names.bpmn(scope, "sequenceFlow"):
            source, target = (nodes.get(names.reference(flow.get(end))) for end in ("sourceRef", "targetRef"))
            if source is None or target is None:
                continue
            key, why = flow.get("id"), "both to list it, or neither"
            listed = [key in lists[node.get("id"), tag] for node, tag in ((source, "outgoing"), (target, "incoming"))]
            if listed == [False, True]:
                whole.problem(source, f"does not list {key!r} as outgoing, which {target.get('id')!r} lists as incoming", why)
            elif listed == [True, False]:
                whole.problem(target, f"does not list {key!r} as incoming, which {source.get('id')!r} lists as outgoing", why)


RULES: tuple[Rule, ...] = (_nothing_leads_there, _leads_nowhere, _starts_without_ends, _only_way_with_a_condition, _listed_at_one_end)
