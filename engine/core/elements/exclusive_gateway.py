"""Exclusive gateway (10.6.2, 13.4.2): the first flow, in document order, whose condition holds; else the default flow."""

from engine.bpmn.definition import Flow, Node
from engine.core.registry import Behaviour, register
from engine.core.run import CannotGoOn, Run
from engine.core.state import Token


class ExclusiveGateway(Behaviour):
    def enter(self, run: Run, token: Token, node: Node) -> None:
        flow = self._choose(run, token, node)
        run.record(token.scope, "element_left", node.id)
        run.take(token, (flow.id,))

    def _choose(self, run: Run, token: Token, node: Node) -> Flow:
        """An error in a condition is an incident at the gateway, never the default flow."""
        flows = token.scope.definition.flows
        for flow_id in node.outgoing:
            if flow_id != node.default and run.holds(flows[flow_id], token.scope):
                return flows[flow_id]
        if node.default is None:
            text = "expected a flow whose condition holds or a default flow, found neither"
            raise CannotGoOn("no_flow", f"gateway {node.name or node.id}: {text}")
        return flows[node.default]


register("exclusive_gateway", ExclusiveGateway())
