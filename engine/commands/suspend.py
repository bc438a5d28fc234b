"""Suspending a case, and letting it go on: nothing of it moves meanwhile, and nobody has to look at it to pass it by.

The mark on the root is what refuses: claims, completions, messages, and the outcomes of work that was leased before. Its items
(of called instances too) get the reason `suspended` in `held` and are out of acquisition's index. Under the root's lock both
happen in one transaction for as many as `AT_ONCE`; what is beyond goes on by a job of kind `hold`, in bounded steps, and
what slips through in between is handed back unspent by the worker's read (R5). To resume is the same the other way: the
mark goes first. A timer whose time has passed is due once then; its next occurrence lies ahead (engine.core.timers).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, LiteralString
from uuid import UUID

import orjson
from psycopg import errors

from engine.commands.audit import Audit, note
from engine.commands.jobs import Outcome, landed_or_lost
from engine.commands.outcome import (
    SYSTEM,
    Actor,
    InstanceResumed,
    InstanceSuspended,
    ItemDone,
    ItemReleased,
    ItemsHeld,
    Lease,
    Refusal,
    Rejected,
)
from engine.commands.requests import WRITE_REQUEST, Request, encode, is_repeat, recorded, request_for
from engine.commands.step import answer, marked
from engine.commands.transaction import Connection, command, transaction
from engine.commands.whole_case import bad_reason, called, not_theirs
from engine.core.effects import InvariantBroken
from engine.core.lifecycle import SUSPENDED
from engine.db.load import Loaded, lock_case
from engine.db.locks import CASE, FREE_SOME, HOLD_SOME, HOLD_STEP, LEAF, ROOT_IF_REVISION
from engine.db.session import cursor_of
from engine.failpoints import commit_point
from engine.ids import new_id

AT_ONCE = 300  # items that one transaction holds or frees: some 50 ms
ATTEMPTS = 10  # of the job; each lost lease spends one


@command
def suspend_instance(
    conn: Connection, instance_id: UUID, *, actor: Actor, reason: str = "", request_id: str | None = None
) -> InstanceSuspended | Rejected:
    """Suspend a case: nothing of it is run, claimed, completed or received until it is resumed. `finishing`: a job holds the rest.

    Locks: the root, then items of the case. Refuses: NOT_FOUND, NOT_ALLOWED, INVALID (reason too long), CALLED_INSTANCE,
    INSTANCE_ENDED, INSTANCE_CANCELLING, ALREADY_SUSPENDED (by whom, and when).
    """

    def judge(loaded: Loaded) -> Rejected | None:
        if loaded.mark in SUSPENDED:
            return Rejected(Refusal.ALREADY_SUSPENDED, item_id=instance_id)
        return None

    change = _Change("suspend_instance", instance_id, actor, reason, judge)
    request = request_for(actor, request_id, change.name, instance_id, reason)
    outcome: InstanceSuspended | Rejected = _settled(conn, change, request, lambda more: InstanceSuspended(instance_id, more))
    return outcome


@command
def resume_instance(
    conn: Connection, instance_id: UUID, *, actor: Actor, reason: str = "", request_id: str | None = None
) -> InstanceResumed | Rejected:
    """Let a suspended case go on, whether a person suspended it or a suspension of its definition. `finishing`: a job frees the rest.

    Locks: the root, then items of the case. Refuses: NOT_FOUND, NOT_ALLOWED, INVALID (reason too long), CALLED_INSTANCE,
    INSTANCE_ENDED, INSTANCE_CANCELLING, NOT_SUSPENDED (who resumed it last, and when).
    """

    def judge(loaded: Loaded) -> Rejected | None:
        return None if loaded.mark in SUSPENDED else Rejected(Refusal.NOT_SUSPENDED, item_id=instance_id)

    change = _Change("resume_instance", instance_id, actor, reason, judge)
    request = request_for(actor, request_id, change.name, instance_id, reason)
    outcome: InstanceResumed | Rejected = _settled(conn, change, request, lambda more: InstanceResumed(instance_id, more))
    return outcome


@command
def hold_step(conn: Connection, lease: Lease, *, most: int = AT_ONCE) -> ItemsHeld | Outcome:
    """Take one step of a large suspension or pause, or of taking it back, at most `most` items; ItemDone: the last one.

    ItemReleased: the last one for now, the job looks once more later.

    A step that is repeated, or begun again by who took the lease over, finds less to do and is harmless.
    Locks: the root, the job, then items of the case. Refuses: LEASE_LOST.
    """
    with commit_point(conn, "command.before_commit"):
        row = cursor_of(conn).execute(HOLD_STEP, (lease.item_id, lease.number, most)).fetchone()
    if row is None or row[0] is None:
        return landed_or_lost(conn, "hold_step", lease, ("job_completed",), SYSTEM.username)
    if row[0].get("again"):
        return ItemReleased(lease.item_id)
    if row[0]["ended"]:
        return ItemDone(lease.item_id, lease.number)
    return ItemsHeld(lease.item_id, row[0]["rows"])


# ---- the common course


class _Change:
    """One of the two, as asked. `judge`: what it needs of the mark, once the case is known to run."""

    def __init__(self, name: str, root_id: UUID, actor: Actor, reason: str, judge: Callable[[Loaded], Rejected | None]) -> None:
        self.name, self.root_id, self.actor, self.reason, self.judge = name, root_id, actor, reason, judge
        self.suspends = name == "suspend_instance"


def _settled(conn: Connection, change: _Change, request: Request | None, outcome: Callable[[bool], Any]) -> Any:
    try:
        with transaction(conn):
            done = _in_transaction(conn, change, request, outcome)
    except errors.UniqueViolation as error:
        if not is_repeat(error):
            raise
        done = recorded(conn, request)
    if isinstance(done, Rejected):
        # A repeat finds the case as the first one left it.
        return recorded(conn, request) or answer(conn, change.name, change.actor, with_last(conn, done, _LAST), request)
    return done


def with_last(conn: Connection, rejected: Rejected, last: LiteralString) -> Rejected:
    """Nothing to resume: who resumed it last, and when, as the statement `last` finds it."""
    if rejected.refusal is not Refusal.NOT_SUSPENDED:
        return rejected
    row = conn.execute(last, (rejected.item_id,)).fetchone()
    return rejected if row is None else replace(rejected, by=row[0], at=row[1])


def _in_transaction(conn: Connection, change: _Change, request: Request | None, outcome: Callable[[bool], Any]) -> Any:
    loaded = lock_case(conn, "instance", change.root_id)
    # Re-check after the lock: it may have ended, or been marked, while we waited.
    refused = _judge(conn, change, loaded)
    if refused is not None or loaded is None or loaded.snapshot is None:
        return refused or Rejected(Refusal.NOT_FOUND)
    cursor, snapshot = cursor_of(conn), loaded.snapshot
    some = (HOLD_SOME, (change.root_id, AT_ONCE)) if change.suspends else (FREE_SOME, (change.root_id, AT_ONCE, 0.0))
    row = cursor.execute(*some).fetchone()
    more = row is not None and row[0] == AT_ONCE
    done = outcome(more)
    values: dict[str, Any] = {
        "root_id": change.root_id,
        "revision": snapshot.revision,
        "mark": loaded.mark,
        "to": ("suspending" if more else "suspended") if change.suspends else None,
        "tenant_id": snapshot.tenant_id,
        "instance_id": change.root_id,
        "definition_id": snapshot.definition_id,
        "actor": change.actor.username,
        "reason": change.reason,
        "suspension_id": new_id(),
        "more": more,
        "job_id": new_id(),
        "attempts": ATTEMPTS,
        "payload": orjson.dumps({"what": "hold" if change.suspends else "free", "spread": 0}).decode(),
    }
    if request is not None:
        values.update(request.params(), outcome=encode(done))
    row = cursor.execute((_SUSPEND if change.suspends else _RESUME)[request is not None], values).fetchone()
    if row is None:
        raise InvariantBroken(f"instance {change.root_id}: expected its guards to hold under the root's lock, found them stale")
    action = "suspend" if change.suspends else "resume"
    audit = Audit(action, "instance", change.root_id, change.reason)
    note(conn, audit, tenant_id=snapshot.tenant_id, actor=change.actor.username, at=row[0])
    return done


def _judge(conn: Connection, change: _Change, loaded: Loaded | None) -> Rejected | None:
    if loaded is None or loaded.snapshot is None:
        return Rejected(Refusal.NOT_FOUND)
    if refused := not_theirs(conn, loaded.snapshot, change.actor, "suspend"):
        return refused
    if loaded.instance_status == "running" and (refused := called(loaded.snapshot, "rests and goes on with its caller")):
        return refused
    return marked(loaded, even_suspended=True) or change.judge(loaded) or bad_reason(change.reason, change.root_id)


# ---- the statements

_LAST = "SELECT actor, at FROM history WHERE instance_id = %s AND kind = 'instance_resumed' ORDER BY id DESC LIMIT 1"

_MARKED = f"""
WITH {ROOT_IF_REVISION},
{LEAF["instance"]},
marked AS (UPDATE process_instance p SET mark = %(to)s, revision = revision + 1 FROM go WHERE p.id = %(root_id)s),
finisher AS (
  INSERT INTO job (id, {CASE}, created_at, kind, element_id, due_at, available_at, priority, level, max_attempts, payload)
  SELECT %(job_id)s, go.*, 'hold', '', go.at, go.at, 9, 9, %(attempts)s, %(payload)s::jsonb FROM go WHERE %(more)s
)"""
# What was left by a case that had been suspended and was cancelled is written over.
_SUSPENDED = """, suspended AS (
  INSERT INTO suspension (object_id, id, tenant_id, kind, suspended_by, suspended_at, reason)
  SELECT %(root_id)s, %(suspension_id)s, go.tenant_id, 'instance', %(actor)s, go.at, %(reason)s FROM go
  ON CONFLICT ON CONSTRAINT pk_suspension DO UPDATE SET id = excluded.id, suspended_by = excluded.suspended_by,
    suspended_at = excluded.suspended_at, reason = excluded.reason, cause_id = NULL
), event AS (
  INSERT INTO history (at, tenant_id, root_id, instance_id, definition_id, kind, actor, data)
  SELECT at, tenant_id, root_id, instance_id, definition_id, 'instance_suspended', %(actor)s,
    jsonb_build_object('reason', %(reason)s::text)
  FROM go
)"""
_RESUMED = """, resumed AS (
  DELETE FROM suspension s USING go WHERE s.object_id = %(root_id)s RETURNING s.suspended_by, s.suspended_at
), event AS (
  INSERT INTO history (at, tenant_id, root_id, instance_id, definition_id, kind, actor, data)
  SELECT at, tenant_id, root_id, instance_id, definition_id, 'instance_resumed', %(actor)s,
    jsonb_build_object('reason', %(reason)s::text, 'suspended_by', (SELECT suspended_by FROM resumed),
      'suspended_at', (SELECT suspended_at FROM resumed))
  FROM go
)"""
_PRESS = f", press AS ({WRITE_REQUEST.format(outcome='%(outcome)s::jsonb', source='go')})"
_END = " SELECT at FROM go"
_SUSPEND = (_MARKED + _SUSPENDED + _END, _MARKED + _SUSPENDED + _PRESS + _END)
_RESUME = (_MARKED + _RESUMED + _END, _MARKED + _RESUMED + _PRESS + _END)
