"""A start timer is due: start an instance, record that this occurrence has fired and write the next one, in one transaction.

The record is unique by schedule and due time (`timer_firing`): whatever went wrong before, no occurrence starts two cases.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from psycopg import errors

from engine.bpmn.definition import TimerConfig
from engine.commands.failure import fail_item
from engine.commands.jobs import Outcome, end_fired, fired_before, landed_or_lost
from engine.commands.outcome import SYSTEM, ItemDone, Lease
from engine.commands.requests import refuse
from engine.commands.start import LOOKS, NewCase, prepare, refusal_of
from engine.commands.transaction import Connection, command, transaction
from engine.core.effects import Event, Firing, InvariantBroken
from engine.core.timers import SCHEDULE, Due, due, due_again, missed_by, schedule_of
from engine.db.apply import write
from engine.db.called import forget
from engine.db.definitions import DefinitionRefused, compiled
from engine.db.session import cursor_of
from engine.expressions import ExpressionError
from engine.ids import new_id

_LOAD = (
    "SELECT j.status, j.lease_number, j.tenant_id, j.definition_id, j.element_id, j.payload, j.due_at, j.attempts, d.status, baton_now()"
    " FROM job j JOIN process_definition d ON d.id = j.definition_id WHERE j.id = %s AND j.kind = 'start_timer'"
)
# Twice the same occurrence is one row: uq_job_start_timer (definition, element, due).
NEXT_START = (
    "INSERT INTO job (id, tenant_id, kind, definition_id, element_id, due_at, available_at, payload)"
    " SELECT %(id)s, %(tenant_id)s, 'start_timer', %(definition_id)s, %(element_id)s, d.due, greatest(d.due, c.at), %(payload)s::jsonb"
    " FROM (SELECT baton_clock() AS at) c,"
    " LATERAL (SELECT coalesce(%(due_at)s::timestamptz, c.at + make_interval(secs => %(due_in)s::float8)) AS due) d"
    " ON CONFLICT (definition_id, element_id, due_at) WHERE kind = 'start_timer' DO NOTHING"
)


@command
def start_by_timer(conn: Connection, lease: Lease) -> Outcome:
    """Start an instance at the timer start event of a leased `start_timer` job.

    Locks: the definition, FOR KEY SHARE, then the job. Refuses: LEASE_LOST, DEFINITION_SUSPENDED, DEFINITION_DELETING.
    """
    for _ in range(LOOKS):
        row = cursor_of(conn).execute(_LOAD, (lease.item_id,)).fetchone()
        if row is None or row[0] != "leased" or row[1] != lease.number:
            return landed_or_lost(conn, "start_by_timer", lease, ("timer_fired",), SYSTEM.username)
        _, _, tenant_id, definition_id, element_id, payload, due_at, attempts, status, now = row
        refused = refusal_of(status)
        if refused is not None:
            rejected: Outcome = refuse(conn, "start_by_timer", SYSTEM.username, tenant_id, refused)
            return rejected
        schedule = schedule_of(definition_id, element_id, payload)
        try:
            definition = compiled(conn, definition_id)
            timer = definition.nodes[element_id].config.timer
            following = due_again(timer, {**payload, SCHEDULE: str(schedule)}, due_at, now)
            passed = missed_by(timer, payload, due_at, now)
        except (DefinitionRefused, ExpressionError) as error:
            failed = fail_item(conn, lease, error=str(error), final=True, kind="unsupported")
            return failed or landed_or_lost(conn, "start_by_timer", lease, (), SYSTEM.username)
        told = {"item_id": str(lease.item_id), "lease_number": lease.number, "attempt": attempts, "owner": lease.owner}
        because = Event("timer_fired", element_id, {**told, "missed": passed} if passed else told)
        case = NewCase(definition_id, definition, tenant_id, element_id, "timer", {}, None, SYSTEM.username, now)
        change, begun = prepare(conn, case, leaf="start_by_job", leaf_id=lease.item_id, fence=lease.number, because=because)
        change.effects.firing = Firing(schedule, due_at, passed)
        try:
            with transaction(conn):
                at = write(conn, change)
                if at is not None and following is not None:
                    write_occurrence(conn, tenant_id, definition_id, element_id, following)
        except errors.UniqueViolation as error:
            if not fired_before(error):
                raise
            return end_fired(conn, lease, attempts)
        if at is not None:
            return ItemDone(lease.item_id, lease.number, begun.instance_id)
        forget(change.called)
    raise InvariantBroken(f"job {lease.item_id}: expected a start or a reason within {LOOKS} looks, found neither")


def write_occurrence(conn: Connection, tenant_id: str, definition_id: UUID, element_id: str, occurrence: Due) -> UUID:
    """Write one `start_timer` job, inside the caller's transaction. The deployment writes the first with it."""
    key = new_id()
    parameters: dict[str, Any] = {
        "id": key,
        "tenant_id": tenant_id,
        "definition_id": definition_id,
        "element_id": element_id,
        "due_at": occurrence.at,
        "due_in": occurrence.in_seconds or 0.0,
        "payload": orjson.dumps(dict(occurrence.payload)).decode(),
    }
    cursor_of(conn).execute(NEXT_START, parameters)
    return key


def first_occurrence(timer: TimerConfig, now: datetime) -> Due | None:
    """When a start timer is due for the first time; None if never. Its expression sees no variables. Raises ExpressionError."""
    return due(timer, timer.expression.evaluate({}), now)
