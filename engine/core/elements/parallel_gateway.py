"""Parallel gateway (10.6.4, 13.4.1): takes one token from each incoming flow, gives one to each outgoing flow.

A token whose flow is already represented waits for the next activation, so a block inside a loop joins per round.
"""

from engine.bpmn.definition import Node
from engine.core.registry import Behaviour, register
from engine.core.run import Run
from engine.core.state import Token


class ParallelGateway(Behaviour):
    announced = False  # it is entered when it is activated, not when a first token arrives

    def enter(self, run: Run, token: Token, node: Node) -> None:
        if len(node.incoming) > 1:
            partners = self._partners(token, node)
            if len(partners) < len(node.incoming) - 1:
                run.shed(token)
                token.status = "joining"
                return
            run.record(token.scope, "element_entered", node.id)
            run.record(token.scope, "join_passed", node.id, {"flows": list(node.incoming)})
            run.absorb(partners)
        else:
            run.record(token.scope, "element_entered", node.id)
        run.record(token.scope, "element_left", node.id)
        run.take(token, node.outgoing)

    def _partners(self, token: Token, node: Node) -> list[Token]:
        """One token of each other incoming flow that waits at this join in this scope, the earliest of each."""
        found: dict[str | None, Token] = {token.flow_id: token}
        for other in token.scope.tokens:
            if other.status == "joining" and other.element_id == node.id:
                found.setdefault(other.flow_id, other)
        del found[token.flow_id]
        return list(found.values())


register("parallel_gateway", ParallelGateway())
