"""External tasks as programs for Camunda 7 hold them: by the name of a worker, without a number.

Their fence is the task, the name, and a lease that has not expired (R4). The number under which that name holds the task is read
first, and the ordinary command is fenced by it: what another acquires in between, be it of the same name, is not ended by this one.
A repeat is recognised by the number under which that name ended the task last (R6).

Besides, what an operator does to a task from outside: its lease, retries, priority.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from engine.commands.external_tasks import LONGEST_LEASE, MAX_NAME, checked, given, is_known, lease_under
from engine.commands.failure import fail_item
from engine.commands.leases import release_item
from engine.commands.outcome import Actor, FieldProblem, ItemReleased, Lease, Refusal, Rejected
from engine.commands.requests import refuse
from engine.commands.retry import MOST_ATTEMPTS, retry_item
from engine.commands.transaction import Connection, command
from engine.db.acquire import EXTERNAL_TASK, acquire_one_external, recover_one_external, renew_leases
from engine.db.session import cursor_of
from engine.failpoints import commit_point
from engine.frozen import dataclass

LOOKS = 20  # how often a lease may change hands between a look and what follows it
MOST_RETRIES = 1_000_000
HIGHEST = 9  # priority


@dataclass(frozen=True, slots=True)
class TaskChanged:
    """It is as asked: leased, or with other retries or another priority."""

    task_id: UUID


@dataclass(frozen=True, slots=True)
class _Row:
    status: str
    owner: str | None
    number: int
    expired: bool
    held: list[str]
    available_at: datetime
    waits: bool


@command
def held_lease(conn: Connection, task_id: UUID, *, actor: Actor, worker_id: str) -> Lease | Rejected:
    """The lease under which this worker holds the task, or under which it ended it last.

    Locks: nothing. Refuses: NOT_ALLOWED, NOT_FOUND, LEASE_LOST with who holds it.
    """

    def look() -> Lease | Rejected:
        row = _row(conn, task_id, actor)
        if row is not None and row.status == "leased" and row.owner == worker_id and not row.expired:
            return lease_under(task_id, row.number)
        if row is None or row.owner != worker_id:
            asked = {"id": task_id, "tenant_id": actor.tenant_id, "worker_id": worker_id}
            before = cursor_of(conn).execute(_ENDED_BY, asked).fetchone()
            if before is not None:
                return lease_under(task_id, before[0])
        return _lost(conn, "held_lease", task_id, actor, _state(row))

    return checked(conn, task_id, actor, look)


@command
def lock_external_task(
    conn: Connection, task_id: UUID, *, actor: Actor, worker_id: str, lease_seconds: float, forgiven: Collection[str] = ()
) -> TaskChanged | Rejected:
    """Lease this one task to `worker_id`, or move its lease on if it holds it. One whose lease has expired is taken back first.

    Locks: the task, SKIP LOCKED. Refuses: NOT_ALLOWED, INVALID, NOT_FOUND, LEASE_LOST with why it is not free.
    """
    problems: tuple[FieldProblem, ...] = ()
    if not 0 < len(worker_id.strip()) <= MAX_NAME:
        problems += (FieldProblem("worker_id", f"expected 1 to {MAX_NAME} characters"),)
    if not 0 < lease_seconds <= LONGEST_LEASE:
        problems += (FieldProblem("lease_seconds", f"expected more than 0 and at most {LONGEST_LEASE:.0f} seconds"),)

    def lock() -> TaskChanged | Rejected:
        row = None
        for _ in range(LOOKS):
            leased = acquire_one_external(conn, task_id, tenant_id=actor.tenant_id, owner=worker_id, seconds=lease_seconds)
            if given(conn, leased):
                return TaskChanged(task_id)
            row = _row(conn, task_id, actor)
            if row is None or leased or row.status == "failed":
                break
            if row.status == "available" and (row.held or row.waits):
                break
            if row.status == "leased" and row.expired:
                recover_one_external(conn, task_id, forgiven=forgiven)
            elif row.status == "leased" and row.owner != worker_id:
                break
            elif row.status == "leased" and renew_leases(conn, EXTERNAL_TASK, [(task_id, row.number, lease_seconds, None)]).expires_at:
                return TaskChanged(task_id)
        return _lost(conn, "lock_external_task", task_id, actor, _state(row))

    return checked(conn, task_id, actor, lock, problems, look_first=True)


@command
def unlock_external_task(conn: Connection, task_id: UUID, *, actor: Actor) -> ItemReleased | Rejected:
    """Take the lease away, whoever holds it; the attempt is given back. One that nobody holds stays as it is.

    Locks: the task. Refuses: NOT_ALLOWED, NOT_FOUND.
    """

    def unlock() -> ItemReleased | Rejected:
        row = _row(conn, task_id, actor)
        if row is not None and row.status == "leased":
            release_item(conn, lease_under(task_id, row.number), actor.username, started=True)
        return ItemReleased(task_id)

    return checked(conn, task_id, actor, unlock, look_first=True)


@command
def set_retries(conn: Connection, task_id: UUID, *, actor: Actor, retries: int) -> TaskChanged | Rejected:
    """How many attempts are left from now on, a running one among them. None left is an incident; from one on, none any more.

    Locks: the task; before it the root, for exclusive work that fails or is failed. Refuses: NOT_ALLOWED, INVALID, NOT_FOUND, LEASE_LOST.
    """
    problems: tuple[FieldProblem, ...] = ()
    if not 0 <= retries <= MOST_RETRIES:
        problems = (FieldProblem("retries", f"expected 0 to {MOST_RETRIES}, found {retries}"),)

    def change() -> TaskChanged | Rejected:
        row = None
        for _ in range(LOOKS):
            if retries and _set(conn, _RETRIES, task_id, actor, retries):
                return TaskChanged(task_id)
            row = _row(conn, task_id, actor)
            if row is None or (row.status == "failed" and not retries):
                break
            if row.status == "failed":
                retry_item.function(conn, "external_task", task_id, actor=actor, attempts=min(retries, MOST_ATTEMPTS))
            elif not retries and _give_up(conn, task_id, actor, row):
                return TaskChanged(task_id)
            elif row.held:
                break
        if row is not None and row.status == "failed":
            return TaskChanged(task_id)
        return _lost(conn, "set_retries", task_id, actor, _state(row))

    return checked(conn, task_id, actor, change, problems, look_first=True)


@command
def set_priority(conn: Connection, task_id: UUID, *, actor: Actor, priority: int) -> TaskChanged | Rejected:
    """From 0 to 9; what is beyond counts as the nearest of them, as in a model.

    Locks: the task. Refuses: NOT_ALLOWED, NOT_FOUND.
    """

    def change() -> TaskChanged | Rejected:
        found = _set(conn, _PRIORITY, task_id, actor, min(max(priority, 0), HIGHEST))
        return TaskChanged(task_id) if found else Rejected(Refusal.NOT_FOUND)

    return checked(conn, task_id, actor, change, look_first=True)


# ---- steps


def _give_up(conn: Connection, task_id: UUID, actor: Actor, row: _Row) -> bool:
    """Fail it for good: under the lease that it has, or under one of its own."""
    number = row.number
    if row.status == "available":
        leased = acquire_one_external(conn, task_id, tenant_id=actor.tenant_id, owner=actor.username, seconds=60.0)
        if not given(conn, leased):
            return False
        number = leased[0].number
    error = f"{actor.username} set the retries to 0"
    return fail_item(conn, lease_under(task_id, number), error=error, final=True, actor=actor.username) is not None


def _set(conn: Connection, statement: str, task_id: UUID, actor: Actor, value: int) -> bool:
    params = {"id": task_id, "tenant_id": actor.tenant_id, "actor": actor.username, "value": value}
    with commit_point(conn, "command.before_commit"):
        return cursor_of(conn).execute(statement, params).fetchone() is not None


def _row(conn: Connection, task_id: UUID, actor: Actor) -> _Row | None:
    row = cursor_of(conn).execute(_HOLDS, {"id": task_id, "tenant_id": actor.tenant_id}).fetchone()
    return None if row is None else _Row(*row)


def _lost(conn: Connection, name: str, task_id: UUID, actor: Actor, why: str) -> Rejected:
    if not is_known(conn, task_id, actor):
        return Rejected(Refusal.NOT_FOUND)
    rejected = Rejected(Refusal.LEASE_LOST, f"external task {task_id}: {why}", item_id=task_id)
    counted: Rejected = refuse(conn, name, actor.username, actor.tenant_id, rejected)
    return counted


def _state(row: _Row | None) -> str:
    if row is None:
        return "it has ended"
    if row.status == "leased":
        return f"its lock by worker {row.owner!r} has expired" if row.expired else f"it is locked by worker {row.owner!r}"
    if row.status == "failed":
        return "it has no retries left"
    if row.held:
        return f"it rests ({', '.join(row.held)})"
    return f"it waits for its next attempt until {row.available_at:%Y-%m-%dT%H:%M:%S%z}" if row.waits else "nobody has locked it"


_HOLDS = """
SELECT status, lease_owner, lease_number, coalesce(lease_expires_at <= baton_now(), false), held, available_at, available_at > baton_now()
FROM external_task WHERE id = %(id)s AND tenant_id = %(tenant_id)s
"""
# What this worker did last, however it went: a failure, or a lease that it lost, may be told again.
_ENDED_BY = """
SELECT (data->>'lease_number')::bigint FROM history
WHERE item_id = %(id)s AND tenant_id = %(tenant_id)s AND data->>'owner' = %(worker_id)s AND data ? 'lease_number'
ORDER BY id DESC LIMIT 1
"""


def _changing(assignment: str, statuses: str, action: str) -> str:
    return f"""
WITH leaf AS (
  UPDATE external_task l SET {assignment}
  WHERE l.id = %(id)s AND l.tenant_id = %(tenant_id)s AND l.status COLLATE "C" IN ({statuses}) RETURNING l.*
), noted AS (
  INSERT INTO audit (at, tenant_id, actor, action, object_kind, object_id, detail)
  SELECT baton_clock(), tenant_id, %(actor)s, '{action}', 'external_task', id::text, jsonb_build_object('to', %(value)s::int) FROM leaf
)
SELECT id FROM leaf
"""


_RETRIES = _changing(
    "retries_set = true, max_attempts = l.attempts + %(value)s::int - CASE l.status WHEN 'leased' THEN 1 ELSE 0 END",
    "'available', 'leased'",
    "set_retries",
)
_PRIORITY = _changing(
    "priority = %(value)s::int, level = CASE WHEN l.level > 9 THEN l.level ELSE %(value)s::int END",
    "'available', 'leased', 'failed'",
    "set_priority",
)
