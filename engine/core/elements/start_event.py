"""Start events (10.5.2, 13.5.1): the token goes on at once. The timer or message that starts an instance lies outside it."""

from engine.bpmn.definition import Node
from engine.core.registry import Behaviour, register
from engine.core.run import Run
from engine.core.state import Token


class StartEvent(Behaviour):
    def enter(self, run: Run, token: Token, node: Node) -> None:
        run.leave(token)


register("start_event", StartEvent())
