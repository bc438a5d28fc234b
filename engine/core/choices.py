"""Choices of events (10.6.6, 13.4.4): what happens when one of the events behind an event-based gateway comes first."""

from __future__ import annotations

from engine.bpmn.definition import Node
from engine.core.effects import InvariantBroken
from engine.core.run import Run
from engine.core.state import Scope, Token


def win(run: Run, token: Token, node: Node) -> None:
    """The gateway's token goes on over the flow to this event; what it waited for besides is left behind."""
    gateway = token.node
    flows = token.scope.definition.flows
    flow_id = next((flow_id for flow_id in gateway.outgoing if flows[flow_id].target == node.id), None)
    if gateway.kind != "event_based_gateway" or flow_id is None:
        raise InvariantBroken(f"token {token.id}: expected it at {node.id} or at a gateway before it, found it at {gateway.id}")
    run.shed(token)
    _pass(run, token, gateway, flow_id)


def begin_behind(run: Run, scope: Scope, node: Node) -> None:
    """An instance begins at this event, which has occurred, behind a gateway that starts instances.

    A parallel one gives a token to each of its other events, too, which wait there.
    """
    (flow_id,) = node.incoming
    definition = scope.definition
    gateway = definition.nodes[definition.flows[flow_id].source]
    run.record(scope, "element_entered", gateway.id)
    token = run.spawn(scope, gateway.id)
    _pass(run, token, gateway, flow_id)
    if gateway.config.parallel:
        for other in (flow for flow in gateway.outgoing if flow != flow_id):
            run.record(scope, "flow_taken", other)
            target = definition.nodes[definition.flows[other].target]
            waits = run.spawn(scope, target.id)
            waits.flow_id = other  # one that cannot wait waits again after a retry
            run.enter(waits, target)
    run.leave(token)


def _pass(run: Run, token: Token, gateway: Node, flow_id: str) -> None:
    scope = token.scope
    target = scope.definition.flows[flow_id].target
    run.record(scope, "element_left", gateway.id)
    run.record(scope, "flow_taken", flow_id)
    token.element_id, token.flow_id = target, None  # its event is behind it: a retry only leaves again
    run.record(scope, "element_entered", target)
