"""Intermediate catch events (10.5.4, 13.5.2): a timer, message or condition, alone or behind an event-based gateway; a link.

A cycle with a count sends a token at each occurrence, the last one its own; behind a gateway, and without a count, the first
occurrence is the only one.
"""

from collections.abc import Mapping

from engine.bpmn.definition import Node, TimerConfig
from engine.core.catching import arm, arm_again, caught
from engine.core.choices import begin_behind, win
from engine.core.registry import Behaviour, register
from engine.core.run import Run
from engine.core.snapshot import EventOccurred
from engine.core.state import Scope, Token
from engine.core.timers import is_counted
from engine.expressions import ExpressionError


class IntermediateCatchEvent(Behaviour):
    only_waits = True

    def enter(self, run: Run, token: Token, node: Node) -> None:
        if getattr(node.config, "link", None) is not None:  # the throw that led here is all that it waits for
            run.leave(token)
            return
        arm(run, token, node)

    def occurred(self, run: Run, token: Token, node: Node, trigger: EventOccurred) -> None:
        timer: TimerConfig | None = getattr(node.config, "timer", None) if token.element_id == node.id else None
        counted = timer is not None and is_counted(timer, trigger.occurrence)
        caught(run, token, node, trigger, again=counted)
        if token.element_id != node.id:
            win(run, token, node)
        elif counted and self._goes_on(run, token, node, trigger):
            run.emerge(run.spawn(token.scope, node.id), node)
            return
        run.leave(token)

    def _goes_on(self, run: Run, token: Token, node: Node, trigger: EventOccurred) -> bool:
        """Whether the token waits for a further occurrence of its counted cycle, or rests because it could not."""
        try:
            arm_again(run, token, node, trigger)
        except ExpressionError as error:
            run.fail(token, error)
            return True
        return bool(token.leaves)

    def leaves_left(self, node: Node, nodes: Mapping[str, Node]) -> bool:
        return bool(node.config.parts)

    def start_at(self, run: Run, scope: Scope, node: Node) -> None:
        begin_behind(run, scope, node)


register("intermediate_catch_event", IntermediateCatchEvent())
