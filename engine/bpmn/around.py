"""What is done before and after an element without being drawn: listeners (`listeners.py`), and points where a job goes on (async).

Each is a node of its own, put between the element and its flows; its id is that of the element, then PART and a name. So work that
a listener is bound to is a job as any other, and an asynchronous element begins in a transaction of its own. Decision 0077.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from engine.bpmn import names
from engine.bpmn.context import Context, named
from engine.bpmn.definition import PART, ContinuationConfig, Flow, Node, ServiceTaskConfig
from engine.bpmn.kinds import GATEWAYS
from engine.bpmn.listeners import Step, of_element, of_flow, of_process
from engine.bpmn.names import BATON, CAMUNDA_LIKE, Element
from engine.bpmn.retries import policy_of
from engine.bpmn.structure import Structure

JOINS = GATEWAYS - {"exclusive_gateway", "event_based_gateway"}
BEFORE, AFTER = ("asyncBefore", "async"), ("asyncAfter", "asyncLeave")


@dataclass(frozen=True, slots=True)
class Place:
    """Where steps may stand: before the element, after it. What has no place is not read, and so reported."""

    start: str  # where what belongs before it goes: "before", "after", or "" for nowhere
    end: str


def steps_of(structure: Structure) -> dict[str, tuple[tuple[Step, ...], tuple[Step, ...]]]:
    """Those before and those after each element that has any, in the order in which they are done."""
    found = {}
    for key, node in structure.nodes.items():
        place = _place(node, structure)
        before: list[Step] = []
        after: list[Step] = []
        element, context = structure.sources[key], structure.context
        entering, leaving = of_element(element, context, start=bool(place.start), end=bool(place.end), looped=node.loop is not None)
        waits = _continuation(element, node, BEFORE, context, placed=bool(place.start))
        rests = _continuation(element, node, AFTER, context, placed=place.end == "after")
        (before if place.start == "before" else after).extend((*waits, *entering))
        (before if place.end == "before" else after).extend((*leaving, *rests))
        if place.start == "after" and structure.table[key].role == "start" and node.parent is None:
            after = [*of_process(structure.process, context), *after]
        if before or after:
            found[key] = (tuple(before), tuple(after))
    return found


def _place(node: Node, structure: Structure) -> Place:
    """Steps need a flow to stand on. Joins count the tokens of each flow, and a gateway of events leads to the events themselves."""
    entered = bool(node.incoming)
    by_gateway = any(structure.nodes[structure.flows[flow].source].kind == "event_based_gateway" for flow in node.incoming)
    if node.for_compensation or _in_no_order(node, structure) or not (entered or node.outgoing):
        return Place("", "")
    if node.kind in GATEWAYS:
        where = "before" if entered and not by_gateway and not (node.kind in JOINS and len(node.incoming) > 1) else ""
        return Place(where, where)
    role = structure.table[node.id].role
    if role == "end" or (getattr(node.config, "link", None) is not None and role == "throw"):
        return Place("before", "before")  # no flow leads on
    event = role in ("start", "boundary", "catch")
    start = "before" if entered and not by_gateway else "after" if event and node.outgoing else ""
    return Place(start, "after")


def _in_no_order(node: Node, structure: Structure) -> bool:
    """What lies in an ad hoc subprocess is chosen by its id, and counted."""
    return node.parent is not None and structure.nodes[node.parent].kind == "ad_hoc_subprocess"


def _continuation(element: Element, node: Node, flags: Sequence[str], context: Context, *, placed: bool) -> tuple[Step, ...]:
    """The job that goes on before or after an element which is asynchronous. Work that is a job by itself needs none before it."""
    asked = [tag for flag in flags if (tag := _tag(element, flag)) and names.flag(str(element.attrib[tag]), default=False)]
    own_job = isinstance(node.config, ServiceTaskConfig) and node.config.work in ("handler", "external")
    for flag in flags:
        if (tag := _tag(element, flag)) and (placed if tag in asked else names.is_flag(str(element.attrib[tag]))):
            element.get(tag)
    if not asked or not placed:
        return ()
    if own_job and flags == BEFORE and node.config.work == "handler":
        return ()  # `exclusive` is read with its work
    if (exclusive := next((tag for space in CAMUNDA_LIKE if (tag := f"{{{space}}}exclusive") in element.attrib), None)) is not None:
        element.get(exclusive)  # the steps of a case wait for each other, whatever it says
    if own_job and flags == BEFORE:
        return ()
    config = _retried(element, context) if not own_job else ContinuationConfig()
    name = f"{'before' if flags == BEFORE else 'after'} {node.name or node.id}"
    return (Step("continuation", "async", name, config),)


def _tag(element: Element, name: str) -> str | None:
    return next((tag for space in (BATON, *CAMUNDA_LIKE) if (tag := f"{{{space}}}{name}") in element.attrib), None)


def _retried(element: Element, context: Context) -> ContinuationConfig:
    cycle = context.extension(element, "failedJobRetryTimeCycle")
    given = context.attribute(element, "jobPriority") or context.of_process(element, "jobPriority")
    priority = context.expression(element, given, f"the priority of {named(element)}")
    text = names.text(cycle) if cycle is not None else context.attribute(element, "retry", BATON)
    default = ContinuationConfig()
    retry, attempts = policy_of(element, text, named(element), default.max_attempts, context)
    return ContinuationConfig(retry, attempts, priority)


# ---- between the nodes


def put_between(structure: Structure, nodes: dict[str, Node], flows: dict[str, Flow]) -> None:
    """Put the steps of a process between its nodes and flows."""
    on_flows = {key: found for key in flows if (found := _of_flow(key, structure))}
    elements = steps_of(structure)
    for key, found in on_flows.items():
        _on(key, found, nodes, flows)
    for key, (before, after) in elements.items():
        _before(nodes[key], before, nodes, flows)
        _after(nodes[key], after, nodes, flows)


def _of_flow(key: str, structure: Structure) -> tuple[Step, ...]:
    """Behind a gateway of events nothing may stand before the events."""
    source = structure.nodes[structure.flows[key].source]
    if source.kind == "event_based_gateway" or _in_no_order(source, structure):
        return ()
    return of_flow(structure.sources[key], structure.context)


def _on(key: str, found: Sequence[Step], nodes: dict[str, Node], flows: dict[str, Flow]) -> None:
    """source -flow-> steps -> target: what names the flow, its condition for one, stays with the source."""
    flow = flows[key]
    target = nodes[flow.target]
    chain = list(_chain(key, "take", found, nodes[flow.source].parent, nodes[flow.source].line))
    new = _flow(chain[-1].id, target.id)
    flows |= {key: replace(flow, target=chain[0].id), new.id: new}
    _link(chain, (key,), (new.id,), nodes, flows)
    nodes[target.id] = replace(target, incoming=tuple(new.id if each == key else each for each in target.incoming))


def _before(node: Node, found: Sequence[Step], nodes: dict[str, Node], flows: dict[str, Flow]) -> None:
    if not found:
        return
    chain = list(_chain(node.id, "before", found, node.parent, node.line))
    new = _flow(chain[-1].id, node.id)
    flows |= {each: replace(flows[each], target=chain[0].id) for each in node.incoming} | {new.id: new}
    _link(chain, node.incoming, (new.id,), nodes, flows)
    nodes[node.id] = replace(node, incoming=(new.id,))


def _after(node: Node, found: Sequence[Step], nodes: dict[str, Node], flows: dict[str, Flow]) -> None:
    """The last step has the conditions and the default flow: what the steps set counts."""
    if not found:
        return
    chain = list(_chain(node.id, "after", found, node.parent, node.line))
    new = _flow(node.id, chain[0].id)
    flows |= {each: replace(flows[each], source=chain[-1].id) for each in node.outgoing} | {new.id: new}
    _link(chain, (new.id,), node.outgoing, nodes, flows)
    nodes[chain[-1].id] = replace(nodes[chain[-1].id], default=node.default)
    nodes[node.id] = replace(node, outgoing=(new.id,), default=None)


def _chain(key: str, where: str, found: Sequence[Step], parent: str | None, line: int | None) -> Iterator[Node]:
    for number, step in enumerate(found, 1):
        yield Node(f"{key}{PART}{where}-{number}", step.kind, name=step.name, parent=parent, line=line, config=step.config)


def _link(
    chain: Sequence[Node], incoming: tuple[str, ...], outgoing: tuple[str, ...], nodes: dict[str, Node], flows: dict[str, Flow]
) -> None:
    between = [_flow(one.id, other.id) for one, other in pairwise(chain)]
    flows |= {flow.id: flow for flow in between}
    ways = [incoming, *((flow.id,) for flow in between), outgoing]
    for number, node in enumerate(chain):
        nodes[node.id] = replace(node, incoming=ways[number], outgoing=ways[number + 1])


def _flow(source: str, target: str) -> Flow:
    return Flow(f"{source}-to-{target}", source, target)
