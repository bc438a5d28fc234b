"""BPMN errors: from the activity that throws, outwards, to the first boundary event that catches (10.5.6, 13.5.3)."""

from __future__ import annotations

from engine.bpmn.definition import ErrorConfig, Node
from engine.core.run import Run
from engine.core.snapshot import ErrorThrown, NoHandlerForError
from engine.core.state import Token
from engine.core.values import Variable


def throw(run: Run, token: Token, node: Node, trigger: ErrorThrown) -> None:
    """Cancel the activity that catches, with everything inside it, and go on at its boundary event.

    The error's variables become visible where the catching event is. Raises NoHandlerForError, and then nothing changed.
    """
    found = _catcher(run, token, trigger.code)
    if found is None:
        raise NoHandlerForError(f"error {trigger.code!r} of {node.id}: no boundary event catches it: {trigger.message}")
    owner, event, config = found
    told = {"code": trigger.code, "message": trigger.message, "thrown_by": node.id}
    run.record("error_caught", event.id, {**trigger.detail, **told})
    run.interrupt(owner)
    variables = dict(trigger.variables)
    if config.code_variable:
        variables[config.code_variable] = Variable("string", trigger.code)
    if config.message_variable:
        variables[config.message_variable] = Variable("string", trigger.message)
    run.assign(owner.scope, variables, event.id)
    run.emerge(owner, event)


def _catcher(run: Run, token: Token, code: str) -> tuple[Token, Node, ErrorConfig] | None:
    """The innermost activity with an event for this code, an exact one before a catch-all."""
    holder: Token | None = token
    while holder is not None:
        events = [run.nodes[event] for event in run.nodes[holder.element_id].attached]
        for wanted in (code, None):
            for event in events:
                config = getattr(event.config, "error", None)
                if config is not None and config.code == wanted:
                    return holder, event, config
        holder = holder.scope.owner
    return None
