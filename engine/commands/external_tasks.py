"""External tasks: work that programs outside take and answer for, under a lease that its number fences (R4).

They end as jobs end (engine/commands/jobs.py). Here: who may, and what a client is told. The lease number recognises a
repeat: a completion or failure that landed is answered as such (R6), and a lost lease stays lost. A request id is
recorded where a refusal may turn into a success later (complete, error); the others take it and need it not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

import orjson
import psycopg

from engine.commands.jobs import Outcome, end_item, event_detail, fail_or_lost, throw_error, token_of
from engine.commands.leases import release_item, was_released
from engine.commands.may import may
from engine.commands.outcome import Actor, FieldProblem, ItemReleased, Lease, Refusal, Rejected, Renewed
from engine.commands.requests import refuse, request_for
from engine.commands.transaction import Connection, command
from engine.core.snapshot import Completed
from engine.core.values import accept
from engine.db.acquire import EXTERNAL_TASK, Acquired, acquire_external, renew_leases
from engine.db.load import Loaded
from engine.db.locks import WAIT_FOR_LEASE
from engine.db.pauses import row_is_paused
from engine.db.session import cursor_of

T = TypeVar("T")
MOST_TASKS, MOST_TOPICS = 100, 100  # in one acquisition
MAX_NAME = 255  # characters of a worker id
_LOOKS = 20  # how often a row may be locked when its lease is to be renewed
LONGEST_LEASE = 24 * 3600.0  # seconds


@dataclass(frozen=True, slots=True)
class LeasedTask:
    """What a client is given. `variables`: name -> plain JSON value, as the task's scope sees them, then its inputs."""

    id: UUID
    topic: str
    element_id: str
    instance_id: UUID
    root_id: UUID
    definition_key: str
    business_key: str | None
    variables: Mapping[str, Any]
    lease_number: int
    lease_expires_at: datetime
    attempts: int
    max_attempts: int
    priority: int
    created_at: datetime
    headers: Mapping[str, str]  # texts of the model: zeebe:taskHeaders, camunda:properties
    types: Mapping[str, str]  # of the variables
    inputs: frozenset[str]  # names of those that are the activity's own
    token_id: UUID
    definition_id: UUID
    version_tag: str | None
    last_error: str | None
    error_detail: str | None
    retries_set: bool

    @property
    def retries(self) -> int | None:
        """How many attempts are left, the running one among them; None while nothing has failed and nobody has set them."""
        told = self.retries_set or self.last_error is not None
        return self.max_attempts - self.attempts + 1 if told else None


@command
def acquire_external_tasks(
    conn: Connection,
    *,
    actor: Actor,
    worker_id: str,
    topics: Sequence[str] | Mapping[str, float],
    limit: int = 10,
    lease_seconds: float = 60.0,
    chosen: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[LeasedTask] | Rejected:
    """Lease free tasks of these topics to `worker_id`; a mapping gives a topic its own seconds.

    `chosen`: topic -> which of its tasks (engine.db.acquire.CHOSEN); the others are for any.

    Locks: the tasks, SKIP LOCKED. Refuses: NOT_ALLOWED, INVALID.
    """
    if not may(actor, "work", "external_task"):
        return Rejected(Refusal.NOT_ALLOWED)
    durations = dict(topics) if isinstance(topics, Mapping) else dict.fromkeys(topics, lease_seconds)
    problems = _acquisition_problems(worker_id, durations, limit)
    if problems:
        return Rejected(Refusal.INVALID, "; ".join(f"{p.field}: {p.message}" for p in problems), problems=problems)
    wanted = {topic: orjson.dumps(which).decode() for topic, which in (chosen or {}).items()}
    return given(conn, acquire_external(conn, tenant_id=actor.tenant_id, owner=worker_id, topics=durations, limit=limit, chosen=wanted))


def given(conn: Connection, leased: Sequence[Acquired]) -> list[LeasedTask]:
    """What a client is told of its new leases. What may not go on after all is handed back unspent, and left out."""
    if not leased:
        return []
    try:
        rows = cursor_of(conn).execute(_BATCH, {"ids": [lease.item_id for lease in leased]}).fetchall()
    except psycopg.Error:
        # Nobody will hear of these leases (a timeout, say): back they go unspent, unless the connection is gone as well.
        for lease in leased if not conn.closed else ():
            release_item(conn, Lease(lease.kind, lease.item_id, lease.number, lease.owner), "engine")
        raise
    tasks = {row[0]: _task(row) for row in rows}
    for lease in leased:
        if lease.item_id not in tasks:  # held between the two statements goes back unspent; cancelled is gone
            release_item(conn, Lease(lease.kind, lease.item_id, lease.number, lease.owner), "engine")
    return [tasks[lease.item_id] for lease in leased if lease.item_id in tasks]


@command
def complete_external_task(
    conn: Connection,
    task_id: UUID,
    *,
    actor: Actor,
    lease_number: int,
    variables: Mapping[str, Any],
    local: Mapping[str, Any] | None = None,
    keeps: bool = False,
    request_id: str | None = None,
) -> Outcome:
    """The work is done: end the task and let its case go on. `local`, `keeps`: as in `engine.core.snapshot.Completed`.

    Locks: the root, the task. Refuses: NOT_ALLOWED, INVALID, NOT_FOUND, LEASE_LOST, INSTANCE_….
    """
    accepted, wrong = accept(variables)
    seen, wrong_too = accept(local or {})
    problems = tuple(FieldProblem(f"variables.{name}", text) for name, text in (*wrong, *wrong_too))
    request = request_for(actor, request_id, "complete_external_task", task_id, [lease_number, variables])
    lease = lease_under(task_id, lease_number)

    def trigger(loaded: Loaded) -> Completed:
        return Completed(token_of(loaded), accepted, "external_task_completed", _detail(loaded, lease), seen, keeps)

    def end() -> Outcome:
        return end_item(
            conn,
            "complete_external_task",
            lease,
            trigger,
            landed=("external_task_completed",),
            actor=actor.username,
            tenant_id=actor.tenant_id,
            request=request,
        )

    return checked(conn, task_id, actor, end, problems)


@command
def fail_external_task(
    conn: Connection,
    task_id: UUID,
    *,
    actor: Actor,
    lease_number: int,
    error: str,
    detail: str = "",
    retry_in: float | None = None,
    final: bool = False,
    attempts_left: int | None = None,
    request_id: str | None = None,
) -> Outcome:
    """The work failed: try again after the retry policy's wait or `retry_in` seconds; after the last attempt, an incident.

    `detail`: a stack trace, kept with the task and beside the incident. `attempts_left`: how many more there are, whatever there were.

    Locks: the task. Refuses: NOT_ALLOWED, NOT_FOUND, LEASE_LOST.
    """

    def fail() -> Outcome:
        return fail_or_lost(
            conn,
            "fail_external_task",
            lease_under(task_id, lease_number),
            error=error,
            detail=detail,
            retry_in=retry_in,
            final=final or (attempts_left is not None and attempts_left < 1),
            actor=actor.username,
            attempts_left=None if attempts_left is None else max(0, attempts_left),
        )

    return checked(conn, task_id, actor, fail, look_first=True)


@command
def throw_external_error(
    conn: Connection,
    task_id: UUID,
    *,
    actor: Actor,
    lease_number: int,
    code: str,
    message: str = "",
    variables: Mapping[str, Any] | None = None,
    request_id: str | None = None,
) -> Outcome:
    """The work ended in a BPMN error; one that nothing catches is an incident.

    Locks: the root, the task. Refuses: NOT_ALLOWED, INVALID, NOT_FOUND, LEASE_LOST, INSTANCE_….
    """
    given = variables or {}
    _, wrong = accept(given)
    problems = tuple(FieldProblem(f"variables.{name}", text) for name, text in wrong)
    request = request_for(actor, request_id, "throw_external_error", task_id, [lease_number, code, message, given])

    def throw() -> Outcome:
        return throw_error(
            conn,
            "throw_external_error",
            lease_under(task_id, lease_number),
            code=code,
            message=message,
            variables=given,
            actor=actor.username,
            tenant_id=actor.tenant_id,
            request=request,
        )

    return checked(conn, task_id, actor, throw, problems)


@command
def renew_external_task(
    conn: Connection, task_id: UUID, *, actor: Actor, lease_number: int, lease_seconds: float, request_id: str | None = None
) -> Renewed | Rejected:
    """Move the expiry to `lease_seconds` from now. A repeat moves it again, so no request row is written.

    Locks: the task, SKIP LOCKED. Refuses: NOT_ALLOWED, INVALID, NOT_FOUND, LEASE_LOST.
    """
    problems: tuple[FieldProblem, ...] = ()
    if not 0 < lease_seconds <= LONGEST_LEASE:
        problems = (FieldProblem("lease_seconds", f"expected more than 0 and at most {LONGEST_LEASE:.0f}, found {lease_seconds}"),)

    def move() -> Renewed | Rejected:
        lease = lease_under(task_id, lease_number)
        for _ in range(_LOOKS):
            extended = renew_leases(conn, EXTERNAL_TASK, [(task_id, lease_number, lease_seconds, None)])
            if extended.expires_at:
                return Renewed(extended.expires_at)
            if extended.lost:
                break
            # Locked by a command that ends in a moment: wait for this one row, then look again.
            cursor_of(conn).execute(WAIT_FOR_LEASE, (task_id,))
        return lease_was_lost(conn, "renew_external_task", lease, actor)

    return checked(conn, task_id, actor, move, problems, look_first=True)


@command
def release_external_task(
    conn: Connection, task_id: UUID, *, actor: Actor, lease_number: int, request_id: str | None = None
) -> ItemReleased | Rejected:
    """Hand it back unstarted: the attempt is given back.

    Locks: the task. Refuses: NOT_ALLOWED, NOT_FOUND, LEASE_LOST.
    """

    def hand_back() -> ItemReleased | Rejected:
        lease = lease_under(task_id, lease_number)
        if release_item(conn, lease, actor.username) or was_released(conn, lease):
            return ItemReleased(task_id)
        return lease_was_lost(conn, "release_external_task", lease, actor)

    return checked(conn, task_id, actor, hand_back, look_first=True)


# ---- who may, and what is there


def checked(
    conn: Connection,
    task_id: UUID,
    actor: Actor,
    run: Callable[[], T],
    problems: tuple[FieldProblem, ...] = (),
    *,
    look_first: bool = False,
) -> T | Rejected:
    """R13: may not do it at all, is not there, is invalid, and then the world.

    `look_first`: the statement to come does not compare the tenant.
    """
    if not may(actor, "work", "external_task"):
        return Rejected(Refusal.NOT_ALLOWED)
    if (look_first or problems) and not is_known(conn, task_id, actor):
        return Rejected(Refusal.NOT_FOUND)
    if problems:
        return Rejected(Refusal.INVALID, "; ".join(f"{p.field}: {p.message}" for p in problems), problems=problems, item_id=task_id)
    outcome = run()
    lost = isinstance(outcome, Rejected) and outcome.refusal is Refusal.LEASE_LOST
    return Rejected(Refusal.NOT_FOUND) if lost and not is_known(conn, task_id, actor) else outcome


def is_known(conn: Connection, task_id: UUID, actor: Actor) -> bool:
    """Whether there is, or was, such a task for this tenant."""
    row = cursor_of(conn).execute(_KNOWN, {"id": task_id, "tenant_id": actor.tenant_id}).fetchone()
    return row is not None and bool(row[0])


def lease_was_lost(conn: Connection, name: str, lease: Lease, actor: Actor) -> Rejected:
    text = f"external task {lease.item_id}: expected leased under number {lease.number}, found it taken back, ended or given to another"
    rejected = Rejected(Refusal.LEASE_LOST, text, item_id=lease.item_id)
    counted: Rejected = refuse(conn, name, actor.username, actor.tenant_id, rejected)
    return counted


def lease_under(task_id: UUID, number: int) -> Lease:
    return Lease("external_task", task_id, number, "")


def _detail(loaded: Loaded, lease: Lease) -> dict[str, Any]:
    return {**event_detail(loaded, lease), "owner": loaded.leaf.detail["lease_owner"]}


def _acquisition_problems(worker_id: str, durations: Mapping[str, float], limit: int) -> tuple[FieldProblem, ...]:
    problems = []
    if not 0 < len(worker_id.strip()) <= MAX_NAME:
        problems.append(FieldProblem("worker_id", f"expected 1 to {MAX_NAME} characters"))
    if not 0 < len(durations) <= MOST_TOPICS:
        problems.append(FieldProblem("topics", f"expected 1 to {MOST_TOPICS} topics, found {len(durations)}"))
    if not all(0 < seconds <= LONGEST_LEASE for seconds in durations.values()):
        problems.append(FieldProblem("lease_seconds", f"expected more than 0 and at most {LONGEST_LEASE:.0f} seconds"))
    if not 1 <= limit <= MOST_TASKS:
        problems.append(FieldProblem("limit", f"expected 1 to {MOST_TASKS}, found {limit}"))
    return tuple(problems)


# ---- what a client is given

# Variables of an inner scope hide those of an outer one; the inputs of the activity hide both. Large collections of the
# loops around it are left out (S37).
_BATCH = f"""
SELECT e.id, e.topic, e.element_id, e.instance_id, e.root_id, d.key, i.business_key,
  (SELECT jsonb_object_agg(v.name, jsonb_build_array(v.type, v.value) ORDER BY array_position(s.path, v.scope_id)) FROM variable v
    WHERE v.scope_id = ANY (s.path) AND NOT (pg_column_size(v.value) > 8192 AND v.name = ANY (of_loops.names))),
  e.payload, e.lease_number, e.lease_expires_at, e.attempts, e.max_attempts, e.priority, e.created_at,
  e.token_id, e.definition_id, d.version_tag, e.last_error, e.error_detail, e.retries_set
FROM external_task e
JOIN process_instance i ON i.id = e.instance_id
JOIN process_definition d ON d.id = e.definition_id
JOIN token t ON t.id = e.token_id
JOIN scope s ON s.id = t.scope_id
JOIN process_instance r ON r.id = e.root_id
CROSS JOIN LATERAL (SELECT ARRAY(
  SELECT jsonb_array_elements_text(b.counters->'over') FROM scope b WHERE b.id = ANY (s.path)) AS names) of_loops
WHERE e.id = ANY (%(ids)s) AND e.status COLLATE "C" = 'leased' AND e.held = '{{}}' AND NOT {row_is_paused("external_task", "e")}
  AND r.mark IS DISTINCT FROM 'cancelling'
"""
_KNOWN = (
    "SELECT EXISTS (SELECT FROM external_task WHERE id = %(id)s AND tenant_id = %(tenant_id)s)"
    " OR EXISTS (SELECT FROM history WHERE item_id = %(id)s AND tenant_id = %(tenant_id)s AND kind LIKE 'external_task_%%')"
)


def _task(row: Sequence[Any]) -> LeasedTask:
    inputs = {name: (carried["type"], carried["value"]) for name, carried in row[8].get("inputs", {}).items()}
    seen = {**(row[7] or {}), **inputs}
    variables, types = {name: value for name, (_, value) in seen.items()}, {name: kind for name, (kind, _) in seen.items()}
    values = [*row[:7], variables, *row[9:15], row[8].get("headers", {}), types, frozenset(inputs), *row[15:]]
    return LeasedTask(*values)
