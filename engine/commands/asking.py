"""Asking the core: with the definitions of every instance that the snapshot reaches, and of what is called meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

from engine.bpmn.definition import ProcessDefinition
from engine.commands.transaction import CalledMoved, Connection
from engine.core.advance import advance
from engine.core.effects import Effects, InvariantBroken
from engine.core.known import Call, Called, Decidable, DecisionCall, Known, NeedsDecision, NeedsDefinition, NotCallable, NotDecidable
from engine.core.snapshot import Snapshot, Trigger
from engine.db.called import Means, called, calls_ahead, forget, unknown
from engine.db.decisions import decided
from engine.db.definitions import compiled
from engine.frozen import dataclass
from engine.ids import new_id


@dataclass(frozen=True, slots=True)
class Answer:
    """What the core wants changed. `called`: the definitions of instances that begin so, and whether as the newest of their
    key. `calls`: what was called.
    """

    definition: ProcessDefinition
    effects: Effects
    called: Mapping[UUID, bool]
    calls: tuple[Call, ...] = ()


Decisions = dict[DecisionCall, Decidable | NotDecidable]


def ask(
    conn: Connection,
    snapshot: Snapshot,
    trigger: Trigger,
    *,
    now: datetime,
    definition: ProcessDefinition | None = None,
    decisions: Decisions | None = None,
    calls: Means | None = None,
    look: bool = True,
) -> Answer:
    """Ask the core, and find what it does not know of as often as it asks. Raises as `advance` does, and DefinitionRefused.

    `definition`: that of the snapshot's instance, of a caller who has it. `decisions`: those that the command has looked for
    already, to which others are added: one look serves a command, however often it asks. `calls`: those that a lock brought.
    Not to `look`: raises NeedsDefinition or NeedsDecision for what is not known.
    """
    decisions = {} if decisions is None else decisions
    definition = definition or compiled(conn, snapshot.definition_id)
    definitions = {other.definition_id: compiled(conn, other.definition_id) for other in snapshot.others}
    calls = dict(calls or {})
    while True:
        try:
            effects = advance(definition, snapshot, trigger, now=now, new_id=new_id, known=Known(definitions, calls, decisions))
        except NeedsDefinition as needed:
            if not look and unknown(conn, snapshot.tenant_id, [needed.call]):
                raise
            known = [definition, *(found.definition for found in calls.values() if isinstance(found, Called))]
            ahead = (call for each in known for call in calls_ahead(each) if call not in calls)
            calls.update(called(conn, snapshot.tenant_id, needed.call, ahead))
            continue
        except NeedsDecision as needed:
            if not look:
                raise
            decisions.update(decided(conn, snapshot.tenant_id, needed.calls))
            continue
        return Answer(definition, effects, _begun(effects, calls), tuple(calls))


def stale(called: Mapping[UUID, bool], otherwise: str) -> Exception:
    """A write found a guard stale under locks that keep everything but the definitions that are called as it was read."""
    forget(called)
    return CalledMoved(otherwise) if called else InvariantBroken(otherwise)


def _begun(effects: Effects, calls: Mapping[Call, Called | NotCallable]) -> dict[UUID, bool]:
    if not effects.new_instances:
        return {}
    begun = {instance.definition_id for instance in effects.new_instances}
    newest = {found.id for call, found in calls.items() if isinstance(found, Called) and call.binding == "latest"}
    return {definition: definition in newest for definition in begun}
