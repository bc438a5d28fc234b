"""What became of an attempt whose row is gone, or is leased under another number: the history says.

Finished items are deleted by the command that ends them; their event carries item, lease number, attempt and outcome.
So a holder whose completion landed, and who did not hear of it, is told so when it asks again (R6).
"""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from engine.commands.outcome import ItemFailed, Lease
from engine.commands.transaction import Connection

_ENDED = (
    "SELECT instance_id, data FROM history WHERE item_id = %s AND kind = %s AND (data->>'lease_number')::bigint = %s"
    " ORDER BY id DESC LIMIT 1"
)
_INCIDENT = "SELECT (data->>'incident_id')::uuid FROM history WHERE item_id = %s AND kind = 'incident_opened' ORDER BY id DESC LIMIT 1"


def failed_before(conn: Connection, lease: Lease) -> ItemFailed | None:
    """The failure of this very lease, if it landed."""
    row = conn.execute(_ENDED, (lease.item_id, f"{lease.kind}_failed", lease.number)).fetchone()
    if row is None:
        return None
    data: dict[str, Any] = row[1]
    again = data["status"] == "available"
    return ItemFailed(
        lease.item_id,
        lease.number,
        data["attempt"],
        data["status"],
        datetime.fromisoformat(data["available_at"]) if again else None,
        None if again else _incident(conn, lease.item_id),
    )


def _incident(conn: Connection, item_id: UUID) -> UUID | None:
    row = conn.execute(_INCIDENT, (item_id,)).fetchone()
    return None if row is None else row[0]
