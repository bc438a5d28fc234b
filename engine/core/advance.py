"""`advance(definition, snapshot, trigger, now, new_id) -> effects`: one step of an instance, pure.

The trigger has happened; a token moves until every token waits for something, rests at an incident, or has ended
(BPMN 2.0.2, chapter 13). Variables: results go to the nearest scope up the chain that has the name, else to the process
scope; the inputs of a subprocess are its own and go with it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import assert_never
from uuid import UUID

import engine.core.compensation
import engine.core.elements  # every module in there registers its kind
import engine.core.loops  # noqa: F401  # and so do these two
from engine.bpmn.definition import Node, ProcessDefinition
from engine.core.beginning import begin_instance
from engine.core.conditions import occur
from engine.core.effects import Effects, InvariantBroken
from engine.core.errors import throw
from engine.core.joins import activate_one
from engine.core.known import NOTHING_KNOWN, Known
from engine.core.registry import behaviour_at, behaviour_of
from engine.core.run import ENTERING, Run
from engine.core.settle import settle
from engine.core.snapshot import (
    Cancelled,
    Completed,
    Continued,
    ErrorThrown,
    EventOccurred,
    NeedsWholeInstance,
    Retried,
    Snapshot,
    Started,
    Trigger,
)
from engine.core.state import Token


def advance(
    definition: ProcessDefinition,
    snapshot: Snapshot,
    trigger: Trigger,
    *,
    now: datetime,
    new_id: Callable[[], UUID],
    known: Known = NOTHING_KNOWN,
) -> Effects:
    """What `trigger` changes in the instance, whose definition is given, and in the others of its case.

    `now` is the database's time, read by expressions alone; durations leave as `due_in_seconds`.
    Raises NeedsWholeInstance if a narrow snapshot shows too little, NeedsDefinition for a call that is not in `known`,
    NoHandlerForError for an error that nothing catches, CannotContinue for a collection that changed on the way,
    InvariantBroken for a trigger that cannot be.
    """
    run = Run(definition, snapshot, now, new_id, known)
    match trigger:
        case Completed():
            token, node = _waiting(run, trigger.token_id)
            behaviour_at(token, node).completed(run, token, node, trigger)
        case Started():
            _start(run, trigger)
        case EventOccurred():
            token, _ = _waiting(run, trigger.token_id, "waiting", "listening")
            event = token.scope.definition.nodes[trigger.element_id]
            behaviour_of(event).occurred(run, token, event, trigger)
        case ErrorThrown():
            token, node = _waiting(run, trigger.token_id)
            throw(run, token, node, trigger)
        case Continued():
            token, node = _waiting(run, trigger.token_id)
            behaviour_at(token, node).continued(run, token, node, trigger)
        case Retried():
            _retry(run, run.token(trigger.token_id))
        case Cancelled():
            _cancel(run, trigger)
        case _:
            assert_never(trigger)
    run.work()
    while activate_one(run) or occur(run):
        run.work()
    return settle(run)


def _waiting(run: Run, token_id: UUID, *statuses: str) -> tuple[Token, Node]:
    token = run.token(token_id)
    if token.status not in (statuses or ("waiting",)):
        raise InvariantBroken(f"token {token_id} at {token.element_id}: expected waiting, found {token.status}")
    return token, token.node


def _start(run: Run, trigger: Started) -> None:
    """A new instance begins with one token at a start event (13.2)."""
    if run.scopes:
        raise InvariantBroken(f"instance {run.snapshot.instance_id}: expected no scope before it starts, found {len(run.scopes)}")
    begin_instance(run, run.open_process(run.instance), trigger.element_id, trigger.variables, trigger.what)


def _retry(run: Run, token: Token) -> None:
    """A failed token tries again: to enter its element, or, if it came so far, only to leave it."""
    if token.status != "failed":
        raise InvariantBroken(f"token {token.id} at {token.element_id}: expected failed, found {token.status}")
    token.settled = False
    token.status = "waiting"
    run.resolved.add(token.id)
    run.record(token.scope, "incident_resolved", token.element_id, {"item_id": str(token.id)})
    node, entering = token.node, token.memory == ENTERING
    if entering:
        run.shed(token, all_leaves=True)  # its row, which remembers that
    if behaviour_of(node).listens:
        run.enter(token, node, again=True)
        run.finish_if_done(token.scope)  # it may be all that kept its scope open
    elif token.flow_id is None and not entering:
        run.leave(token, again=True)
    else:
        run.enter(token, node, again=True)


def _cancel(run: Run, trigger: Cancelled) -> None:
    """The whole instance ends. Its open tasks are named one by one, everything else goes by cascade under one event."""
    if not run.snapshot.whole:
        raise NeedsWholeInstance("cancelling needs every open task")
    for task in run.snapshot.tasks:
        run.effects.cancelled_tasks.append(task.id)
        run.record(run.token(task.token_id).scope, "task_cancelled", task.element_id, {"item_id": str(task.id)})
    for instance in run.instances.values():
        instance.ended = "cancelled"
        if instance.scope is not None:
            run.record(instance.scope, "instance_cancelled", None, {"reason": trigger.reason})
