"""How leased work fails: the one leaf-only statement behind `fail_job` and its sisters for external tasks and deliveries.

The attempt was counted when the item was acquired. While attempts are left the item becomes available again after its
retry policy's wait (or the engine's back-off) with jitter on top; after the last one, or when the failure is final, it
rests as `failed` beside one incident. Guarded by status and lease number (R4).

Exclusive work keeps its turn while it waits for another attempt. Failing for good gives it up, and then the root comes first.
"""

from __future__ import annotations

import math
from typing import Any

from engine.commands.outcome import ItemFailed, Lease
from engine.commands.transaction import Connection, transaction
from engine.db.locks import EXCLUSIVE, FAILING, FAILING_IN_TURN, ROOT_OF_ITEM, TURN
from engine.db.session import cursor_of
from engine.failpoints import commit_point
from engine.ids import new_id
from engine.text import shortened

ERROR_LENGTH = 2_000  # of `last_error` and of the incident's message
LONGEST_WAIT = 24 * 3600.0  # seconds that a handler, or the other side, may ask for
DETAIL_LENGTH = 20_000  # of the incident's detail: a stack trace is cut there

# The engine's own back-off: 10 s, 30 s, 90 s … an hour at most.
_WAIT = (
    "CASE WHEN %(retry_in)s::float8 IS NOT NULL THEN make_interval(secs => %(retry_in)s::float8)"
    " WHEN l.retry IS NULL THEN least(interval '10 seconds' * power(3, least(l.attempts, 10) - 1), interval '1 hour')"
    " WHEN left(l.retry, 1) = 'R' THEN split_part(l.retry, '/', 2)::interval"
    " ELSE split_part(l.retry, ',', least(l.attempts, cardinality(string_to_array(l.retry, ','))))::interval END"
)
_OVER = "(%(final)s OR l.attempts >= l.max_attempts)"
# Whoever works on external tasks may say how many attempts are left, and keeps what it tells of the failure.
_OVER_OUTSIDE = "(%(final)s OR (%(attempts_left)s::int IS NULL AND l.attempts >= l.max_attempts))"
_LEFT = "coalesce(l.attempts + %(attempts_left)s::int, l.max_attempts)"


def _statement(table: str, *, in_turn: bool = False) -> str:
    """`in_turn`: under the root's lock, which exclusive work needs that fails for good; else that is left alone, and told."""
    root = f"{ROOT_OF_ITEM.format(table=table)}, " if in_turn else ""
    outside = table == "external_task"
    over = _OVER_OUTSIDE if outside else _OVER
    more = f", error_detail = %(detail)s, max_attempts = {_LEFT}" if outside else ""
    found = (FAILING_IN_TURN if in_turn else FAILING).format(table=table)
    exclusive = table in EXCLUSIVE
    keeps = f" AND NOT (l.exclusive AND {over})" if exclusive and not in_turn else ""
    unlocked = found.replace("FROM (", f"FROM {table} l, (", 1)
    told = (
        f" UNION ALL SELECT l.attempts, 'in turn', NULL, NULL, l.root_id {unlocked} AND l.exclusive AND {over}"
        if exclusive and not in_turn
        else ""
    )
    return f"""
WITH {root}leaf AS (
  UPDATE {table} l SET status = CASE WHEN {over} THEN 'failed' ELSE 'available' END,
    available_at = CASE WHEN {over} THEN l.available_at ELSE baton_clock() + {_WAIT} * (1 + random() * 0.1) END,
    lease_owner = NULL, lease_expires_at = NULL, leased_at = NULL, level = l.priority, last_error = %(error)s{more}
  {found}{keeps}
  RETURNING l.*, before.owner, before.began_at, baton_clock() AS at
), opened AS (
  INSERT INTO incident (id, tenant_id, kind, message, detail, instance_id, root_id, definition_id, element_id, created_at, {table}_id)
  SELECT %(incident_id)s, tenant_id, %(kind)s, %(error)s, %(detail)s, instance_id, root_id, definition_id, element_id, at, id
  FROM leaf WHERE status = 'failed'
  ON CONFLICT ON CONSTRAINT uq_incident_{table} DO UPDATE
    SET kind = excluded.kind, message = excluded.message, detail = excluded.detail, created_at = excluded.created_at
  RETURNING id
), noted AS (
  INSERT INTO history (at, tenant_id, root_id, instance_id, definition_id, kind, element_id, actor, item_id, data)
  SELECT at, tenant_id, root_id, instance_id, definition_id, e.kind, element_id, %(actor)s, id,
    CASE e.kind WHEN 'incident_opened' THEN
      jsonb_build_object('incident_id', %(incident_id)s::uuid, 'kind', %(kind)s::text, 'message', %(error)s::text)
    ELSE jsonb_build_object('lease_number', lease_number, 'attempt', attempts, 'status', status, 'error', %(error)s::text,
      'owner', owner, 'leased_at', began_at, 'available_at', available_at) END
  FROM leaf CROSS JOIN LATERAL (VALUES ('{table}_failed'), ('incident_opened')) AS e (kind)
  WHERE e.kind <> 'incident_opened' OR leaf.status = 'failed'
)
SELECT attempts, status, available_at, (SELECT id FROM opened), root_id FROM leaf{told}
"""


_FAIL = {table: _statement(table) for table in ("job", "external_task", "delivery")}
_FAIL_IN_TURN = {table: _statement(table, in_turn=True) for table in EXCLUSIVE}


def fail_item(
    conn: Connection,
    lease: Lease,
    *,
    error: str,
    detail: str = "",
    retry_in: float | None = None,
    final: bool = False,
    kind: str = "failed",
    actor: str = "engine",
    attempts_left: int | None = None,
) -> ItemFailed | None:
    """End this attempt as a failure; None if the lease was lost, and then nothing changed.

    `retry_in`: seconds, instead of the retry policy. `kind`: of the incident (failed | uncaught_error | unsupported …).
    `attempts_left`: of an external task, how many more it has from now on, whatever it had.
    """
    parameters = {
        "item_id": lease.item_id,
        "lease_number": lease.number,
        "error": shortened(error, ERROR_LENGTH),
        "detail": shortened(detail or error, DETAIL_LENGTH),
        "retry_in": None if retry_in is None or math.isnan(retry_in) else min(max(retry_in, 0.0), LONGEST_WAIT),
        "final": final,
        "kind": kind,
        "actor": actor,
        "incident_id": new_id(),
        "attempts_left": attempts_left,
    }
    with commit_point(conn, "command.before_commit"):
        row = cursor_of(conn).execute(_FAIL[lease.kind], parameters).fetchone()
    if row is not None and row[1] == "in turn":
        row = _give_up_turn(conn, lease, parameters)
    if row is None:
        return None
    attempts, status, available_at, incident_id, _ = row
    return ItemFailed(lease.item_id, lease.number, attempts, status, available_at if status == "available" else None, incident_id)


def _give_up_turn(conn: Connection, lease: Lease, parameters: dict[str, Any]) -> Any:
    """Fail it for good under the root's lock, and let go of the next of its case's exclusive work."""
    with transaction(conn):
        row = cursor_of(conn).execute(_FAIL_IN_TURN[lease.kind], parameters).fetchone()
        if row is not None:
            cursor_of(conn).execute(TURN, {"root_id": row[4]})
    return row
