"""Complex gateway (10.6.5, 13.4.5): goes on as soon as its activationCondition is true. `engine.core.complex_joins` says how."""

from engine.bpmn.definition import Node
from engine.core.complex_joins import memory_of, start
from engine.core.registry import Behaviour, register
from engine.core.run import Run
from engine.core.state import Token


class ComplexGateway(Behaviour):
    announced = False  # it is entered when it is activated, not when a first token arrives

    def enter(self, run: Run, token: Token, node: Node) -> None:
        run.shed(token)
        token.status = "joining"
        if memory_of(token.scope, node) is None:  # else it waits for reset, which is asked when nothing moves any more
            start(run, token.scope, node)


register("complex_gateway", ComplexGateway())
