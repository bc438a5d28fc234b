"""Completed executions that can be compensated: remembered when an activity is left, kept as rows (10.7, 13.5.5).

An execution lies in the scope in which its activity stands. That of a subprocess takes along what was completed inside it,
with the variables that the subprocess had; so the data of each is there when it is compensated, however late. The completed
instances of a looped activity wait in its body, until the activity itself has completed: what is interrupted was not.

Nothing here runs where a definition has nothing that can be compensated (`ProcessDefinition.compensable` is empty).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from uuid import UUID

from engine.core.effects import HandedOver, MovedExecution, NewExecution
from engine.core.snapshot import ExecutionState
from engine.core.state import Execution, Scope, Token
from engine.core.values import Variable

if TYPE_CHECKING:
    from engine.bpmn.definition import Node
    from engine.core.run import Run

PER_STEP = 1_000_000
"""Room for the executions of one step in their order, which goes by the revision of the case first."""


class Executions:
    """What one advance knows of completed executions: those loaded, those new, and what was handed over unseen."""

    def __init__(self, revision: int, *, begins: bool) -> None:
        self.known: list[Execution] = []
        self.handed: list[tuple[Scope, Scope | Execution]] = []
        self._looked: set[Scope] = set()
        self._number = 0 if begins else (revision + 1) * PER_STEP

    def number(self) -> int:
        """The place of the next one in the order of completion. Steps of a case have a revision each."""
        self._number += 1
        return self._number

    def first_look(self, scope: Scope) -> bool:
        """Whether nobody has looked yet for what is undone next in this scope: of that a narrow snapshot has one, if there is any."""
        first = scope not in self._looked
        self._looked.add(scope)
        return first

    def load(self, states: tuple[ExecutionState, ...], scopes: Mapping[UUID, Scope]) -> None:
        """Those of a snapshot."""
        found: dict[UUID, Execution] = {}
        for state in states:
            home = scopes[state.scope_id] if state.scope_id is not None else None
            execution = found[state.id] = Execution(state.id, home, state.element_id, state.number, state.variables)
            execution.stored = True
        for state in states:
            execution = found[state.id]
            if state.within_id is not None:
                execution.place = found[state.within_id]
            execution.home = execution.place
            _hold(execution)
        self.known.extend(found.values())


def remember(run: Run, token: Token, node: Node) -> None:
    """The activity of `token` has completed, or one instance of it: keep what its compensation will need."""
    ended, results = token.ended, token.results
    token.ended, token.results = None, {}
    scope = token.scope
    if node.id not in scope.definition.compensable:
        return
    if node.loop is not None and not scope.is_iteration:
        if ended is not None:
            hand_over(run, ended, scope)  # its instances have completed with it
        return
    host = scope.parent if scope.is_iteration else scope
    assert host is not None  # an iteration lies in a body
    variables = {**(scope.variables if scope.is_iteration else {}), **(ended.variables if ended is not None else {}), **results}
    execution = Execution(run.new_id(), host, node.id, run.executions.number(), variables)
    run.executions.known.append(execution)
    _hold(execution)
    if ended is not None:
        hand_over(run, ended, execution)


def hand_over(run: Run, scope: Scope, place: Scope | Execution) -> None:
    """Everything that was completed in `scope` now lies in `place`; what was not loaded too."""
    for execution in scope.executions:
        execution.place = place
        _hold(execution)
    scope.executions = []
    handed = run.executions.handed
    handed[:] = [(source, place if target is scope else target) for source, target in handed]
    if scope.stored:
        handed.append((scope, place))


def take(execution: Execution, place: Scope | Execution) -> None:
    """Move one execution, with what lies within it."""
    held = execution.place.executions if execution.place is not None else []
    if execution in held:
        held.remove(execution)
    execution.place = place
    _hold(execution)


def spend(execution: Execution) -> None:
    """It is being compensated: no one else will."""
    if execution.place is not None:
        execution.place.executions.remove(execution)
    execution.alive = False


def scope_of(execution: Execution) -> Scope | None:
    """The scope in which it lies, at whatever depth; None once it was taken from there."""
    place = execution.place
    while isinstance(place, Execution):
        place = place.place
    return place


def _hold(execution: Execution) -> None:
    assert execution.place is not None  # every execution lies somewhere once it is loaded
    execution.place.executions.append(execution)


# ---- into rows


def settle_executions(run: Run) -> None:
    """New, moved and gone rows, each named by one of them alone.

    What was not loaded is moved, or deleted, by the scope in which it lies; but not where a loaded one goes its own way.
    """
    effects, executions = run.effects, run.executions
    handed = {source: target for source, target in executions.handed if _lives(target) and _all_went(executions, source, target)}
    stored = [each for each in executions.known if each.stored and each.home not in handed]
    moved = [each for each in stored if each.alive and each.place is not each.home and _lives(each.place)]
    one_by_one = {each.home for each in moved}
    for source, target in handed.items():
        effects.handed_over.append(HandedOver(source.id, *_place(target)))
    for each in moved:
        effects.moved_executions.append(MovedExecution(each.id, *_place(each.place)))
    for each in stored:
        if not each.alive or (each.home in one_by_one and not _lives(each.place)):
            effects.gone_executions.append(each.id)
    for each in executions.known:
        if not each.stored and each.alive and _lives(each.place):
            variables = {name: Variable(kept.type, kept.value) for name, kept in each.variables.items()}  # of large ones, too
            row = NewExecution(each.id, *_place(each.place), each.element_id, each.number, variables)
            effects.new_executions.append(row)
    for scope in run.scopes:
        if scope.stored and not scope.alive and not scope.is_iteration and scope not in handed and scope not in one_by_one:
            effects.forgotten_scopes.append(scope.id)


def _all_went(executions: Executions, source: Scope, target: Scope | Execution) -> bool:
    """Whether all that was loaded of the scope went where the scope's executions went, so that one move serves for all."""
    return all(each.alive and each.place is target for each in executions.known if each.stored and each.home is source)


def _lives(place: Scope | Execution | None) -> bool:
    while isinstance(place, Execution):
        if not place.alive:
            return False
        place = place.place
    return place is not None and place.alive


def _place(place: Scope | Execution | None) -> tuple[UUID | None, UUID | None]:
    """The scope, or else the execution, that a row names."""
    return (place.id, None) if isinstance(place, Scope) else (None, place.id if place is not None else None)
