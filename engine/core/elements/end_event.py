"""End events (10.5.3, 13.5.6): none, terminate (of its own scope only), message (an outbox delivery, or a throw), signal, error,
escalation, compensation, cancel (of the transaction around).

An error that nothing around it catches is an incident at the end event (kind `uncaught_error`): its token rests there, the
other tokens go on, and an operator decides. The standard leaves it open (13.5.3).
"""

from typing import cast

from engine.bpmn.definition import EndConfig, Node
from engine.core.compensation import cancel, compensate, is_detached
from engine.core.deliveries import send
from engine.core.errors import throw
from engine.core.escalations import escalate
from engine.core.registry import Behaviour, register
from engine.core.run import CannotGoOn, Run
from engine.core.snapshot import ErrorThrown, NoHandlerForError
from engine.core.state import Token
from engine.core.throws import throw_signal


class EndEvent(Behaviour):
    holds_scope = True  # while it waits: for what it has thrown compensation for

    def enter(self, run: Run, token: Token, node: Node) -> None:
        config = cast(EndConfig, node.config) or EndConfig()
        if config.error is not None:
            self._throw(run, token, node, config.error)
            return
        if config.compensate is not None and compensate(run, token, node, config.compensate):
            return
        if config.message is not None:
            send(run, token, node, config.message)
        if config.terminate:
            run.withdraw_others(token.scope, token)
        run.record(token.scope, "element_left", node.id)
        if config.signal is not None:
            token.status = "moving"
            throw_signal(run, token, node, config.signal)
        if config.escalation is not None:
            token.status = "moving"
            escalate(run, token, node, config.escalation)
        if config.cancel:
            token.status = "moving"
            cancel(run, token, node)
        if token.alive:  # else an event that interrupts has caught it, or its transaction was cancelled
            run.end(token)

    def scope_emptied(self, run: Run, owner: Token, node: Node) -> None:
        """All is compensated."""
        if not is_detached(owner):
            run.record(owner.scope, "element_left", node.id)
        run.end(owner)

    def withdrawn(self, run: Run, token: Token, node: Node) -> None:
        if not is_detached(token):
            super().withdrawn(run, token, node)

    def _throw(self, run: Run, token: Token, node: Node, code: str) -> None:
        """Whoever catches the error cancels the activity around, and this token with it."""
        run.record(token.scope, "element_left", node.id)
        token.status = "moving"
        try:
            throw(run, token, node, ErrorThrown(token.id, code))
        except NoHandlerForError as error:
            raise CannotGoOn("uncaught_error", f"{node.name or node.id}: the error {code!r} is caught by nothing around it") from error


register("end_event", EndEvent())
