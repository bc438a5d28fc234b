"""Receive task (10.3.3.3, 13.3.3): waits for a message, alone or behind an event-based gateway (10.6.6).

One that instantiates has its message when a token enters it.
"""

from typing import cast

from engine.bpmn.definition import Node, ReceiveTaskConfig
from engine.core.activity import Activity
from engine.core.catching import arm, caught
from engine.core.choices import begin_behind, win
from engine.core.registry import register
from engine.core.run import Run
from engine.core.snapshot import EventOccurred
from engine.core.state import Scope, Token


class ReceiveTask(Activity):
    only_waits = True

    def enter(self, run: Run, token: Token, node: Node) -> None:
        if cast(ReceiveTaskConfig, node.config).instantiate:  # no flow leads to it: the message has started the instance
            run.leave(token)
            return
        super().enter(run, token, node)

    def begin(self, run: Run, token: Token, node: Node) -> None:
        arm(run, token, node)

    def occurred(self, run: Run, token: Token, node: Node, trigger: EventOccurred) -> None:
        caught(run, token, node, trigger)
        if token.element_id != node.id:
            win(run, token, node)
        if node.id in token.scope.definition.compensable:
            token.results = trigger.variables
        run.leave(token)

    def start_at(self, run: Run, scope: Scope, node: Node) -> None:
        if node.incoming:
            begin_behind(run, scope, node)
        else:
            super().start_at(run, scope, node)


register("receive_task", ReceiveTask())
