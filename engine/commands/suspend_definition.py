"""Suspending a version of a process: nothing is started by it any more, its start timers rest; with its running cases, or without.

Whatever starts an instance holds its definition FOR KEY SHARE with the status in the guard, so the suspension, which takes it
FOR UPDATE and commits, has all starts either before it or refused. Only then are the cases listed: a job of kind `hold`
suspends them one by one (baton_hold_next_case). To resume takes back what the suspension did: the cases that went along go on,
those that a person suspended by themselves stay as they are. A start timer whose time has passed starts one instance then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import orjson
from psycopg import errors

from engine.commands.may import may
from engine.commands.outcome import Actor, DefinitionResumed, DefinitionSuspended, Refusal, Rejected
from engine.commands.requests import WRITE_REQUEST, Request, encode, is_repeat, recorded, request_for
from engine.commands.step import answer
from engine.commands.suspend import ATTEMPTS, with_last
from engine.commands.transaction import Connection, command, transaction
from engine.commands.whole_case import bad_reason
from engine.core.effects import InvariantBroken
from engine.db.locks import DELETION
from engine.db.session import cursor_of
from engine.ids import new_id

_PER_CASE = 0.05  # seconds over which each case that goes on spreads all of them, up to `_SPREAD`
_SPREAD = 30.0


@command
def suspend_definition(
    conn: Connection, definition_id: UUID, *, actor: Actor, reason: str = "", with_cases: bool = False, request_id: str | None = None
) -> DefinitionSuspended | Rejected:
    """Let nothing start by a version; `with_cases`: and suspend its running cases.

    Locks: the process key, as a deployment does; the version, FOR UPDATE. Refuses: NOT_ALLOWED, INVALID (reason too long),
    NOT_FOUND, DEFINITION_DELETING, ALREADY_SUSPENDED (by whom, and when).
    """
    request = request_for(actor, request_id, "suspend_definition", definition_id, [reason, with_cases])
    outcome: DefinitionSuspended | Rejected = _settled(conn, definition_id, actor, reason, request, with_cases=with_cases)
    return outcome


@command
def resume_definition(
    conn: Connection, definition_id: UUID, *, actor: Actor, reason: str = "", request_id: str | None = None
) -> DefinitionResumed | Rejected:
    """Let a suspended version start again, and the cases go on that were suspended with it.

    Locks: the process key, as a deployment does; the version, FOR UPDATE; the jobs that start by it. Refuses: NOT_ALLOWED,
    INVALID (reason too long), NOT_FOUND, DEFINITION_DELETING, NOT_SUSPENDED (who resumed it last, and when).
    """
    request = request_for(actor, request_id, "resume_definition", definition_id, reason)
    outcome: DefinitionResumed | Rejected = _settled(conn, definition_id, actor, reason, request, with_cases=None)
    return outcome


def _settled(conn: Connection, definition_id: UUID, actor: Actor, reason: str, request: Request | None, *, with_cases: bool | None) -> Any:
    """`with_cases` None: it is to be resumed."""
    if not may(actor, "suspend", "definition"):
        return Rejected(Refusal.NOT_ALLOWED)
    if refused := bad_reason(reason, definition_id):
        return refused
    try:
        with transaction(conn):
            outcome = _in_transaction(conn, definition_id, actor, reason, request, with_cases)
    except errors.UniqueViolation as error:
        if not is_repeat(error):
            raise
        outcome = recorded(conn, request)
    if isinstance(outcome, Rejected):
        name = "resume_definition" if with_cases is None else "suspend_definition"
        # A repeat finds the version as the first one left it.
        return recorded(conn, request) or answer(conn, name, actor, with_last(conn, outcome, _LAST), request)
    return outcome


def _in_transaction(
    conn: Connection, definition_id: UUID, actor: Actor, reason: str, request: Request | None, with_cases: bool | None
) -> Any:
    cursor = cursor_of(conn)
    row = cursor.execute(DELETION, (definition_id, actor.tenant_id, 0)).fetchone()
    if row is None or row[0] is None:
        return Rejected(Refusal.NOT_FOUND)
    found: Mapping[str, Any] = row[0]
    # Re-check after the lock: somebody may have suspended, resumed or deleted it while we waited.
    if (refused := _refusal(found, definition_id, suspend=with_cases is not None)) is not None:
        return refused
    values: dict[str, Any] = {
        "id": definition_id,
        "actor": actor.username,
        "reason": reason,
        "suspension_id": new_id(),
        "with_cases": bool(with_cases),
        "job_id": new_id(),
        "attempts": ATTEMPTS,
        "told": orjson.dumps({"by": actor.username, "reason": reason}).decode(),
        "per_case": _PER_CASE,
        "spread": _SPREAD,
    }
    if with_cases is None:
        moved = cursor.execute(_TAKEN_ALONG, (definition_id,)).fetchone()
        values["with_cases"] = bool(moved and moved[0])
        done: Any = DefinitionResumed(definition_id, found["key"], found["version"], values["with_cases"])
    else:
        done = DefinitionSuspended(definition_id, found["key"], found["version"], with_cases)
    if request is not None:
        values.update(request.params(), outcome=encode(done))
    if cursor.execute((_RESUME if with_cases is None else _SUSPEND)[request is not None], values).fetchone() is None:
        raise InvariantBroken(f"version {definition_id}: expected the status that was read under its lock, found another")
    return done


def _refusal(found: Mapping[str, Any], definition_id: UUID, *, suspend: bool) -> Rejected | None:
    match found["status"], suspend:
        case "deleting", _:
            return Rejected(Refusal.DEFINITION_DELETING, f"version {found['version']} of {found['key']} is deleted", item_id=definition_id)
        case "suspended", True:
            return Rejected(Refusal.ALREADY_SUSPENDED, item_id=definition_id)
        case "active", False:
            return Rejected(Refusal.NOT_SUSPENDED, item_id=definition_id)
    return None


# ---- the statements

_LAST = "SELECT actor, at FROM history WHERE item_id = %s AND kind = 'definition_resumed' ORDER BY id DESC LIMIT 1"
# Whether cases went along, and went or go on with their suspension: the job that suspends them may still be under way.
_TAKEN_ALONG = """
SELECT EXISTS (SELECT FROM suspension c JOIN suspension s ON s.cause_id = c.id WHERE c.object_id = %s)
"""

# What starts by the version: start timers, and what is on its way to its start events. All under its lock, so that nobody
# writes another one meanwhile.
_STARTING = "j.definition_id = moved.id AND j.instance_id IS NULL AND j.kind IN ('start_timer', 'message', 'signal', 'throw')"
_EVENTS = """, event AS (
  INSERT INTO history (at, tenant_id, definition_id, kind, actor, item_id, data)
  SELECT at, tenant_id, id, 'definition_{done}', %(actor)s, id, jsonb_build_object('key', key, 'version', version,
    'reason', %(reason)s::text, 'with_cases', %(with_cases)s::boolean)
  FROM moved
), noted AS (
  INSERT INTO audit (at, tenant_id, actor, action, object_kind, object_id, reason, detail)
  SELECT at, tenant_id, %(actor)s, '{action}', 'definition', id::text, %(reason)s,
    jsonb_build_object('key', key, 'version', version, 'with_cases', %(with_cases)s::boolean)
  FROM moved
), going AS (
  INSERT INTO job (id, tenant_id, kind, definition_id, element_id, due_at, available_at, priority, level, max_attempts, payload)
  SELECT %(job_id)s, tenant_id, 'hold', id, '', at, at, 9, 9, %(attempts)s, %(told)s::jsonb || {told}
  FROM moved WHERE %(with_cases)s
)"""
_SUSPENDING = (
    """
WITH moved AS (
  UPDATE process_definition d SET status = 'suspended' WHERE d.id = %(id)s AND d.status = 'active'
  RETURNING d.id, d.tenant_id, d.key, d.version, baton_clock() AS at
), suspended AS (
  INSERT INTO suspension (object_id, id, tenant_id, kind, suspended_by, suspended_at, reason)
  SELECT id, %(suspension_id)s, tenant_id, 'definition', %(actor)s, at, %(reason)s FROM moved
  ON CONFLICT ON CONSTRAINT pk_suspension DO UPDATE SET id = excluded.id, suspended_by = excluded.suspended_by,
    suspended_at = excluded.suspended_at, reason = excluded.reason
), held AS (
  UPDATE job j SET held = j.held || '{suspended}'::text[] FROM moved WHERE """
    + _STARTING
    + ")"
    + _EVENTS.format(
        done="suspended",
        action="suspend",
        told="jsonb_build_object('what', 'hold_cases', 'suspension', %(suspension_id)s::uuid)",
    )
)
# A message that a case threw and that waited here belongs to no version again, and looks anew who waits.
_RESUMING = (
    """
WITH moved AS (
  UPDATE process_definition d SET status = 'active' WHERE d.id = %(id)s AND d.status = 'suspended'
  RETURNING d.id, d.tenant_id, d.key, d.version, baton_clock() AS at
), over AS (
  DELETE FROM suspension s USING moved WHERE s.object_id = moved.id RETURNING s.id
), along AS (
  SELECT over.id, least(%(spread)s::float8, %(per_case)s::float8 * (SELECT count(*) FROM suspension s WHERE s.cause_id = over.id)) AS spread
  FROM over
), freed AS (
  UPDATE job j SET held = array_remove(j.held, 'suspended'), available_at = greatest(j.available_at, moved.at),
    definition_id = CASE j.kind WHEN 'throw' THEN NULL ELSE j.definition_id END
  FROM moved WHERE """
    + _STARTING
    + " AND 'suspended' = ANY (j.held))"
    + _EVENTS.format(
        done="resumed",
        action="resume",
        told="jsonb_build_object('what', 'free_cases', 'suspension', (SELECT id FROM along), 'spread', (SELECT spread FROM along))",
    )
)
_PRESS = f", press AS ({WRITE_REQUEST.format(outcome='%(outcome)s::jsonb', source='moved')})"
_END = " SELECT id FROM moved"
_SUSPEND = (_SUSPENDING + _END, _SUSPENDING + _PRESS + _END)
_RESUME = (_RESUMING + _END, _RESUMING + _PRESS + _END)
