"""End events (10.5.3, 13.5.6): none, terminate (of its own scope only), message (an outbox delivery, or a throw), signal, error,
escalation, compensation, cancel (of the transaction around); and several of them: all are thrown, the error last.

An error that nothing around it catches is an incident at the end event (kind `uncaught_error`): its token rests there, the
other tokens go on, and an operator decides. The standard leaves it open (13.5.3).
"""

from typing import cast

from engine.bpmn.definition import EndConfig, Node, events_in
from engine.core.compensation import cancel, compensate, is_detached
from engine.core.deliveries import send
from engine.core.errors import throw
from engine.core.escalations import escalate
from engine.core.outward import catcher_of
from engine.core.registry import Behaviour, register
from engine.core.run import CannotGoOn, Run
from engine.core.snapshot import ErrorThrown, NoHandlerForError
from engine.core.state import Token
from engine.core.throws import throw_signals


class EndEvent(Behaviour):
    holds_scope = True  # while it waits: for what it has thrown compensation for

    def enter(self, run: Run, token: Token, node: Node) -> None:
        config = cast(EndConfig, node.config) or EndConfig()
        if config.compensate is not None and compensate(run, token, node, config.compensate):
            return
        events = events_in(config)
        error = next((each.error for each in events if each.error is not None), None)
        if error is not None and len(events) > 1:
            self._see_caught(token, node, error)  # before the others are thrown
        for message in (each.message for each in events if each.message is not None):
            send(run, token, node, message)
        terminates = any(each.terminate for each in events)
        if terminates and len(events) == 1:
            run.withdraw_others(token.scope, token)
        run.record(token.scope, "element_left", node.id)
        token.status = "moving"
        throw_signals(run, token, node, [each.signal for each in events if each.signal is not None])
        for code in (each.escalation for each in events if each.escalation is not None):
            if token.alive:
                escalate(run, token, node, code)
        if config.cancel:
            cancel(run, token, node)
        if token.alive and error is not None:
            self._throw(run, token, node, error)
        elif token.alive:  # else an event that interrupts has caught it, or its transaction was cancelled
            if terminates:  # of several after the others, which may fail and then nothing has happened
                run.withdraw_others(token.scope, token)
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
        try:
            throw(run, token, node, ErrorThrown(token.id, code))
        except NoHandlerForError as error:
            raise _uncaught(node, code) from error

    def _see_caught(self, token: Token, node: Node, code: str) -> None:
        if catcher_of(token, "error", code) is None:
            raise _uncaught(node, code)


def _uncaught(node: Node, code: str) -> CannotGoOn:
    return CannotGoOn("uncaught_error", f"{node.name or node.id}: the error {code!r} is caught by nothing around it")


register("end_event", EndEvent())
