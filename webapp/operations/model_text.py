"""A process in words, for those who do not see its drawing: each step, what leads on from it, and under which condition."""

from __future__ import annotations

from dataclasses import dataclass

from engine.bpmn.definition import BoundaryConfig, Node, ProcessDefinition
from webapp.operations.event_words import event_words, kind_with_event

KIND_WORDS = {
    "start_event": "Start",
    "end_event": "End",
    "user_task": "User task",
    "service_task": "Service task",
    "continuation": "Goes on in a job of its own",
    "task": "Step without work",
    "manual_task": "Step outside the system",
    "send_task": "Sends a message",
    "receive_task": "Waits for a message",
    "script_task": "Expression",
    "business_rule_task": "Business rule",
    "exclusive_gateway": "Decision",
    "inclusive_gateway": "Every way that fits",
    "parallel_gateway": "Parallel gateway",
    "complex_gateway": "Goes on when enough have come",
    "event_based_gateway": "First event wins",
    "subprocess": "Subprocess",
    "call_activity": "Calls another process",
    "ad_hoc_subprocess": "Steps in no required order",
    "transaction": "Transaction",
    "event_subprocess": "Starts by itself on its event",
    "intermediate_catch_event": "Waits for an event",
    "intermediate_throw_event": "Throws an event",
    "boundary_event": "Event at the border",
}


@dataclass(frozen=True, slots=True)
class Step:
    """One element. `leads_to`: (name of the flow or "", name of the next element). `event`: of an event at a border, in words."""

    id: str
    name: str
    kind: str
    depth: int
    leads_to: tuple[tuple[str, str], ...]
    attached_to: str | None = None
    event: str = ""


def outline(model: ProcessDefinition) -> tuple[Step, ...]:
    """Every element in the order in which a token meets it first, subprocesses with their inside after them."""
    seen: set[str] = set()
    steps: list[Step] = []
    inner: dict[str | None, list[Node]] = {}
    for node in (node for node in model.nodes.values() if node.kind != "event_part"):
        inner.setdefault(node.parent, []).append(node)

    def visit(scope: str | None, depth: int) -> None:
        inside = inner.get(scope, [])
        starts = [model.nodes[start] for start in model.starts.get(scope, ())]
        # What starts an instance behind a gateway comes after that gateway.
        waiting = [node for node in starts if not node.incoming] + [node for node in inside if not node.incoming]
        queue = [node for node in waiting if node.kind != "boundary_event"] + inside
        while queue:
            node = queue.pop(0)
            if node.id in seen:
                continue
            seen.add(node.id)
            steps.append(_step(model, node, depth))
            if node.id in inner:
                visit(node.id, depth + 1)
            following = [model.nodes[model.flows[flow].target] for flow in node.outgoing]
            queue[:0] = [model.nodes[event] for event in node.attached] + following

    visit(None, 0)
    return tuple(steps)


def name_of(node: Node) -> str:
    return node.name or node.id


def _step(model: ProcessDefinition, node: Node, depth: int) -> Step:
    leads_to = tuple((model.flows[flow].name, name_of(model.nodes[model.flows[flow].target])) for flow in node.outgoing)
    if node.id in model.links:
        leads_to = (("", name_of(model.nodes[model.links[node.id]])),)
    host, event = None, ""
    if isinstance(node.config, BoundaryConfig):
        host = name_of(model.nodes[node.config.attached_to])
        event = event_words(model, node) + ("" if node.config.interrupting or node.config.compensate else ", without stopping it")
    if isinstance(node.config, BoundaryConfig) and node.config.compensate:
        undo = model.compensable[node.config.attached_to]
        leads_to = (("to undo it", name_of(model.nodes[undo.handler or ""])),)
    return Step(node.id, name_of(node), _kind(model, node), depth, leads_to, host, event)


def _kind(model: ProcessDefinition, node: Node) -> str:
    words = kind_with_event(model, node) or KIND_WORDS.get(node.kind, node.kind.replace("_", " ").capitalize())
    return f"{words}, only to undo" if node.for_compensation and node.kind != "event_subprocess" else words
