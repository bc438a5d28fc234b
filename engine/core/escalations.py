"""Escalations: the first that catches, outwards; it cancels what it stands for only if it interrupts (10.5.1, 13.5.3, 13.5.4).

An escalation that nothing catches is no error: whoever threw it goes on.
"""

from __future__ import annotations

from engine.bpmn.definition import BoundaryConfig, EscalationConfig, Node
from engine.core.data import outward
from engine.core.event_subprocesses import begin
from engine.core.outward import Catcher, catcher_of
from engine.core.run import Run
from engine.core.state import Token
from engine.core.values import Variable


def escalate(run: Run, token: Token, node: Node, code: str) -> None:
    """Throw an escalation. The token that threw it is alive afterwards unless an event that interrupts has caught it."""
    found = catcher_of(token, "escalation", code)
    told = {"code": code, "caught_by": found.event.id if found is not None else None}
    run.record(token.scope, "escalation_thrown", node.id, told)
    if found is None:
        return
    assert isinstance(found.config, EscalationConfig)  # asked for an escalation
    variables = {found.config.code_variable: Variable("string", code)} if found.config.code_variable else {}
    if found.owner is None:
        begin(run, found.scope, found.event, variables)
        return
    emerging = _at_the_border(run, found, found.owner)
    run.assign(found.scope, outward(run, found.scope, found.event, variables), found.event.id)
    run.emerge(emerging, found.event)


def _at_the_border(run: Run, found: Catcher, owner: Token) -> Token:
    """The token that goes on at a boundary event: that of the activity, cancelled, or one more."""
    config: BoundaryConfig = found.event.config
    if not config.interrupting:
        return run.spawn(found.scope, found.event.id)
    run.interrupt(owner)
    return owner
