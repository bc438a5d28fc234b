"""Low watermarks of leases and of inboxes: times below which recovery and the lists of tasks need not look.

Rows that were consumed since the last vacuum stay in an index; a scan that begins at the mark does not wade through
them. As in `acquire.move_watermarks` a mark stays `MARGIN` behind the oldest live row and behind now, and each run looks
from the beginning (the index is read once a minute by one replica, not at every poll).
"""

from __future__ import annotations

from typing import Any

import psycopg

from engine.db.acquire import MARGIN, WORK

_MOVE = """
INSERT INTO watermark AS w (name, at, swept_at) SELECT name, at, baton_clock() FROM ({found}) f
ON CONFLICT ON CONSTRAINT pk_watermark DO UPDATE SET at = excluded.at, swept_at = excluded.swept_at
"""
_LEASES = " UNION ALL ".join(
    f"SELECT '{table} leases' AS name, least(baton_now(), (SELECT min(j.lease_expires_at) FROM {table} j"
    f" WHERE j.status = 'leased')) - {MARGIN} AS at"
    for table in WORK
)
# Candidate groups are those that people belong to and those that stand in the list: hop along its index.
_INBOXES = f"""
WITH RECURSIVE hop AS (
  (SELECT tenant_id, kind, name FROM inbox_entry ORDER BY tenant_id, kind, name LIMIT 1)
  UNION ALL
  SELECT next.tenant_id, next.kind, next.name FROM hop CROSS JOIN LATERAL (
    SELECT e.tenant_id, e.kind, e.name FROM inbox_entry e
    WHERE (e.tenant_id, e.kind, e.name) > (hop.tenant_id, hop.kind, hop.name) ORDER BY e.tenant_id, e.kind, e.name LIMIT 1) next
)
SELECT 'inbox ' || kind || ' ' || tenant_id || ' ' || hop.name AS name, least(baton_now(), (SELECT min(e.created_at) FROM inbox_entry e
  WHERE e.tenant_id = hop.tenant_id AND e.kind = hop.kind AND e.name = hop.name)) - {MARGIN} AS at
FROM hop
"""


def move_lease_watermarks(conn: psycopg.Connection[Any]) -> None:
    """Move the marks below which recovery does not look, one for each table of durable work."""
    conn.execute(_MOVE.format(found=_LEASES))


def move_inbox_watermarks(conn: psycopg.Connection[Any]) -> None:
    """Move the marks below which the lists of open tasks do not look, one for each candidate."""
    conn.execute(_MOVE.format(found=_INBOXES))
