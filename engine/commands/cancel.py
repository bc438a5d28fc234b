"""Cancelling a case: everything in it ends, in one transaction or, where that would be long, in many short ones.

A small case ends at once, as a step of the core. A case of more than `AT_ONCE` rows, or a suspended one, is marked
`cancelling` by one short transaction, from which on its commands are refused, and a job of kind `cancel` takes it apart:
`cancel_some`, a bounded number of rows a transaction, as often as it takes, whoever holds the lease. What is written and
told is the same.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import orjson
from psycopg import errors

from engine.commands.audit import Audit, note
from engine.commands.jobs import Outcome, landed_or_lost
from engine.commands.outcome import SYSTEM, Actor, CaseShrunk, InstanceCancelled, ItemDone, Lease, Refusal, Rejected
from engine.commands.requests import WRITE_REQUEST, Request, encode, is_repeat, recorded, request_for
from engine.commands.step import Repeated, Step, answer, marked, take
from engine.commands.transaction import Connection, command, transaction
from engine.commands.whole_case import bad_reason, called, not_theirs
from engine.core.effects import InvariantBroken
from engine.core.lifecycle import SUSPENDED
from engine.core.snapshot import Cancelled
from engine.db.load import Loaded, lock_case
from engine.db.locks import CANCEL_SOME, CASE, LEAF, ROOT_IF_REVISION
from engine.db.session import cursor_of
from engine.failpoints import commit_point
from engine.ids import new_id

AT_ONCE = 500  # rows that one transaction may end
STEP_ROWS = 300  # of a larger case, in one transaction: some 50 ms
ATTEMPTS = 10  # of the job; each lost lease spends one


@command
def cancel_instance(
    conn: Connection, instance_id: UUID, *, actor: Actor, reason: str, request_id: str | None
) -> InstanceCancelled | Rejected:
    """Cancel an instance: its open tasks leave every inbox, its jobs, subscriptions and incidents are gone.

    Outbox deliveries stay: what a step has committed to send is sent. `finishing` in the outcome: the case is large, it
    is marked, and a job ends it.
    Locks: the root, then every leaf of the instance; of a large case the root alone. Refuses: NOT_FOUND, NOT_ALLOWED,
    INSTANCE_ENDED, ALREADY_CANCELLED, INSTANCE_CANCELLING, CALLED_INSTANCE (it ends with its caller, as in Camunda 8),
    INVALID (reason too long).
    """
    request = request_for(actor, request_id, "cancel_instance", instance_id, reason)
    try:
        cancel = _mark if _is_large(conn, instance_id) else _at_once
        outcome = cancel(conn, instance_id, actor, reason, request)
    except _Suspended:
        outcome = _mark(conn, instance_id, actor, reason, request)
    if isinstance(outcome, Rejected):
        refused: InstanceCancelled | Rejected = answer(conn, "cancel_instance", actor, outcome, request)
        return refused
    return outcome


def _is_large(conn: Connection, root_id: UUID) -> bool:
    """Counted unlocked: what a step adds meanwhile makes the one transaction a little longer, no more."""
    row = cursor_of(conn).execute(_AFFECTED, {"root_id": root_id, "limit": AT_ONCE + 1}).fetchone()
    return row is not None and row[0] > AT_ONCE


def _judge(conn: Connection, loaded: Loaded | None, actor: Actor, reason: str) -> Rejected | None:
    if loaded is None or loaded.snapshot is None:
        return Rejected(Refusal.NOT_FOUND)
    if refused := not_theirs(conn, loaded.snapshot, actor, "cancel"):
        return refused
    if loaded.instance_status == "running" and (refused := called(loaded.snapshot, "ends with its caller")):
        return refused
    if loaded.instance_status == "cancelled":
        return Rejected(Refusal.ALREADY_CANCELLED, by=loaded.ended_by, at=loaded.ended_at, item_id=loaded.leaf.id)
    return marked(loaded, even_suspended=True) or bad_reason(reason, loaded.leaf.id)


# ---- a small case


class _Suspended(Exception):
    """Rolls back: deliveries and thrown messages of a suspended case are held, and outlive it; a job frees them."""


def _judge_small(conn: Connection, loaded: Loaded | None, actor: Actor, reason: str) -> Rejected | None:
    refused = _judge(conn, loaded, actor, reason)
    if refused is None and loaded is not None and loaded.mark in SUSPENDED:
        raise _Suspended
    return refused


def _at_once(conn: Connection, instance_id: UUID, actor: Actor, reason: str, request: Request | None) -> InstanceCancelled | Rejected:
    step = Step(
        kind="instance",
        leaf_id=instance_id,
        actor=actor.username,
        judge=lambda loaded: _judge_small(conn, loaded, actor, reason),
        trigger=lambda _: Cancelled(reason),
        outcome=lambda *_: InstanceCancelled(instance_id),
        request=request,
        lock_first=True,
        whole=True,
        audit=Audit("cancel", "instance", instance_id, reason),
    )
    match take(conn, step):
        case Rejected() as rejected:
            return rejected
        case Repeated() as repeated:
            before: InstanceCancelled | Rejected = repeated.outcome
            return before
    return InstanceCancelled(instance_id)


# ---- a large case


def _mark(conn: Connection, root_id: UUID, actor: Actor, reason: str, request: Request | None) -> InstanceCancelled | Rejected:
    """Mark it and leave the rest to a job. A mark of a suspension gives way, and another job frees what is sent all the same."""
    done = InstanceCancelled(root_id, finishing=True)
    try:
        with transaction(conn):
            loaded = lock_case(conn, "instance", root_id)
            # Re-check after the lock: it may have ended, or been marked, while we waited.
            refused = _judge(conn, loaded, actor, reason)
            if refused is not None or loaded is None or loaded.snapshot is None:
                return refused or Rejected(Refusal.NOT_FOUND)
            snapshot = loaded.snapshot
            values: dict[str, Any] = {
                "root_id": root_id,
                "revision": snapshot.revision,
                "mark": loaded.mark,
                "tenant_id": snapshot.tenant_id,
                "instance_id": root_id,
                "definition_id": snapshot.definition_id,
                "job_id": new_id(),
                "attempts": ATTEMPTS,
                "suspended": loaded.mark in SUSPENDED,
                "freer_id": new_id(),
                "payload": orjson.dumps({"by": actor.username, "reason": reason}).decode(),
            }
            if request is not None:
                values.update(request.params(), outcome=encode(done))
            row = cursor_of(conn).execute(_MARK[request is not None], values).fetchone()
            if row is None:
                raise InvariantBroken(f"instance {root_id}: expected its guards to hold under the root's lock, found them stale")
            note(conn, Audit("cancel", "instance", root_id, reason), tenant_id=snapshot.tenant_id, actor=actor.username, at=row[0])
    except errors.UniqueViolation as error:
        if not is_repeat(error):
            raise
        return recorded(conn, request) or done
    return done


@command
def cancel_some(conn: Connection, lease: Lease, *, most: int = STEP_ROWS) -> CaseShrunk | Outcome:
    """Take one step of a large cancel, at most `most` rows; ItemDone: the last one, the case has ended.

    A step that is repeated, or begun again by who took the lease over, finds less to do and is harmless.
    Locks: the root, the job, then leaves of the case. Refuses: LEASE_LOST.
    """
    with commit_point(conn, "command.before_commit"):
        row = cursor_of(conn).execute(CANCEL_SOME, (lease.item_id, lease.number, most)).fetchone()
    if row is None or row[0] is None:
        return landed_or_lost(conn, "cancel_some", lease, ("job_completed",), SYSTEM.username)
    if row[0]["ended"]:
        return ItemDone(lease.item_id, lease.number)
    return CaseShrunk(lease.item_id, row[0]["rows"])


# ---- the statements

# Up to a limit: of a case with a million rows only so many are looked at.
_AFFECTED = """
WITH of AS MATERIALIZED (SELECT i.id FROM process_instance i WHERE i.root_id = %(root_id)s AND i.status = 'running')
SELECT count(*) FROM (
  SELECT FROM of JOIN token t ON t.instance_id = of.id
  UNION ALL SELECT FROM of WHERE of.id <> %(root_id)s
  UNION ALL SELECT FROM of JOIN scope s ON s.instance_id = of.id
  UNION ALL SELECT FROM of JOIN user_task u ON u.instance_id = of.id WHERE u.status IN ('open', 'claimed')
  UNION ALL SELECT FROM of JOIN job j ON j.instance_id = of.id
  UNION ALL SELECT FROM of JOIN external_task e ON e.instance_id = of.id
  UNION ALL SELECT FROM of JOIN subscription b ON b.instance_id = of.id
  UNION ALL SELECT FROM of JOIN completed_execution x ON x.instance_id = of.id
  LIMIT %(limit)s) counted
"""

# The job goes before everything else of its kind: what is marked waits for it.
_MARKED = f"""
WITH {ROOT_IF_REVISION},
{LEAF["instance"]},
marked AS (UPDATE process_instance p SET mark = 'cancelling', revision = revision + 1 FROM go WHERE p.id = %(root_id)s),
finisher AS (
  INSERT INTO job (id, {CASE}, created_at, kind, element_id, due_at, available_at, priority, level, max_attempts, payload)
  SELECT %(job_id)s, go.*, 'cancel', '', go.at, go.at, 9, 9, %(attempts)s, %(payload)s::jsonb FROM go
), freer AS (
  INSERT INTO job (id, {CASE}, created_at, kind, element_id, due_at, available_at, priority, level, max_attempts, payload)
  SELECT %(freer_id)s, go.*, 'hold', '', go.at, go.at, 9, 9, %(attempts)s, '{{"what": "free", "spread": 0}}' FROM go WHERE %(suspended)s
), over AS (
  DELETE FROM suspension s USING go WHERE s.object_id = %(root_id)s AND %(suspended)s
)"""
_MARK = (
    f"{_MARKED} SELECT at FROM go",
    f"{_MARKED}, asked AS ({WRITE_REQUEST.format(outcome='%(outcome)s::jsonb', source='go')}) SELECT at FROM go",
)
