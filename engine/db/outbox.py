"""What the relay needs of the deliveries that it has leased, read in one statement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import psycopg

from engine.db.pauses import row_is_paused
from engine.db.session import cursor_of
from engine.frozen import dataclass

# One that was removed still says how what was written for it is sent. What was written for a name that nobody had registered finds it here.
_REQUESTS = f"""
SELECT d.id, d.request, t.name, t.address, t.redirects, t.seconds, t.max_bytes,
  ARRAY(SELECT s->>'salt' FROM jsonb_array_elements(t.salts) s WHERE s->>'until' IS NULL OR (s->>'until')::timestamptz > baton_now())
FROM delivery d LEFT JOIN destination t ON t.tenant_id = d.tenant_id AND t.kind = d.kind
  AND (t.id::text = d.route OR d.route = '' AND t.name = d.request->>'destination' AND t.removed_at IS NULL)
WHERE d.id = ANY (%(ids)s) AND d.status COLLATE "C" = 'leased' AND d.held = '{{}}' AND NOT {row_is_paused("delivery", "d")}
  AND NOT EXISTS (SELECT FROM pause p WHERE p.tenant_id = t.tenant_id AND p.kind = t.kind AND p.topic = t.name)
"""


@dataclass(frozen=True, slots=True)
class Destination:
    """A registered one, as the sending of a delivery needs it. `salts`: of the secrets that are valid now, the newest first."""

    name: str
    address: str
    redirects: int = 0
    seconds: float | None = None
    max_bytes: int | None = None
    salts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outgoing:
    request: Mapping[str, Any]
    to: Destination | None = None  # None: to no registered one


def load_requests(conn: psycopg.Connection[Any], delivery_ids: Sequence[UUID]) -> dict[UUID, Outgoing]:
    """Each leased delivery, by id. One that is no longer leased, or was held or paused meanwhile, is not in it."""
    found = cursor_of(conn).execute(_REQUESTS, {"ids": list(delivery_ids)}).fetchall()
    return {row[0]: Outgoing(row[1], None if row[2] is None else _destination(row[2:])) for row in found}


def _destination(row: Sequence[Any]) -> Destination:
    name, address, redirects, seconds, max_bytes, salts = row
    return Destination(name, address, redirects, seconds, max_bytes, tuple(salts))
