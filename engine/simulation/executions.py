"""Completed executions, as the table keeps them: inserts and moves, then deletes with their cascades."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from engine.core.effects import Effects, InvariantBroken
from engine.core.snapshot import ExecutionState


def keep_executions(rows: dict[UUID, ExecutionState], effects: Effects) -> None:
    """Change `rows` as the effects say. Raises InvariantBroken if they name one twice."""
    _check_named_once(rows, effects)
    for handed in effects.handed_over:
        for row in [row for row in rows.values() if row.scope_id == handed.from_scope]:
            rows[row.id] = replace(row, scope_id=handed.scope_id, within_id=handed.within_id)
    for moved in effects.moved_executions:
        rows[moved.id] = replace(rows[moved.id], scope_id=moved.scope_id, within_id=moved.within_id)
    for new in effects.new_executions:
        rows[new.id] = ExecutionState(new.id, new.scope_id, new.within_id, new.element_id, new.number, new.variables)
    for gone in [*effects.gone_executions, *(row.id for row in rows.values() if row.scope_id in effects.forgotten_scopes)]:
        _delete(rows, gone)
    if effects.forgets:
        rows.clear()


def _check_named_once(rows: dict[UUID, ExecutionState], effects: Effects) -> None:
    lie_in: dict[UUID | None, set[UUID]] = {}
    for row in rows.values():
        lie_in.setdefault(row.scope_id, set()).add(row.id)
    named = [{moved.id for moved in effects.moved_executions}]
    named += [lie_in.get(each.from_scope, set()) for each in effects.handed_over]
    named += [set(effects.gone_executions).union(*(lie_in.get(scope, set()) for scope in effects.forgotten_scopes))]
    if sum(map(len, named)) != len(set().union(*named)):
        raise InvariantBroken("effects name an execution twice")
    if again := [new.id for new in effects.new_executions if new.id in rows]:
        raise InvariantBroken(f"executions {again} are there already")


def _delete(rows: dict[UUID, ExecutionState], key: UUID) -> None:
    if rows.pop(key, None) is not None:
        for inner in [row.id for row in rows.values() if row.within_id == key]:
            _delete(rows, inner)
