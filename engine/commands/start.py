"""Starting a case: by a person, by a start timer, or by whoever correlates a message with a start event."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import errors

from engine.bpmn.definition import ProcessDefinition, event_of, none_start
from engine.commands.asking import ask
from engine.commands.complete_task import next_task
from engine.commands.gathering import gathering
from engine.commands.may import may
from engine.commands.outcome import Actor, FieldProblem, InstanceStarted, Refusal, Rejected
from engine.commands.requests import Request, is_repeat, recorded, request_for
from engine.commands.step import NEVER, answer, request_member
from engine.commands.transaction import Connection, command, transaction
from engine.core.effects import Effects, Event, InvariantBroken
from engine.core.snapshot import Snapshot, Started
from engine.core.values import Variable, accept
from engine.db.apply import Change, write
from engine.db.called import forget
from engine.db.definitions import DefinitionRefused, compiled, newest_known, reads_clock, remember_newest
from engine.db.session import cursor_of
from engine.failpoints import commit_point
from engine.frozen import dataclass
from engine.ids import new_id

LOOKS = 5  # how often a definition may change between the read and the guarded write
MAX_BUSINESS_KEY = 255  # characters: it is part of an index key
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")

# The newest version; one that is being deleted only when there is no other.
_NEWEST = (
    "SELECT id, version, status, has_none_start, baton_now() FROM process_definition"
    " WHERE tenant_id = %(tenant_id)s AND key = %(key)s AND (%(version)s::int IS NULL OR version = %(version)s)"
    " ORDER BY status = 'deleting', version DESC LIMIT 1"
)


@command
def start_instance(
    conn: Connection,
    key: str,
    *,
    actor: Actor,
    variables: Mapping[str, Any],
    business_key: str | None = None,
    version: int | None = None,
    request_id: str | None = None,
) -> InstanceStarted | Rejected:
    """Start an instance of the newest version of `key`, or of the given one, at its none start event.

    Locks: the definition, FOR KEY SHARE. Refuses: NOT_FOUND, NOT_ALLOWED, DEFINITION_SUSPENDED, DEFINITION_DELETING,
    INVALID (variables, business key, no none start event), UNSUPPORTED (stored earlier, refused by newer rules).
    """
    request = request_for(actor, request_id, "start_instance", key, [version, business_key, variables])
    if not may(actor, "start", "definition"):
        return Rejected(Refusal.NOT_ALLOWED)
    accepted, problems = accept(variables)
    invalid = (*(FieldProblem(name, text) for name, text in problems), *_business_key_problems(business_key))
    try:
        outcome = _start(conn, key, version, actor, accepted, business_key, request, invalid)
    except errors.UniqueViolation as error:
        if request is None or not is_repeat(error):
            raise
        outcome = recorded(conn, request)
    if isinstance(outcome, Rejected):
        outcome = answer(conn, "start_instance", actor, outcome, request)
    result: InstanceStarted | Rejected = outcome
    return result


def _start(
    conn: Connection,
    key: str,
    version: int | None,
    actor: Actor,
    variables: Mapping[str, Variable],
    business_key: str | None,
    request: Request | None,
    invalid: tuple[FieldProblem, ...],
) -> Any:
    if version is None and not invalid and (at_once := _by_memory(conn, key, actor, variables, business_key, request)) is not None:
        return at_once
    for _ in range(LOOKS):
        row = cursor_of(conn).execute(_NEWEST, {"tenant_id": actor.tenant_id, "key": key, "version": version}).fetchone()
        if row is None:
            return Rejected(Refusal.NOT_FOUND)
        definition_id, found_version, status, has_none_start, now = row
        refused = refusal_of(status, definition_id) or _unusable(key, has_none_start, invalid)
        if refused is not None:
            return refused
        try:
            definition = compiled(conn, definition_id)
        except DefinitionRefused as refusal:
            return Rejected(Refusal.UNSUPPORTED, str(refusal), problems=refusal.problems)
        case = NewCase(
            definition_id, definition, actor.tenant_id, _start_of(definition), "none", variables, business_key, actor.username, now
        )
        begun = begin(conn, case, request=request, outcome=lambda b, v=found_version: _outcome(b, key, v, actor))
        if begun is not None:
            if version is None and not reads_clock(definition):
                remember_newest(conn, actor.tenant_id, key, (definition_id, found_version))
            return _outcome(begun, key, found_version, actor)
    raise InvariantBroken(f"start of {key}: expected an active definition or a reason within {LOOKS} looks, found neither")


def _by_memory(
    conn: Connection, key: str, actor: Actor, variables: Mapping[str, Variable], business_key: str | None, request: Request | None
) -> InstanceStarted | None:
    """Start without a look, in one statement, what this process started before. None: look first."""
    known = newest_known(conn, actor.tenant_id, key)
    if known is None:
        return None
    definition_id, version = known
    try:
        definition = compiled(conn, definition_id)
    except DefinitionRefused:
        return None
    # NEVER: only processes that do not ask for the time are remembered.
    case = NewCase(
        definition_id, definition, actor.tenant_id, _start_of(definition), "none", variables, business_key, actor.username, NEVER
    )
    begun = begin(conn, case, leaf="start_newest", request=request, outcome=lambda b: _outcome(b, key, version, actor))
    if begun is None:
        remember_newest(conn, actor.tenant_id, key, None)
        return None
    return _outcome(begun, key, version, actor)


def refusal_of(status: str, definition_id: UUID | None = None) -> Rejected | None:
    """Why nothing may be started of a definition in this status."""
    match status:
        case "active":
            return None
        case "suspended":
            return Rejected(Refusal.DEFINITION_SUSPENDED, item_id=definition_id)
        case "deleting":
            return Rejected(Refusal.DEFINITION_DELETING)
    raise InvariantBroken(f"definition: expected active, suspended or deleting, found {status!r}")


def _unusable(key: str, has_none_start: bool, invalid: tuple[FieldProblem, ...]) -> Rejected | None:
    if not has_none_start:
        problem = FieldProblem("key", f"expected a process that people can start, found {key}, which only an event or a call starts")
        return Rejected(Refusal.INVALID, problem.message, problems=(problem,))
    return Rejected(Refusal.INVALID, problems=invalid) if invalid else None


def _business_key_problems(business_key: str | None) -> tuple[FieldProblem, ...]:
    if business_key is None:
        return ()
    if len(business_key) > MAX_BUSINESS_KEY:
        return (FieldProblem("business_key", f"expected at most {MAX_BUSINESS_KEY} characters, found {len(business_key)}"),)
    if _CONTROL.search(business_key):
        return (FieldProblem("business_key", "expected text without control characters"),)
    return ()


def _start_of(definition: ProcessDefinition) -> str:
    found = none_start(definition)
    if found is None:
        raise InvariantBroken(f"process {definition.key}: expected a none start event, found none")
    return found


def _outcome(begun: Begun, key: str, version: int, actor: Actor) -> InstanceStarted:
    return InstanceStarted(
        begun.instance_id, begun.definition_id, key, version, begun.effects.ended is not None, next_task(begun.effects.tasks, actor)
    )


# ---- what every start has in common


@dataclass(frozen=True, slots=True)
class NewCase:
    """An instance to be. `what`: none | timer | message | signal. `now`: the database's time, as read just before."""

    definition_id: UUID
    definition: ProcessDefinition
    tenant_id: str
    element_id: str
    what: str
    variables: Mapping[str, Variable]
    business_key: str | None
    started_by: str
    now: datetime


@dataclass(frozen=True, slots=True)
class Begun:
    instance_id: UUID
    definition_id: UUID
    effects: Effects
    at: datetime | None = None


def begin(
    conn: Connection,
    case: NewCase,
    *,
    leaf: str = "start",
    leaf_id: UUID | None = None,
    because: Event | None = None,
    request: Request | None = None,
    outcome: Any = None,
    beside: Callable[[Begun], Mapping[str, Any]] | None = None,
) -> Begun | None:
    """Start the case in a transaction of its own; None if its definition is no longer active, or what starts it is gone.

    `outcome`: from what began, what a repeat of `request` shall be told. `beside`: the parameters of what is written besides.
    """
    change, begun = prepare(conn, case, leaf=leaf, leaf_id=leaf_id, because=because, request=request, outcome=outcome)
    if beside is not None:
        change.parameters = {**change.parameters, **beside(begun)}
    if change.must_lock_first:
        with transaction(conn):
            at = write(conn, change)
    else:
        with commit_point(conn, "command.before_commit"):
            at = write(conn, change)
    if at is None:
        forget(change.called)
        return None
    return Begun(begun.instance_id, begun.definition_id, begun.effects, at)


def prepare(
    conn: Connection,
    case: NewCase,
    *,
    leaf: str = "start",
    leaf_id: UUID | None = None,
    fence: int | None = None,
    because: Event | None = None,
    request: Request | None = None,
    outcome: Any = None,
) -> tuple[Change, Begun]:
    """Ask the core for a new case. The write takes the definition FOR KEY SHARE and, with `leaf`, ends what started it.

    Who holds a transaction open writes the change in it; if that finds a guard stale, `forget(change.called)` before the next
    look. `because`: an event put before all others.
    """
    instance_id = new_id()
    snapshot = Snapshot(
        tenant_id=case.tenant_id,
        instance_id=instance_id,
        root_id=instance_id,
        definition_id=case.definition_id,
        business_key=case.business_key,
        revision=0,
        scopes={},
        tokens={},
        started_by=case.started_by,
    )
    answer = ask(conn, snapshot, Started(case.element_id, case.variables, case.what), now=case.now, definition=case.definition)
    effects = answer.effects
    if because is not None:
        event = event_of(case.definition, case.definition.nodes[case.element_id])  # what started it may be a part of it
        effects.history.insert(0, replace(because, element_id=event.id))
    begun = Begun(instance_id, case.definition_id, effects)
    text, parameters = request_member(request, outcome(begun) if outcome and request else None)
    parameters = {**parameters, **gathering(case.definition, case.element_id, case.business_key)}
    change = Change(
        leaf=leaf,
        leaf_id=leaf_id,
        fence=fence,
        snapshot=snapshot,
        definition=case.definition,
        effects=effects,
        called=answer.called,
        actor=case.started_by,
        request=text,
        parameters=parameters,
    )
    return change, begun
