"""Event subprocess (10.3.5, 13.5.4): no flow leads to it. `engine.core.event_subprocesses` says when it begins."""

from engine.bpmn.definition import Node
from engine.core.event_subprocesses import wait_for_start
from engine.core.registry import Behaviour, register
from engine.core.run import Run
from engine.core.state import Token


class EventSubprocess(Behaviour):
    holds_scope = True
    listens = True

    def enter(self, run: Run, token: Token, node: Node) -> None:
        wait_for_start(run, token, node)

    def scope_emptied(self, run: Run, owner: Token, node: Node) -> None:
        run.leave(owner)


register("event_subprocess", EventSubprocess())
