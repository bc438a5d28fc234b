"""How an outbox delivery ends. Leaf-only: the case that wrote it went on long ago, so no root is locked.

Every attempt carries the same delivery id (R7). A delivery row stays with its final status, so what became of an
attempt is read there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from psycopg import errors
from psycopg.types.json import Jsonb

from engine.commands.failure import fail_item
from engine.commands.landed import failed_before
from engine.commands.may import may
from engine.commands.outcome import Actor, ItemDone, ItemFailed, ItemRetried, Lease, Refusal, Rejected
from engine.commands.requests import WRITE_REQUEST, encode, is_repeat, recorded, refuse, request_for
from engine.commands.transaction import Connection, command
from engine.db.session import cursor_of
from engine.failpoints import commit_point
from engine.ids import new_id
from engine.text import shortened

REASON_LENGTH = 500


@command
def delivered(conn: Connection, lease: Lease, *, response: Mapping[str, Any]) -> ItemDone | Rejected:
    """The other side took it. `response`: what is kept of its answer.

    Locks: the delivery. Refuses: LEASE_LOST.
    """
    values = {"item_id": lease.item_id, "number": lease.number, "response": Jsonb(dict(response))}
    with commit_point(conn, "command.before_commit"):
        row = cursor_of(conn).execute(_DELIVERED, values).fetchone()
    if row is not None:
        return ItemDone(lease.item_id, lease.number, row[0])
    row = conn.execute(_STATE, (lease.item_id,)).fetchone()
    if row is not None and row[1:3] == ("completed", lease.number):
        return ItemDone(lease.item_id, lease.number, row[0], repeated=True)
    return _lost(conn, "delivered", lease, row)


@command
def delivery_failed(
    conn: Connection, lease: Lease, *, error: str, retry_in: float | None = None, final: bool = False
) -> ItemFailed | Rejected:
    """It was not taken. `retry_in`: seconds that the other side asked for; `final`: another attempt would be no use.

    Locks: the delivery. Refuses: LEASE_LOST.
    """
    failed = fail_item(conn, lease, error=error, retry_in=retry_in, final=final) or failed_before(conn, lease)
    if failed is not None:
        return failed
    return _lost(conn, "delivery_failed", lease, conn.execute(_STATE, (lease.item_id,)).fetchone())


@command
def skip_delivery(conn: Connection, delivery_id: UUID, *, actor: Actor, reason: str, request_id: str | None = None) -> ItemDone | Rejected:
    """Give up a delivery that is not being sent right now: it will never be.

    Locks: the delivery. Refuses: NOT_ALLOWED, NOT_FOUND, NOT_FAILED (sent, skipped or cancelled already, or leased).
    """
    if not may(actor, "skip", "delivery"):
        return Rejected(Refusal.NOT_ALLOWED)
    request = request_for(actor, request_id, "skip_delivery", delivery_id, reason)
    values: dict[str, Any] = {
        "item_id": delivery_id,
        "tenant_id": actor.tenant_id,
        "actor": actor.username,
        "reason": shortened(reason, REASON_LENGTH),
    }
    if request is not None:
        values.update(request.params(), outcome=encode(ItemDone(delivery_id, 0)))
    try:
        with commit_point(conn, "command.before_commit"):
            row = cursor_of(conn).execute(_SKIP[request is not None], values).fetchone()
    except errors.UniqueViolation as error:
        if not is_repeat(error):
            raise
        row = None
    if row is not None:
        return ItemDone(delivery_id, row[0], row[1])
    answer: ItemDone | Rejected = _why_not(conn, "skip_delivery", delivery_id, actor, request)
    return answer


@command
def replay_delivery(
    conn: Connection, delivery_id: UUID, *, actor: Actor, reason: str, request_id: str | None = None
) -> ItemRetried | Rejected:
    """Send again what was sent, skipped or cancelled: as a new delivery, whose id the other side has not seen, at the end of its line.

    Locks: nothing. Refuses: NOT_ALLOWED, NOT_FOUND, NOT_FAILED (it has not ended; a failed one is retried instead).
    """
    if not may(actor, "replay", "delivery"):
        return Rejected(Refusal.NOT_ALLOWED)
    request = request_for(actor, request_id, "replay_delivery", delivery_id, reason)
    values: dict[str, Any] = {
        "item_id": delivery_id,
        "new_id": new_id(),
        "tenant_id": actor.tenant_id,
        "actor": actor.username,
        "reason": shortened(reason, REASON_LENGTH),
    }
    if request is not None:
        values.update(request.params(), outcome=encode(ItemRetried(values["new_id"], 0)))
    try:
        with commit_point(conn, "command.before_commit"):
            row = cursor_of(conn).execute(_REPLAY[request is not None], values).fetchone()
    except errors.UniqueViolation as error:
        if not is_repeat(error):
            raise
        row = None
    if row is not None:
        return ItemRetried(values["new_id"], row[0])
    answer: ItemRetried | Rejected = _why_not(conn, "replay_delivery", delivery_id, actor, request)
    return answer


# ---- refusals


def _lost(conn: Connection, command: str, lease: Lease, found: Any) -> Rejected:
    state = f"expected leased under number {lease.number}, found {found[1]} under {found[2]}" if found else "found nothing"
    rejected: Rejected = refuse(conn, command, "engine", "", Rejected(Refusal.LEASE_LOST, state, item_id=lease.item_id))
    return rejected


def _why_not(conn: Connection, command: str, delivery_id: UUID, actor: Actor, request: Any) -> Any:
    first = recorded(conn, request)
    if first is not None:
        return first
    found = conn.execute(f"{_STATE} AND tenant_id = %s", (delivery_id, actor.tenant_id)).fetchone()
    if found is None:
        return Rejected(Refusal.NOT_FOUND)
    by, at = _last_touched(conn, delivery_id)
    rejected = Rejected(Refusal.NOT_FAILED, f"the delivery is {found[1]}", by, at=at, item_id=delivery_id)
    return refuse(conn, command, actor.username, actor.tenant_id, rejected, request)


def _last_touched(conn: Connection, delivery_id: UUID) -> tuple[str | None, Any]:
    row = conn.execute("SELECT actor, at FROM history WHERE item_id = %s ORDER BY id DESC LIMIT 1", (delivery_id,)).fetchone()
    return row or (None, None)


# ---- the statements

_STATE = "SELECT instance_id, status, lease_number FROM delivery WHERE id = %s"

_DELIVERED = """
WITH leaf AS (
  UPDATE delivery l SET status = 'completed', ended_at = baton_clock(), response = %(response)s,
    lease_owner = NULL, lease_expires_at = NULL, leased_at = NULL, last_error = NULL
  FROM (SELECT id, lease_owner AS owner, leased_at AS began_at FROM delivery WHERE id = %(item_id)s) before
  WHERE l.id = before.id AND l.status COLLATE "C" = 'leased' AND l.lease_number = %(number)s
  RETURNING l.*, before.owner, before.began_at
), event AS (
  INSERT INTO history (at, tenant_id, root_id, instance_id, definition_id, kind, element_id, actor, item_id, data)
  SELECT ended_at, tenant_id, root_id, instance_id, definition_id, 'delivery_completed', element_id, 'engine', id,
    jsonb_build_object('lease_number', lease_number, 'attempt', attempts, 'owner', owner, 'leased_at', began_at,
      'destination', destination, 'response', response - 'body')
  FROM leaf
)
SELECT instance_id FROM leaf
"""


def _with_request(text: str, source: str, end: str) -> tuple[str, str]:
    request = f", press AS ({WRITE_REQUEST.format(outcome='%(outcome)s::jsonb', source=source)})"
    return text + end, text + request + end


_SKIP = _with_request(
    """
WITH leaf AS (
  UPDATE delivery l SET status = 'skipped', ended_at = baton_clock()
  WHERE l.id = %(item_id)s AND l.tenant_id = %(tenant_id)s AND l.status IN ('available', 'failed') RETURNING l.*
), resolved AS (
  DELETE FROM incident i USING leaf WHERE i.delivery_id = leaf.id RETURNING i.id
), event AS (
  INSERT INTO history (at, tenant_id, root_id, instance_id, definition_id, kind, element_id, actor, item_id, data)
  SELECT ended_at, tenant_id, root_id, instance_id, definition_id, e.kind, element_id, %(actor)s, id,
    jsonb_build_object('reason', %(reason)s::text, 'lease_number', lease_number, 'attempt', attempts)
  FROM leaf CROSS JOIN LATERAL (VALUES ('delivery_skipped'), ('incident_resolved')) AS e (kind)
  WHERE e.kind <> 'incident_resolved' OR EXISTS (SELECT FROM resolved)
), noted AS (
  INSERT INTO audit (at, tenant_id, actor, action, object_kind, object_id, reason)
  SELECT ended_at, tenant_id, %(actor)s, 'skip', 'delivery', id::text, %(reason)s FROM leaf
)""",
    "leaf",
    " SELECT lease_number, instance_id FROM leaf",
)

_REPLAY = _with_request(
    """
WITH again AS (
  INSERT INTO delivery (id, tenant_id, kind, destination, instance_id, root_id, definition_id, element_id, due_at, available_at,
    priority, level, max_attempts, retry, request, created_at, address, route, line, held)
  SELECT %(new_id)s, tenant_id, kind, destination, instance_id, root_id, definition_id, element_id, at, at,
    priority, priority, max_attempts, retry, request, at, address, route, line,
    CASE WHEN line IS NULL THEN '{}' ELSE '{ordered}' END::text[]
  FROM delivery CROSS JOIN (SELECT baton_clock() AS at) clock
  WHERE id = %(item_id)s AND tenant_id = %(tenant_id)s AND status IN ('completed', 'skipped', 'cancelled') RETURNING *
), event AS (
  INSERT INTO history (at, tenant_id, root_id, instance_id, definition_id, kind, element_id, actor, item_id, data)
  SELECT created_at, tenant_id, root_id, instance_id, definition_id, 'delivery_created', element_id, %(actor)s, id,
    jsonb_build_object('again', %(item_id)s::uuid, 'reason', %(reason)s::text)
  FROM again
), noted AS (
  INSERT INTO audit (at, tenant_id, actor, action, object_kind, object_id, reason)
  SELECT created_at, tenant_id, %(actor)s, 'replay', 'delivery', %(item_id)s::text, %(reason)s FROM again
)""",
    "again",
    " SELECT max_attempts FROM again",
)
