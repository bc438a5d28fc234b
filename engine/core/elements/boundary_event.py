"""Boundary events (10.5.4, 13.5.3): on a timer or a message; one that interrupts cancels its activity, the other spawns a token."""

from typing import cast

from engine.bpmn.definition import BoundaryConfig, Node
from engine.core.catching import arm_again, caught, tell
from engine.core.compensation import is_turning_back
from engine.core.effects import InvariantBroken
from engine.core.registry import Behaviour, register
from engine.core.run import CannotGoOn, Run
from engine.core.snapshot import EventOccurred
from engine.core.state import Token
from engine.expressions import ExpressionError


class BoundaryEvent(Behaviour):
    def enter(self, run: Run, token: Token, node: Node) -> None:
        """No flow leads to a boundary event; a retry only leaves it."""
        run.leave(token)

    def occurred(self, run: Run, token: Token, node: Node, trigger: EventOccurred) -> None:
        config = cast(BoundaryConfig, node.config)
        if token.element_id != config.attached_to:
            raise InvariantBroken(f"token {token.id}: expected it at {config.attached_to} for {node.id}, found it at {token.element_id}")
        if is_turning_back(run, token):
            tell(run, token.scope, node, trigger, again=False)
            return
        if config.interrupting:
            caught(run, token, node, trigger, interrupts=True)
            run.emerge(token, node)
            return
        caught(run, token, node, trigger, again=True)
        second = run.spawn(token.scope, node.id)
        try:
            arm_again(run, token, node, trigger)
        except (ExpressionError, CannotGoOn) as error:
            run.record(token.scope, "element_entered", node.id)
            run.fail(second, CannotGoOn("expression", f"{node.name or node.id} cannot wait for its next occurrence: {error}"))
            return
        run.emerge(second, node)


register("boundary_event", BoundaryEvent())
