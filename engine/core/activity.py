"""What all activities share: boundary events are armed with the activity, its result becomes variables, it is left."""

from __future__ import annotations

from collections.abc import Mapping

from engine.bpmn.definition import Node
from engine.core.catching import arm_border
from engine.core.data import outward
from engine.core.registry import Behaviour
from engine.core.run import CannotGoOn, Run
from engine.core.snapshot import Completed
from engine.core.state import Token
from engine.core.values import Variable
from engine.expressions import ExpressionError


class Activity(Behaviour):
    """An activity that waits for work (13.3.2). Subclasses say how the work begins, and what of its result is kept."""

    is_activity = True

    def begin(self, run: Run, token: Token, node: Node) -> None:
        """Hang what does the work off the token."""
        raise NotImplementedError(f"{type(self).__name__} does not say how its work begins")

    def result(self, run: Run, token: Token, node: Node, trigger: Completed) -> Mapping[str, Variable]:
        """The variables that the finished work sets."""
        return trigger.variables

    def enter(self, run: Run, token: Token, node: Node) -> None:
        # The boundary events of a looped activity belong to all iterations together.
        if token.scope.is_iteration or arm_border(run, token, node):
            self.begin(run, token, node)

    def completed(self, run: Run, token: Token, node: Node, trigger: Completed) -> None:
        run.record(token.scope, trigger.event, node.id, trigger.detail)
        try:
            values = outward(run, token.scope, node, self.result(run, token, node, trigger))
        except (ExpressionError, CannotGoOn) as error:
            run.fail(token, error, again=True)  # at the activity, whose work a retry does again: there is no result to keep
            return
        run.assign(token.scope, values, node.id)
        if node.id in token.scope.definition.compensable:
            token.results = values
        run.leave(token)
