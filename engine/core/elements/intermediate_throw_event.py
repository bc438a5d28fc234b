"""Intermediate throw events (10.5.4, 13.5.2): none, message (to a destination or to our processes), signal, link, escalation,
compensation; several of messages, signals and escalations are all thrown."""

from typing import cast

from engine.bpmn.definition import Node, ThrowConfig, events_in
from engine.core.compensation import compensate, is_detached
from engine.core.deliveries import send
from engine.core.escalations import escalate
from engine.core.registry import Behaviour, register
from engine.core.run import Run
from engine.core.state import Token
from engine.core.throws import throw_signals


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
        events = events_in(config)
        for message in (each.message for each in events if each.message is not None):
            send(run, token, node, message)
        throw_signals(run, token, node, [each.signal for each in events if each.signal is not None])
        for code in (each.escalation for each in events if each.escalation is not None):
            if token.alive:
                escalate(run, token, node, code)
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
