"""Start events (10.5.2, 13.5.1): the token goes on at once. What starts an instance lies outside it; what starts an event
subprocess occurs for the token that listens in the scope around.
"""

from engine.bpmn.definition import Node
from engine.core import event_subprocesses
from engine.core.registry import Behaviour, register
from engine.core.run import Run
from engine.core.snapshot import EventOccurred
from engine.core.state import Token


class StartEvent(Behaviour):
    def enter(self, run: Run, token: Token, node: Node) -> None:
        run.leave(token)

    def occurred(self, run: Run, token: Token, node: Node, trigger: EventOccurred) -> None:
        event_subprocesses.occurred(run, token, node, trigger)


register("start_event", StartEvent())
