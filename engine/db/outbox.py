"""What the relay needs of the deliveries that it has leased, read in one statement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import psycopg

from engine.db.pauses import row_is_paused
from engine.db.session import cursor_of

_REQUESTS = (
    "SELECT d.id, d.request FROM delivery d WHERE d.id = ANY (%(ids)s) AND d.status COLLATE \"C\" = 'leased' AND d.held = '{}'"
    f" AND NOT {row_is_paused('delivery', 'd')}"
)


def load_requests(conn: psycopg.Connection[Any], delivery_ids: Sequence[UUID]) -> dict[UUID, Mapping[str, Any]]:
    """The request of each leased delivery, by id. One that is no longer leased, or was held or paused meanwhile, is not in it."""
    return dict(cursor_of(conn).execute(_REQUESTS, {"ids": list(delivery_ids)}).fetchall())
