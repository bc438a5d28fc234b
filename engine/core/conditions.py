"""Conditional events (10.5.5, 13.5.2): looked at when they begin to wait, and when a variable that they see has changed.

One occurs when its condition is true as it begins to wait, and whenever it has become true. What it was last, true or false,
is kept in the memory of the token that waits, so an occurrence is not missed and not repeated. Changes are looked at when
nothing moves any more, as the step leaves them: what comes and goes within a step is not seen. Outer scopes come first, as
what interrupts there ends what lies within. What occurs may change variables; that is looked at again, until all rests, and the
limit of one step ends a chain that never does.

A name that does not exist yet makes a condition not true: it waits for just that. Any other failure is an incident, of a
token that waits for nothing else. Where something else goes on (the activity at whose border the event stands, the other
events behind a gateway) the condition is not true, history says why, and the next change looks again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.bpmn.definition import ConditionConfig, Node, ProcessDefinition, event_of
from engine.core.registry import behaviour_of
from engine.core.run import CannotGoOn, Run
from engine.core.snapshot import NeedsWholeInstance
from engine.core.state import Scope, Token
from engine.expressions import ExpressionError, MissingName

THROWS = ("intermediate_throw_event", "end_event")
CONDITIONS = "conditions"  # in a token's memory: event -> what its condition was last, true or false, or why it failed


def watch(run: Run, token: Token, event: Node, condition: ConditionConfig) -> None:
    """`token` begins to wait for a condition, which occurs at once if it is true already."""
    holds = _holds(run, token, event, condition)
    _keep(token, event, holds)
    if holds:
        run.due.append((token, event))


def occurs_at_once(run: Run, token: Token) -> bool:
    """Whether a condition that the token has begun to wait for is true already and takes the place of what it was about to do."""
    due = (event.config for each, event in run.due if each is token)
    return any(getattr(config, "interrupting", True) and not config.parallel for config in due)


def occur(run: Run) -> bool:
    """Look at the conditions that see what has changed; false if none has become true, or failed the token that waits for it."""
    changed, run.changed = run.changed, {}
    seen = {scope: names for scope, names in changed.items() if scope.alive and _concerns(_watched(scope.definition).names, names)}
    if not seen:
        return False
    before = len(run.due), len(run.effects.history)
    for scope in sorted((scope for scope in run.scopes if scope.alive), key=lambda scope: (len(scope.path()), scope.id)):
        names = _visible(scope, seen)
        if names:
            _see(run, scope, names)
            for token in sorted(scope.tokens, key=lambda token: token.id):
                if token.memory and CONDITIONS in token.memory:
                    _look(run, token, names)
    return (len(run.due), len(run.effects.history)) != before


def _look(run: Run, token: Token, names: frozenset[str]) -> None:
    """Look again at the conditions of a token that read one of these names."""
    definition = token.scope.definition
    for event, reads in _watched(definition).events:
        before = (token.memory or {}).get(CONDITIONS, {}).get(event.id)
        if before is None or not _concerns(reads, names):
            continue
        try:
            holds = _holds(run, token, event, event.config.condition)
        except CannotGoOn as error:
            _failed(run, token, event, error)
            continue
        if holds != before:
            _keep(token, event, holds)
        if holds and before is not True:
            run.due.append((token, event))


def _holds(run: Run, token: Token, event: Node, condition: ConditionConfig) -> bool:
    """Raises CannotGoOn for a condition that is neither true nor false."""
    expression = condition.expression
    try:
        value = run.value(expression, token.scope)
    except MissingName:
        return False
    except ExpressionError as error:
        raise CannotGoOn("expression", f"condition {expression.text} of {event.name or event.id}: {error}") from error
    if value is True or value is False:
        return bool(value)
    raise CannotGoOn("expression", f"condition {expression.text} of {event.name or event.id}: expected true or false, found {value!r:.200}")


def _failed(run: Run, token: Token, event: Node, error: CannotGoOn) -> None:
    if token.status == "listening" or token.element_id == event.id:
        run.fail(token, error)
    elif (token.memory or {})[CONDITIONS][event.id] != str(error):
        _keep(token, event, str(error))
        run.record(token.scope, "condition_failed", event_of(token.scope.definition, event).id, {"message": str(error)})


def _keep(token: Token, event: Node, holds: bool | str) -> None:
    memory = token.memory or {}
    token.remember({**memory, CONDITIONS: {**memory.get(CONDITIONS, {}), event.id: holds}})


# ---- where a change is seen, and by whom


def _visible(scope: Scope, changed: Mapping[Scope, set[str]]) -> frozenset[str]:
    """The names that changed in this scope and around it."""
    names: frozenset[str] = frozenset()
    around: Scope | None = scope
    while around is not None:
        names |= changed.get(around, frozenset())
        around = around.parent
    return names


def _see(run: Run, scope: Scope, names: frozenset[str]) -> None:
    """A change must be seen by everybody who waits in this scope, or in one within it that was not loaded."""
    watched = _watched(scope.definition)
    if scope.unseen and _concerns(watched.out_of_sight.get(scope.element_id, frozenset()), names):
        raise NeedsWholeInstance(f"scope {scope.id} of {scope.element_id or 'the process'}: conditions in it were not loaded")
    if run.snapshot.whole:
        return
    for token in scope.tokens:
        closed = token.settled and token.status == "waiting" and token.inner is None and behaviour_of(token.node).holds_scope
        # What a throw or end event undoes stands beside it.
        inside = scope.element_id if token.node.kind in THROWS else token.element_id
        if closed and _concerns(watched.within.get(inside, frozenset()), names):
            raise NeedsWholeInstance(f"element {token.element_id}: conditions inside it were not loaded")


@dataclass(frozen=True, slots=True)
class _Watched:
    """The conditional events of a definition, in its order, each with the names that it reads, and those by where it waits.

    `within`: below an element, event subprocesses included. `out_of_sight`: below it (None: the process), as far as a narrow
    snapshot may not show it; who listens directly in a scope is always shown.
    """

    events: tuple[tuple[Node, frozenset[str]], ...]
    names: frozenset[str]
    within: Mapping[str | None, frozenset[str]]
    out_of_sight: Mapping[str | None, frozenset[str]]


def _watched(definition: ProcessDefinition) -> _Watched:
    """Worked out once for each definition."""
    found: _Watched | None = definition.derived.get("watched")
    if found is None:
        found = definition.derived["watched"] = _survey(definition)
    return found


def _survey(definition: ProcessDefinition) -> _Watched:
    nodes = [node for node in definition.nodes.values() if getattr(node.config, "condition", None) is not None]
    events = tuple((node, node.config.condition.expression.names) for node in nodes)
    within: dict[str | None, frozenset[str]] = {}
    out_of_sight: dict[str | None, frozenset[str]] = {}
    for event, names in events:
        starts = event_of(definition, event).kind == "start_event"
        place = definition.nodes[event.parent].parent if starts and event.parent is not None else event.parent
        hidden = not starts
        while True:
            within[place] = within.get(place, frozenset()) | names
            if hidden:
                out_of_sight[place] = out_of_sight.get(place, frozenset()) | names
            if place is None:
                break
            hidden, place = True, definition.nodes[place].parent
    return _Watched(events, within.get(None, frozenset()), within, out_of_sight)


def _concerns(watching: frozenset[str], changed: set[str] | frozenset[str]) -> bool:
    """Whether any of these names matters to conditions that read those; one that asks what time it is looks at every change."""
    return not watching.isdisjoint(changed) or "now" in watching
