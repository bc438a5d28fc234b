"""Inclusive gateway (10.6.3, 13.4.3): takes every token that can still come, gives one to each flow whose condition holds.

Whether all tokens that can come are there depends on the other tokens of the scope, so `engine.core.joins` decides it when
everything else has come to rest.
"""

from engine.bpmn.definition import Node
from engine.core.registry import Behaviour, register
from engine.core.run import Run
from engine.core.state import Token


class InclusiveGateway(Behaviour):
    announced = False  # it is entered when it is activated, not when a first token arrives

    def enter(self, run: Run, token: Token, node: Node) -> None:
        if len(node.incoming) > 1:
            run.shed(token)
            token.status = "joining"
            return
        run.record(token.scope, "element_entered", node.id)
        run.leave(token)


register("inclusive_gateway", InclusiveGateway())
