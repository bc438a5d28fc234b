"""BPMN errors: the first that catches, outwards, cancels what it stands for and goes on (10.5.6, 13.5.3, 13.5.4)."""

from __future__ import annotations

from engine.bpmn.definition import ErrorConfig, Node
from engine.core.data import outward
from engine.core.event_subprocesses import begin
from engine.core.outward import catcher_of
from engine.core.run import Run
from engine.core.snapshot import ErrorThrown, NoHandlerForError
from engine.core.state import Token
from engine.core.values import Variable


def throw(run: Run, token: Token, node: Node, trigger: ErrorThrown) -> None:
    """Cancel the activity or scope that catches, with everything inside it, and go on at the event.

    The error's variables become visible where the catching event is. Raises NoHandlerForError, and then nothing changed.
    """
    found = catcher_of(token, "error", trigger.code)
    if found is None:
        raise NoHandlerForError(f"error {trigger.code!r} of {node.id}: nothing catches it: {trigger.message}")
    told = {"code": trigger.code, "message": trigger.message, "thrown_by": node.id}
    run.record(found.scope, "error_caught", found.event.id, {**trigger.detail, **told})
    variables = dict(trigger.variables)
    assert isinstance(found.config, ErrorConfig)  # asked for an error
    if found.config.code_variable:
        variables[found.config.code_variable] = Variable("string", trigger.code)
    if found.config.message_variable:
        variables[found.config.message_variable] = Variable("string", trigger.message)
    if found.owner is None:
        begin(run, found.scope, found.event, variables)
        return
    run.interrupt(found.owner)
    run.assign(found.scope, outward(run, found.scope, found.event, variables), found.event.id)
    run.emerge(found.owner, found.event)
