"""Event-based gateway (10.6.6, 13.4.4): one token waits for several events at once, the first one takes it.

Each event behind the gateway is a leaf of that token. The winner's behaviour calls `choices.win`; the others go by cascade with
the token's old row. One that starts instances is never entered: the first event begins behind it (`choices.begin_behind`).
"""

from collections.abc import Mapping

from engine.bpmn.definition import Node, has_condition
from engine.core.catching import arm
from engine.core.conditions import occurs_at_once
from engine.core.registry import Behaviour, register
from engine.core.run import Run
from engine.core.state import Token


class EventBasedGateway(Behaviour):
    only_waits = True

    def enter(self, run: Run, token: Token, node: Node) -> None:
        definition = token.scope.definition
        events = [definition.nodes[definition.flows[flow_id].target] for flow_id in node.outgoing]
        for event in sorted(events, key=lambda event: not has_condition(event.config)):
            arm(run, token, event)
            if occurs_at_once(run, token):  # then nothing else is waited for
                return

    def leaves_left(self, node: Node, nodes: Mapping[str, Node]) -> bool:
        return True


register("event_based_gateway", EventBasedGateway())
