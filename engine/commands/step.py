"""One step of a case, whichever command takes it: load, judge, ask the core, write.

The optimistic way: an unlocked read of one statement, the core, ONE guarded write in autocommit. If that found its
guards stale, or if it would be wrong or would lose too often (`Change.must_lock_first`), lock first: BEGIN, lock and
load, judge again, the core, the same write, COMMIT. Never a second optimistic try.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from psycopg import errors

from engine.commands.asking import Decisions, ask
from engine.commands.audit import Audit, note
from engine.commands.outcome import Actor, Refusal, Rejected
from engine.commands.requests import WRITE_REQUEST, Request, encode, is_repeat, recorded, refuse
from engine.commands.transaction import Connection, transaction
from engine.core.decisions import calls_ahead as decisions_ahead
from engine.core.effects import Effects, InvariantBroken
from engine.core.known import Call, DecisionCall, NeedsDecision, NeedsDefinition
from engine.core.snapshot import NeedsWholeInstance, Trigger
from engine.core.values import NeedsVariables
from engine.db.apply import Change, write
from engine.db.called import Means, calls_ahead, forget, unknown
from engine.db.definitions import DefinitionRefused, asks_the_time, compiled
from engine.db.load import Loaded, lock_case, read_case
from engine.db.relock import Seen, lock_moved_case
from engine.failpoints import commit_point
from engine.frozen import dataclass

NEVER = datetime.min.replace(tzinfo=UTC)
"""Stands for "when" in an outcome until the database has said it."""

LOOKS = 5  # how often what is called may change between the look and the guarded write

_REQUEST = WRITE_REQUEST.format(outcome="%(outcome)s::jsonb", source="go")
_REQUEST_AT = WRITE_REQUEST.format(outcome="%(outcome)s::jsonb || jsonb_build_object('at', go.at)", source="go")


@dataclass(frozen=True, slots=True)
class Step:
    """What a command brings to a step.

    `kind`, `leaf_id`: the row that triggers (locks.LEAF). `judge` sees what was loaded and refuses or not; it is asked
    again after the lock. `trigger` tells the core what happened. `outcome` is what a repeat of `request` shall be told.
    `ahead`: the case as it was read earlier, instead of the unlocked read; the write compares its revision all the same.
    `audit`: a row beside the write, of steps that lock first. `decisions`, `calls`: what was looked for on the way.
    """

    kind: str
    leaf_id: UUID
    actor: str
    judge: Callable[[Loaded | None], Rejected | None]
    trigger: Callable[[Loaded], Trigger]
    outcome: Callable[[Loaded, Effects], Any] | None = None
    request: Request | None = None
    lock_first: bool = False
    whole: bool = False
    ahead: Loaded | None = None
    audit: Audit | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)  # of members that the write has besides
    decisions: Decisions = field(default_factory=dict)
    calls: Means = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Taken:
    """The step was taken, at this time of the database."""

    loaded: Loaded
    effects: Effects
    at: datetime


@dataclass(frozen=True, slots=True)
class Repeated:
    """This request was answered before, with this."""

    outcome: Any


def take(conn: Connection, step: Step) -> Taken | Repeated | Rejected:
    """Take the step; raises NoHandlerForError as the core does."""
    try:
        return _take(conn, step)
    except errors.UniqueViolation as error:
        if step.request is None or not is_repeat(error):
            raise
    return Repeated(recorded(conn, step.request))


def _take(conn: Connection, step: Step) -> Taken | Rejected:
    if step.lock_first or step.audit is not None:
        return _locked(conn, step)
    loaded = _ahead(conn, step) or read_case(conn, step.kind, step.leaf_id, whole=step.whole, lean=True)
    refused = step.judge(loaded)
    if refused is not None or loaded is None:
        return refused or Rejected(Refusal.NOT_FOUND)
    try:
        change = plan(conn, step, loaded, look=False)
    except NeedsWholeInstance:
        return _locked(conn, replace(step, whole=True))
    except NeedsVariables:
        return _locked(conn, step, lean=False)
    except NeedsDefinition as needed:
        return _locked(conn, step, seen=_seen(conn, loaded, [needed.call]))
    except NeedsDecision as needed:
        return _locked(conn, step, seen=_seen(conn, loaded, decisions=needed.calls))
    except DefinitionRefused as refusal:
        return Rejected(Refusal.UNSUPPORTED, str(refusal), problems=refusal.problems, item_id=step.leaf_id)
    if change.must_lock_first:
        return _locked(conn, step)
    with commit_point(conn, "command.before_commit"):
        at = write(conn, change)
    if at is not None:
        return Taken(loaded, change.effects, at)
    forget(change.called)
    return _locked(conn, step, seen=_seen(conn, loaded, change.calls))


def _seen(conn: Connection, loaded: Loaded, calls: Iterable[Call] = (), decisions: Iterable[DecisionCall] = ()) -> Seen:
    """What was read without the lock; with what the step calls, and what its process may call besides."""
    snapshot = loaded.snapshot
    assert snapshot is not None, "it was planned on"
    definition = compiled(conn, snapshot.definition_id)
    return Seen(
        snapshot.tenant_id,
        snapshot.revision,
        unknown(conn, snapshot.tenant_id, dict.fromkeys([*calls, *calls_ahead(definition)])),
        tuple(dict.fromkeys([*decisions, *decisions_ahead(definition)])),
    )


def _ahead(conn: Connection, step: Step) -> Loaded | None:
    """What was read earlier, if it still serves: not to refuse by, and not where the process asks what time it is now."""
    ahead = step.ahead
    if ahead is None or ahead.snapshot is None or step.judge(ahead) is not None:
        return None
    seen = (ahead.snapshot.definition_id, *(other.definition_id for other in ahead.snapshot.others))
    return None if any(asks_the_time(conn, definition) for definition in seen) else ahead


def _locked(conn: Connection, step: Step, *, lean: bool = True, seen: Seen | None = None) -> Taken | Rejected:
    """Lock the root and the leaf, then all over again on what is there now. `seen`: no call is left to look or to read by."""
    with transaction(conn):
        if seen is None:
            loaded = lock_case(conn, step.kind, step.leaf_id, whole=step.whole, lean=lean)
        else:
            locked = lock_moved_case(conn, step.kind, step.leaf_id, seen=seen)
            step.calls.update(locked.calls)
            step.decisions.update(locked.decisions)
            loaded = locked.case
        # Re-check after the lock: what was judged before, if it was, may have changed while we waited.
        refused = step.judge(loaded)
        if refused is not None or loaded is None:
            return refused or Rejected(Refusal.NOT_FOUND)
        try:
            loaded, change, at = _write(conn, step, *_with_what_it_needs(conn, step, loaded))
        except DefinitionRefused as refusal:
            return Rejected(Refusal.UNSUPPORTED, str(refusal), problems=refusal.problems, item_id=step.leaf_id)
        if step.audit is not None:
            note(conn, step.audit, tenant_id=change.snapshot.tenant_id, actor=step.actor, at=at)
    return Taken(loaded, change.effects, at)


def _with_what_it_needs(conn: Connection, step: Step, loaded: Loaded) -> tuple[Loaded, Change]:
    """Plan under the lock: on what was read, else with the large variables too, else on the whole instance."""
    try:
        return loaded, plan(conn, step, loaded)
    except NeedsVariables:
        loaded = _read_again(conn, step, whole=False)
    except NeedsWholeInstance:
        loaded = _read_again(conn, step, whole=True)
    try:
        return loaded, plan(conn, step, loaded)
    except NeedsWholeInstance:
        loaded = _read_again(conn, step, whole=True)
    return loaded, plan(conn, step, loaded)


def _read_again(conn: Connection, step: Step, *, whole: bool) -> Loaded:
    loaded = read_case(conn, step.kind, step.leaf_id, whole=whole)
    if loaded is None:
        raise InvariantBroken(f"{step.kind} {step.leaf_id}: expected it under its lock, found nothing")
    return loaded


def _write(conn: Connection, step: Step, loaded: Loaded, change: Change) -> tuple[Loaded, Change, datetime]:
    """The root's lock keeps everything as it was loaded but the definitions that are called: these are found again.

    Another version may need more of the case than the one before.
    """
    for _ in range(LOOKS):
        at = write(conn, change)
        if at is not None:
            return loaded, change, at
        if not change.called:
            break
        forget(change.called)
        step.calls.clear()
        loaded, change = _with_what_it_needs(conn, step, loaded)
    raise InvariantBroken(f"{step.kind} {step.leaf_id}: expected its guards to hold under the root's lock, found them stale")


def plan(conn: Connection, step: Step, loaded: Loaded, *, look: bool = True) -> Change:
    """Ask the core, and make of its answer the write of this step. Not to `look`: raises for what it calls and is not known."""
    snapshot = loaded.snapshot
    if snapshot is None:
        raise InvariantBroken(f"{step.kind} {step.leaf_id}: expected an instance, found none")
    answer = ask(conn, snapshot, step.trigger(loaded), now=loaded.now, decisions=step.decisions, calls=step.calls, look=look)
    told = step.outcome(loaded, answer.effects) if step.request is not None and step.outcome is not None else None
    request, parameters = request_member(step.request, told)
    return Change(
        leaf=step.kind,
        leaf_id=step.leaf_id,
        fence=loaded.leaf.fence,
        snapshot=snapshot,
        definition=answer.definition,
        effects=answer.effects,
        called=answer.called,
        calls=answer.calls,
        actor=step.actor,
        mark=loaded.mark,
        request=request,
        parameters={**parameters, **step.parameters},
    )


def request_member(request: Request | None, outcome: Any) -> tuple[str, Mapping[str, Any]]:
    """The request member of a writing statement and its parameters. An outcome's `at` is what the database says."""
    if request is None:
        return "", {}
    text = _REQUEST_AT if hasattr(outcome, "at") else _REQUEST
    return text, {**request.params(), "outcome": encode(outcome)}


# ---- refusals that several commands share


def marked(loaded: Loaded, *, even_suspended: bool = False) -> Rejected | None:
    """What has become of the case, or is being done to it, as a refusal."""
    if loaded.instance_status != "running" or loaded.root_status != "running":
        return Rejected(Refusal.INSTANCE_ENDED, by=loaded.ended_by, at=loaded.ended_at, item_id=loaded.leaf.id)
    match loaded.mark:
        case "cancelling":
            return Rejected(Refusal.INSTANCE_CANCELLING, item_id=loaded.leaf.id)
        case "suspending" | "suspended" if not even_suspended:
            return Rejected(Refusal.INSTANCE_SUSPENDED, item_id=loaded.leaf.id)
    return None


def answer(conn: Connection, command: str, actor: Actor, rejected: Rejected, request: Request | None) -> Any:
    """Record a refusal (R10), with the name that people know its `by` under."""
    if rejected.by is not None and rejected.by_name is None:
        rejected = replace(rejected, by_name=display_name(conn, actor.tenant_id, rejected.by))
    return refuse(conn, command, actor.username, actor.tenant_id, rejected, request)


def display_name(conn: Connection, tenant_id: str, username: str) -> str | None:
    """What people call this user; None for somebody who is not, or no longer, among them."""
    row = conn.execute("SELECT display_name FROM person WHERE tenant_id = %s AND username = %s", (tenant_id, username)).fetchone()
    return None if row is None else row[0]
