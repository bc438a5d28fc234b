"""End events (10.5.3, 13.5.6): none, terminate (of its own scope only), message (an outbox delivery)."""

from typing import cast

from engine.bpmn.definition import EndConfig, Node
from engine.core.deliveries import message_delivery
from engine.core.registry import Behaviour, register
from engine.core.run import Run
from engine.core.state import Token


class EndEvent(Behaviour):
    def enter(self, run: Run, token: Token, node: Node) -> None:
        config = cast(EndConfig, node.config) or EndConfig()
        if config.message is not None:
            message_delivery(run, token, node, config.message)
        if config.terminate:
            run.withdraw_others(token.scope, token)
        run.record("element_left", node.id)
        run.end(token)


register("end_event", EndEvent())
