"""Deleting a version of a process: nothing starts by it any more, and the version before it counts again.

The row stays, as `deleting`, which nothing leaves: finished instances of it keep their history and their diagram, and its
number is not given again. A version of which instances run is not deleted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from psycopg import errors

from engine.bpmn.definition import ProcessDefinition
from engine.commands.may import may
from engine.commands.outcome import Actor, FieldProblem, Refusal, Rejected, VersionDeleted
from engine.commands.requests import WRITE_REQUEST, Request, encode, is_repeat, recorded, request_for
from engine.commands.start_events import END_STARTS, WRITE_STARTS, UnusableStarts, read_starts, subscriptions_of, timers_of
from engine.commands.step import answer
from engine.commands.transaction import Connection, command, transaction
from engine.core.effects import InvariantBroken
from engine.db.definitions import DefinitionRefused, compiled
from engine.db.locks import DELETION, KEYS
from engine.db.session import cursor_of
from engine.ids import new_id

MAX_REASON = 500  # characters
COUNTED = 10_000  # running instances; the refusal names no more


@command
def delete_version(
    conn: Connection, definition_id: UUID, *, actor: Actor, reason: str, request_id: str | None = None
) -> VersionDeleted | Rejected:
    """Delete a version; if it was the newest, the start events of the one before count again, in the same transaction.

    A start timer that is the same in both goes on where it had come to; another one begins anew, but for a date that has passed.
    Locks: the process key, as a deployment does; the version, FOR UPDATE; the keys of start messages.
    Refuses: NOT_ALLOWED, NOT_FOUND, INVALID (no reason), DEFINITION_IN_USE, DEFINITION_DELETING, UNSUPPORTED (newer rules
    refuse the version before).
    """
    if not may(actor, "delete", "definition"):
        return Rejected(Refusal.NOT_ALLOWED)
    reason = reason.strip()
    if not reason or len(reason) > MAX_REASON or "\x00" in reason:
        problem = FieldProblem("reason", f"expected a reason of 1 to {MAX_REASON} characters, found {len(reason)}")
        return Rejected(Refusal.INVALID, problem.message, problems=(problem,), item_id=definition_id)
    request = request_for(actor, request_id, "delete_version", definition_id, reason)
    try:
        outcome: Any = _delete(conn, definition_id, actor, reason, request)
    except errors.UniqueViolation as error:
        if not is_repeat(error):
            raise
        outcome = recorded(conn, request)
    except DefinitionRefused as refused:
        outcome = Rejected(Refusal.UNSUPPORTED, f"it would become the newest: {refused}", problems=refused.problems)
    except UnusableStarts as unusable:
        outcome = Rejected(Refusal.UNSUPPORTED, f"the version that would become the newest: {unusable}", problems=unusable.problems)
    if isinstance(outcome, Rejected):
        # A repeat finds the version deleted: by itself.
        outcome = recorded(conn, request) or answer(conn, "delete_version", actor, outcome, request)
    result: VersionDeleted | Rejected = outcome
    return result


def _delete(conn: Connection, definition_id: UUID, actor: Actor, reason: str, request: Request | None) -> VersionDeleted | Rejected:
    with transaction(conn):
        cursor = cursor_of(conn)
        row = cursor.execute(DELETION, (definition_id, actor.tenant_id, COUNTED)).fetchone()
        if row is None or row[0] is None:
            return Rejected(Refusal.NOT_FOUND)
        found = row[0]
        # Re-check after the lock: somebody may have deleted it, or started it, while we waited.
        if (refused := _refusal(found, definition_id)) is not None:
            return refused
        restored = _restored(conn, found, definition_id)
        outcome = VersionDeleted(definition_id, found["key"], found["version"], restored.version)
        values = {
            "id": definition_id,
            "replaced": [definition_id],
            "actor": actor.username,
            "reason": reason,
            "restored": restored.version,
            "subscriptions": orjson.dumps(restored.subscriptions).decode(),
            "timers": orjson.dumps(restored.timers).decode(),
        }
        if request is not None:
            values.update(request.params(), outcome=encode(outcome))
        if cursor.execute(_DELETE[request is not None], values).fetchone() is None:
            raise InvariantBroken(f"version {definition_id}: expected the status that was read under its lock, found another")
        messages = [row["id"] for row in restored.subscriptions if row["kind"] == "start"]
        if messages:
            cursor.execute(KEYS, {"subscription_ids": messages, "job_ids": [new_id() for _ in messages]})
    return outcome


def _refusal(found: Mapping[str, Any], definition_id: UUID) -> Rejected | None:
    if found["status"] == "deleting":
        return Rejected(Refusal.DEFINITION_DELETING, f"version {found['version']} of {found['key']} is deleted", item_id=definition_id)
    running = found["running"]
    if running:
        many = f"{running:,}{' or more' if running == COUNTED else ''} instance{'s' if running > 1 else ''}"
        which = f"{many} of version {found['version']} of {found['key']}"
        text = f"{which} still runs; cancel or finish it first" if running == 1 else f"{which} still run; cancel or finish them first"
        return Rejected(Refusal.DEFINITION_IN_USE, text, item_id=definition_id)
    return None


@dataclass(frozen=True, slots=True)
class _Restored:
    """The version that becomes the newest, and the rows of its start events. `version` None: none does."""

    version: int | None
    subscriptions: list[dict[str, Any]]
    timers: list[dict[str, Any]]


def _restored(conn: Connection, found: Mapping[str, Any], definition_id: UUID) -> _Restored:
    before = found["before"]
    if before is None:
        return _Restored(None, [], [])
    key = UUID(before["id"])
    definition = compiled(conn, key)
    (starts,) = read_starts([(definition, before["file"])], datetime.fromisoformat(found["now"]))
    now = datetime.fromisoformat(found["now"])
    timers = timers_of(conn, key, definition, starts, definition_id, found["timers"])
    return _Restored(before["version"], subscriptions_of(key, starts), [row for row in timers if not _is_over(definition, row, now)])


def _is_over(definition: ProcessDefinition, row: Mapping[str, Any], now: datetime) -> bool:
    """A date that has passed: it was due under the one version or the other. Deployed anew, it would start an instance at once."""
    due_at = row["due_at"]
    return definition.nodes[row["element_id"]].config.timer.type == "date" and isinstance(due_at, datetime) and due_at <= now


_TEXT = """
WITH deleted AS (
  UPDATE process_definition d SET status = 'deleting' WHERE d.id = %(id)s AND d.status IN ('active', 'suspended')
  RETURNING d.id, d.tenant_id, d.key, d.version, baton_clock() AS at
), """
# A signal that waited along with its suspended start event has nobody to start: its job ends quietly.
_EVENTS = """, over AS (
  DELETE FROM suspension s USING deleted WHERE s.object_id = deleted.id
), let_end AS (
  UPDATE job j SET held = array_remove(j.held, 'suspended'), available_at = deleted.at
  FROM deleted WHERE j.definition_id = deleted.id AND j.instance_id IS NULL AND j.kind = 'signal' AND 'suspended' = ANY (j.held)
), event AS (
  INSERT INTO history (at, tenant_id, definition_id, kind, actor, item_id, data)
  SELECT at, tenant_id, id, 'definition_deleted', %(actor)s, id,
    jsonb_build_object('key', key, 'version', version, 'restored', %(restored)s::int, 'reason', %(reason)s::text)
  FROM deleted
), noted AS (
  INSERT INTO audit (at, tenant_id, actor, action, object_kind, object_id, reason, detail)
  SELECT at, tenant_id, %(actor)s, 'delete', 'definition', id::text, %(reason)s,
    jsonb_build_object('key', key, 'version', version, 'restored', %(restored)s::int)
  FROM deleted
)"""
_TEXT += f"{END_STARTS.format(of='deleted')}, {WRITE_STARTS.format(of='deleted')}{_EVENTS}"
_DELETE = (
    _TEXT + " SELECT id FROM deleted",
    _TEXT + f", press AS ({WRITE_REQUEST.format(outcome='%(outcome)s::jsonb', source='deleted')}) SELECT id FROM deleted",
)
