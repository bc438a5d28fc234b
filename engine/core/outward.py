"""Who catches an error or escalation: from where it is thrown outwards, the first that fits (10.5.6, 13.5.3, 13.5.4).

At each level the boundary events of the activity come first, then the event subprocesses of the scope that it lies in; an
exact code comes before a catch-all. What an event subprocess throws is not caught by itself, and beside an interrupting one
by none of its scope: it has taken the place of everything there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from engine.bpmn.definition import ErrorConfig, EscalationConfig, Node, ProcessDefinition, events_in
from engine.core.state import Scope, Token


@dataclass(frozen=True, slots=True)
class Catcher:
    """An event that catches: at the border of the activity of `owner`, or (owner None) starting a subprocess of `scope`."""

    event: Node
    config: ErrorConfig | EscalationConfig
    scope: Scope
    owner: Token | None


def catcher_of(token: Token, what: str, code: str) -> Catcher | None:
    """Who catches the `what` (error or escalation) of this code that `token` throws."""
    for level in _levels(token, what):
        for wanted in (code, None):
            for catcher in level:
                if catcher.config.code == wanted:
                    return catcher
    return None


def _levels(token: Token, what: str) -> Iterator[list[Catcher]]:
    holder: Token | None = token
    while holder is not None:
        node, scope = holder.node, holder.scope
        if scope.is_iteration:  # boundary events belong to the whole of a looped activity
            holder = scope.parent.owner if scope.parent is not None else None
            continue
        if scope.is_compensating:  # what is undone has completed, and catches nothing any more
            holder = scope.owner
            continue
        yield list(_catchers(node.attached, what, scope, holder))
        if not _interrupts(scope.definition, node):
            definition = scope.definition
            beside = (key for key in definition.event_subprocesses.get(scope.element_id, ()) if key != node.id)
            starts = [start for key in beside for start in definition.starts[key]]
            yield list(_catchers(starts, what, scope, None))
        holder = scope.owner


def _catchers(events: Iterable[str], what: str, scope: Scope, owner: Token | None) -> Iterator[Catcher]:
    for key in events:
        event = scope.definition.nodes[key]
        for each in events_in(event.config):
            config = getattr(each, what, None)
            if config is not None:
                yield Catcher(event, config, scope, owner)


def _interrupts(definition: ProcessDefinition, node: Node) -> bool:
    """Whether a token here stands for an interrupting event subprocess that runs."""
    if node.kind != "event_subprocess":
        return False
    (start,) = definition.starts[node.id]
    return bool(definition.nodes[start].config.interrupting)
