"""How leased work fails: the one leaf-only statement behind `fail_job` and its sisters for external tasks and deliveries.

The attempt was counted when the item was acquired. While attempts are left the item becomes available again after its
retry policy's wait (or the engine's back-off) with jitter on top; after the last one, or when the failure is final, it
rests as `failed` beside one incident. Guarded by status and lease number (R4).
"""

from __future__ import annotations

from engine.commands.outcome import ItemFailed, Lease
from engine.commands.transaction import Connection
from engine.db.locks import FAILING
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


def _statement(table: str) -> str:
    return f"""
WITH leaf AS (
  UPDATE {table} l SET status = CASE WHEN {_OVER} THEN 'failed' ELSE 'available' END,
    available_at = CASE WHEN {_OVER} THEN l.available_at ELSE baton_clock() + {_WAIT} * (1 + random() * 0.1) END,
    lease_owner = NULL, lease_expires_at = NULL, leased_at = NULL, level = l.priority, last_error = %(error)s
  {FAILING.format(table=table)}
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
SELECT attempts, status, available_at, (SELECT id FROM opened) FROM leaf
"""


_FAIL = {table: _statement(table) for table in ("job", "external_task", "delivery")}


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
) -> ItemFailed | None:
    """End this attempt as a failure; None if the lease was lost, and then nothing changed.

    `retry_in`: seconds, instead of the retry policy. `kind`: of the incident (failed | uncaught_error | unsupported …).
    """
    parameters = {
        "item_id": lease.item_id,
        "lease_number": lease.number,
        "error": shortened(error, ERROR_LENGTH),
        "detail": shortened(detail or error, DETAIL_LENGTH),
        "retry_in": None if retry_in is None else min(max(retry_in, 0.0), LONGEST_WAIT),
        "final": final,
        "kind": kind,
        "actor": actor,
        "incident_id": new_id(),
    }
    with commit_point(conn, "command.before_commit"):
        row = cursor_of(conn).execute(_FAIL[lease.kind], parameters).fetchone()
    if row is None:
        return None
    attempts, status, available_at, incident_id = row
    return ItemFailed(lease.item_id, lease.number, attempts, status, available_at if status == "available" else None, incident_id)
