"""The beginning of an advance: the rows of a snapshot become the scopes and tokens that move."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from engine.core.state import Instance, Scope, Token

if TYPE_CHECKING:
    from engine.core.run import Run


def load(run: Run) -> None:
    """Fill the run with what its snapshot shows: instances, scopes, tokens, and who owns which scope."""
    for other in run.snapshot.others:
        definition = run.known.definitions[other.definition_id]
        run.instances[other.id] = Instance(other.id, other.definition_id, definition, other.business_key, other.started_by, stored=True)
    scopes = _scopes(run)
    for state in run.snapshot.tokens.values():
        token = Token(state.id, scopes[state.scope_id], state.element_id, state.flow_id, state.status, stored=True)
        token.memory = state.memory
        token.scope.tokens[token] = None
        run.tokens[state.id] = token
    if run.snapshot.executions:
        run.executions.load(run.snapshot.executions, scopes)
    if len(scopes) > 1:
        _connect(run, scopes)


def _scopes(run: Run) -> dict[UUID, Scope]:
    scopes: dict[UUID, Scope] = {}
    for seen in run.snapshot.scopes.values():
        instance = run.instances[seen.instance_id] if seen.instance_id is not None else run.instance
        scope = scopes[seen.id] = Scope(seen.id, instance, None, None, seen.element_id)
        if seen.parent_id is None:
            instance.scope = scope
        scope.variables = seen.variables
        scope.stored = True
        scope.unseen = seen.id in run.snapshot.crowded
        scope.counters = seen.counters
        run.scopes.append(scope)
    return scopes


def _connect(run: Run, scopes: dict[UUID, Scope]) -> None:
    """Scopes lie in scopes or, those of called instances, in none; a token owns them, or, iterations and the root's, none does."""
    for seen in run.snapshot.scopes.values():
        scope = scopes[seen.id]
        if seen.parent_id is not None:
            scope.parent = scopes[seen.parent_id]
        if seen.token_id is not None:
            owner = run.token(seen.token_id)
            scope.owner, scope.owner_row, owner.inner = owner, seen.token_id, scope
        elif scope.parent is not None:
            scope.parent.children.append(scope)
    for scope in run.scopes:
        if "begun" in scope.counters and scope.counters["begun"] - scope.counters["completed"] > len(scope.children):
            scope.unseen = True
