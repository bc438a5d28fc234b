"""Abstract and manual tasks (10.3.3.5, 13.3.3): nothing that an engine could see happens in them; the token goes on at once."""

from engine.bpmn.definition import Node
from engine.core.registry import Behaviour, register
from engine.core.run import Run
from engine.core.state import Token


class TaskOutsideTheEngine(Behaviour):
    is_activity = True

    def enter(self, run: Run, token: Token, node: Node) -> None:
        run.leave(token)


register("task", TaskOutsideTheEngine())
register("manual_task", TaskOutsideTheEngine())
