"""Intermediate throw events (10.5.4, 13.5.2): none, message (to a destination or our processes), signal, link, escalation, compensation."""

from typing import cast

from engine.bpmn.definition import Node, ThrowConfig
from engine.core.compensation import compensate, is_detached
from engine.core.deliveries import send
from engine.core.escalations import escalate
from engine.core.registry import Behaviour, register
from engine.core.run import Run
from engine.core.state import Token
from engine.core.throws import throw_signal


class IntermediateThrowEvent(Behaviour):
    holds_scope = True  # while it waits: for what it has thrown compensation for

    def enter(self, run: Run, token: Token, node: Node) -> None:
        config = cast(ThrowConfig, node.config) or ThrowConfig()
        if config.link is not None:
            self._jump(run, token, node)
            return
        if config.compensate is not None:
            if not compensate(run, token, node, config.compensate):
                run.leave(token)
            return
        if config.message is not None:
            send(run, token, node, config.message)
        if config.signal is not None:
            throw_signal(run, token, node, config.signal)
        if config.escalation is not None:
            escalate(run, token, node, config.escalation)
        if token.alive:  # else an event that interrupts has caught it
            run.leave(token)

    def scope_emptied(self, run: Run, owner: Token, node: Node) -> None:
        """All is compensated."""
        if is_detached(owner):
            run.end(owner)
        else:
            run.leave(owner)

    def withdrawn(self, run: Run, token: Token, node: Node) -> None:
        if not is_detached(token):
            super().withdrawn(run, token, node)

    def _jump(self, run: Run, token: Token, node: Node) -> None:
        """A link is a flow that is not drawn (10.5.5)."""
        definition = token.scope.definition
        target = definition.nodes[definition.links[node.id]]
        run.record(token.scope, "element_left", node.id)
        run.shed(token)
        token.element_id, token.flow_id = target.id, None
        run.enter(token, target)


register("intermediate_throw_event", IntermediateThrowEvent())
