"""Rules about events that several elements share: event-based gateways and what stands behind them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from engine.bpmn.context import named
from engine.bpmn.definition import CatchConfig, EventGatewayConfig, Node, ReceiveTaskConfig, events_in

if TYPE_CHECKING:
    from engine.bpmn.structure import Structure


def event_gateways(structure: Structure) -> None:
    """10.6.6: an event-based gateway leads to two or more catch events or receive tasks, which have no other way in."""
    for key, node in structure.nodes.items():
        if node.kind != "event_based_gateway":
            continue
        drawn = structure.drawn.get(key, 0)
        if drawn < 2:
            structure.problem(key, f"has {drawn} outgoing flows", "two or more, each to an event")
        targets = [structure.nodes[structure.flows[flow].target] for flow in node.outgoing]
        for target in targets:
            _check_choice(structure, node, target)
        receive = [target.id for target in targets if target.kind == "receive_task"]
        catches = [target for target in targets if isinstance(target.config, CatchConfig)]
        messages = [target.id for target in catches if any(each.message for each in events_in(target.config))]
        if receive and messages:
            what = f"leads to the receive task {receive[0]!r} and to the message event {messages[0]!r}"
            structure.problem(key, what, "messages by catch events alone, or by receive tasks alone (10.6.6)")
        if isinstance(node.config, EventGatewayConfig) and node.config.begins:
            _check_beginning(structure, node, targets)


def _check_choice(structure: Structure, gateway: Node, target: Node) -> None:
    """One element behind an event-based gateway."""
    catches = isinstance(target.config, CatchConfig) and target.config.link is None
    if not (catches or isinstance(target.config, ReceiveTaskConfig)):
        what = f"is an event-based gateway followed by {named(structure.sources[target.id])}"
        why = "only intermediate catch events with a timer, message, signal or condition, and receive tasks, behind it"
        structure.problem(gateway.id, what, why)
    elif isinstance(target.config, CatchConfig) and target.config.parallel:
        what = f"follows the event-based gateway {gateway.id!r} and waits for all of several events"
        structure.problem(target.id, what, "parallelMultiple false: one event takes the gateway's token (10.6.6)")
    elif len(target.incoming) > 1:
        what = f"follows the event-based gateway {gateway.id!r} and has {len(target.incoming)} incoming flows"
        structure.problem(target.id, what, "only the flow from the gateway")
    elif target.attached:
        what = f"follows the event-based gateway {gateway.id!r} and has the boundary event {target.attached[0]!r}"
        structure.problem(target.id, what, "none: the gateway waits, not the task")
    elif target.loop is not None or target.start_quantity > 1:
        why = "neither loop characteristics nor a startQuantity: one message is received"
        structure.problem(target.id, f"follows the event-based gateway {gateway.id!r} and is more than one", why)


def _check_beginning(structure: Structure, gateway: Node, targets: Iterable[Node]) -> None:
    """10.6.6 and 13.4.4: the first event behind such a gateway starts an instance, as a start event does."""
    if gateway.parent is not None:
        structure.problem(gateway.id, "starts instances inside a subprocess", "such a gateway at the top of a process")
    if gateway.incoming:
        structure.problem(gateway.id, "starts instances and has an incoming flow", "none, or instantiate false")
    for target in targets:
        if gateway.config.parallel and not getattr(target.config, "message", None):
            why = "messages alone: what else occurs cannot be told from what starts another instance"
            structure.problem(target.id, f"follows the parallel event-based gateway {gateway.id!r} and waits for no message", why)
        elif isinstance(target.config, CatchConfig) and any(each.condition for each in events_in(target.config)):
            why = "a message or a timer: before a process starts there are no variables to look at"
            structure.problem(target.id, "starts a process by a condition", why)
