"""The parts of multiple events (10.5.1): any of them lets the event occur, or (parallel multiple) the last of all.

Which parts have occurred is in the memory of the token that waits. What came with each is kept when it occurs.
"""

from engine.bpmn.definition import Node, event_of
from engine.core.catching import OCCURRED, caught
from engine.core.registry import Behaviour, behaviour_of, register
from engine.core.run import Run
from engine.core.snapshot import EventOccurred
from engine.core.state import Scope, Token


class EventPart(Behaviour):
    def start_at(self, run: Run, scope: Scope, node: Node) -> None:
        event = event_of(scope.definition, node)
        behaviour_of(event).start_at(run, scope, event)

    def occurred(self, run: Run, token: Token, node: Node, trigger: EventOccurred) -> None:
        event = event_of(token.scope.definition, node)
        if not event.config.parallel or self._is_last(run, token, node, event, trigger):
            behaviour_of(event).occurred(run, token, event, trigger)

    def _is_last(self, run: Run, token: Token, node: Node, event: Node, trigger: EventOccurred) -> bool:
        before = (token.memory or {}).get(OCCURRED, [])
        if node.id in before:  # a condition that was false meanwhile
            return False
        token.remember({**(token.memory or {}), OCCURRED: [*before, node.id]})
        if len(before) + 1 == len(token.scope.definition.parts[event.id]):
            return True
        caught(run, token, event, trigger)
        return False


register("event_part", EventPart())
