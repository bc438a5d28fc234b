"""Event subprocesses: listening for their events from when their scope opens, beginning when one occurs (10.3.5, 13.5.4).

One that a timer, message, signal or condition starts has a token in the scope around it that is `listening`: what it waits
for hangs off it, and it does not keep that scope open. Errors and escalations need none: `engine.core.outward` finds who catches them. One
that interrupts cancels every other token of its scope, however many there are, and begins once; the others begin each time
and go on listening. The scope ends when its last token, those of event subprocesses included, is gone.
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.bpmn.definition import Node, ProcessDefinition, StartConfig, occurs
from engine.core.catching import arm, arm_again, tell
from engine.core.data import declare, outward
from engine.core.run import CannotGoOn, Run
from engine.core.snapshot import EventOccurred
from engine.core.state import Scope, Token
from engine.core.values import Variable
from engine.expressions import ExpressionError


def listen(run: Run, scope: Scope) -> None:
    """A scope has opened: its event subprocesses begin to listen."""
    definition = scope.definition
    for key in definition.event_subprocesses.get(scope.element_id, ()):
        if occurs(start_of(definition, key).config):
            run.enter(run.spawn(scope, key), definition.nodes[key], again=True)


def start_of(definition: ProcessDefinition, key: str) -> Node:
    """The one start event of an event subprocess."""
    (start,) = definition.starts[key]
    return definition.nodes[start]


def wait_for_start(run: Run, listener: Token, node: Node) -> None:
    """Hang off the listener what starts its subprocess. A finite cycle that is over already never will."""
    listener.status = "listening"
    arm(run, listener, start_of(listener.scope.definition, node.id))
    if not (listener.leaves or listener.memory):
        run.discard(listener)


def occurred(run: Run, listener: Token, event: Node, trigger: EventOccurred) -> None:
    """The timer, message, signal or condition of an event subprocess occurred for the token that listened."""
    config: StartConfig = event.config
    tell(run, listener.scope, event, trigger, again=not config.interrupting)
    if not config.interrupting:  # else the listener goes with all the others
        _listen_again(run, listener, event, trigger)
    begin(run, listener.scope, event, trigger.variables)


def begin(run: Run, scope: Scope, event: Node, variables: Mapping[str, Variable]) -> None:
    """An event subprocess of `scope` begins at its start event; one that interrupts cancels all else in the scope first."""
    node = scope.definition.nodes[event.parent or ""]
    config: StartConfig = event.config
    token = run.spawn(scope, node.id)
    if config.interrupting:
        run.withdraw_others(scope, token)
        scope.begin_no_more()
    run.record(scope, "element_entered", node.id)
    inner = run.add_scope(scope, token, node.id)
    declare(run, inner, node)
    run.assign(inner, outward(run, inner, event, variables), event.id)
    listen(run, inner)
    run.begin_at(inner, event.id)


def _listen_again(run: Run, listener: Token, event: Node, trigger: EventOccurred) -> None:
    config: StartConfig = event.config
    try:
        arm_again(run, listener, event, trigger)
    except (ExpressionError, CannotGoOn) as error:
        run.fail(listener, CannotGoOn("expression", f"{event.name or event.id} cannot wait for its next occurrence: {error}"))
        return
    if not (listener.leaves or listener.memory or config.parts):
        run.discard(listener)
