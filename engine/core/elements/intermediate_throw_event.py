"""Intermediate throw events (10.5.4, 13.5.2): none, message (to a destination or to our processes), signal, link, escalation."""

from typing import cast

from engine.bpmn.definition import Node, ThrowConfig
from engine.core.deliveries import send
from engine.core.escalations import escalate
from engine.core.registry import Behaviour, register
from engine.core.run import Run
from engine.core.state import Token
from engine.core.throws import throw_signal


class IntermediateThrowEvent(Behaviour):
    def enter(self, run: Run, token: Token, node: Node) -> None:
        config = cast(ThrowConfig, node.config) or ThrowConfig()
        if config.link is not None:
            self._jump(run, token, node)
            return
        if config.message is not None:
            send(run, token, node, config.message)
        if config.signal is not None:
            throw_signal(run, token, node, config.signal)
        if config.escalation is not None:
            escalate(run, token, node, config.escalation)
        if token.alive:  # else an event that interrupts has caught it
            run.leave(token)

    def _jump(self, run: Run, token: Token, node: Node) -> None:
        """A link is a flow that is not drawn (10.5.5)."""
        definition = token.scope.definition
        target = definition.nodes[definition.links[node.id]]
        run.record(token.scope, "element_left", node.id)
        run.shed(token)
        token.element_id, token.flow_id = target.id, None
        run.enter(token, target)


register("intermediate_throw_event", IntermediateThrowEvent())
