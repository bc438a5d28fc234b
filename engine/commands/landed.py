"""What became of an attempt whose row is gone, or is leased under another number: the history says.

Finished items are deleted by the command that ends them; their event carries item, lease number, attempt and outcome.
So a holder whose completion landed, and who did not hear of it, is told so when it asks again (R6).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from engine.commands.outcome import ItemDone, ItemFailed, ItemReleased, Lease
from engine.commands.transaction import Connection
from engine.db.session import cursor_of

_ENDED = (
    "SELECT instance_id, data FROM history WHERE item_id = %s AND kind = %s AND (data->>'lease_number')::bigint = %s"
    " ORDER BY id DESC LIMIT 1"
)
# A failure that a step made of itself (nothing catches its error, say) is final: its incident tells it from one that was reported.
_LANDED = (
    "SELECT h.kind, h.instance_id, h.data, i.data FROM history h LEFT JOIN LATERAL (SELECT n.data FROM history n"
    " WHERE h.kind = %(failed)s AND n.item_id = h.item_id AND n.kind = 'incident_opened' AND n.id > h.id ORDER BY n.id LIMIT 1) i ON true"
    " WHERE h.item_id = %(item_id)s AND (h.data->>'lease_number')::bigint = %(number)s AND (h.kind = ANY (%(landed)s)"
    " OR (h.kind = %(released)s AND h.data->>'because' = 'suspended')"
    " OR (h.kind = %(failed)s AND h.data->>'status' = 'failed' AND i.data->>'kind' = ANY (%(unfit)s))) ORDER BY h.id DESC LIMIT 1"
)
_INCIDENT = "SELECT (data->>'incident_id')::uuid FROM history WHERE item_id = %s AND kind = 'incident_opened' ORDER BY id DESC LIMIT 1"


def ended_before(
    conn: Connection, lease: Lease, landed: Sequence[str], unfit: Sequence[str]
) -> ItemDone | ItemFailed | ItemReleased | None:
    """How this very lease ended, if by one of the events `landed`, by a failure with an incident of a kind in `unfit`, or by its
    command, which lets the item wait for a resumption."""
    values = {"item_id": lease.item_id, "number": lease.number, "landed": list(landed), "unfit": list(unfit)}
    row = cursor_of(conn).execute(_LANDED, {**values, "failed": f"{lease.kind}_failed", "released": f"{lease.kind}_released"}).fetchone()
    if row is None:
        return None
    kind, instance_id, data, opened = row
    if kind in landed:
        return ItemDone(lease.item_id, lease.number, instance_id, repeated=True)
    if kind == f"{lease.kind}_released":
        return ItemReleased(lease.item_id)
    return ItemFailed(lease.item_id, lease.number, data["attempt"], data["status"], None, UUID(opened["incident_id"]))


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
