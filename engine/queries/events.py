"""Process events for programs: everything that the history records, in an order in which nothing is passed over.

An event's id is drawn when it is written, and what is written first may be committed last: who reads on from the highest id
loses it. So the place in the stream is (transaction, id), and only what lies below the oldest transaction that still runs is read: of
those below it, none can appear any more.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection

from engine.queries.rows import BadCursor, row, rows

LAST_ID = 2**63 - 1
MOST_KINDS = 50


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Everything up to here has been read: a transaction, and an event of it."""

    xid: int
    id: int


START = Place(0, 0)


@dataclass(frozen=True, slots=True)
class ProcessEvent:
    id: int
    xid: int
    at: datetime
    kind: str
    instance_id: UUID | None
    root_id: UUID | None
    definition_key: str | None
    version: int | None
    business_key: str | None
    element_id: str | None
    item_id: UUID | None
    actor: str
    via: str
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which events; empty: all of that kind."""

    kinds: Collection[str] = ()
    definition_key: str = ""
    root_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class Read:
    """`place`: everything up to here that was wanted is in `events`, or was in those before."""

    events: tuple[ProcessEvent, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class _Horizon:
    done: int  # the newest transaction below which none runs
    begun: int


def events_after(conn: Connection, place: Place | None, wanted: Wanted, *, tenant_id: str = "", limit: int = 100) -> Read:
    """What was committed after `place`, in the order of the stream; None: from now on, so nothing yet.

    In a snapshot of one transaction (`engine.queries.rows.reading`). Raises BadCursor for a place that this database has not come to.
    """
    horizon = row(conn, _Horizon, HORIZON, {})
    assert horizon is not None
    if place is None:
        return Read((), Place(horizon.done, LAST_ID))
    if place.xid >= horizon.begun:
        raise BadCursor("expected a place in this database's events, found one that it has not come to: it was restored elsewhere")
    where, params = _where(wanted)
    params |= {"xid": str(place.xid), "id": place.id, "tenant": tenant_id, "limit": limit}
    found = rows(conn, ProcessEvent, EVENTS.format(where=where), params)
    if len(found) < limit:
        return Read(tuple(found), max(place, Place(horizon.done, LAST_ID)))
    return Read(tuple(found), Place(found[-1].xid, found[-1].id))


def newest(conn: Connection) -> Place:
    """The last event that can be read."""
    found = rows(conn, Place, NEWEST, {})
    return found[0] if found else START


def _where(wanted: Wanted) -> tuple[str, dict[str, Any]]:
    where = ""
    params: dict[str, Any] = {}
    if wanted.kinds:
        where, params = where + " AND h.kind = ANY (CAST(:kinds AS text[]))", params | {"kinds": list(wanted.kinds)}
    if wanted.definition_key:
        where, params = where + " AND d.key = :key", params | {"key": wanted.definition_key}
    if wanted.root_id is not None:
        where, params = where + " AND h.root_id = :root", params | {"root": wanted.root_id}
    return where, params


# What has a transaction id below xmin has ended, whichever it is; no new one can come there.
HORIZON = """
SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint - 1 AS done, pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS begun
"""
NEWEST = """
SELECT h.xid::text::bigint AS xid, h.id FROM history AS h WHERE h.xid < pg_snapshot_xmin(pg_current_snapshot())
 ORDER BY h.xid DESC, h.id DESC LIMIT 1
"""
EVENTS = """
SELECT h.id, h.xid::text::bigint AS xid, h.at, h.kind, h.instance_id, h.root_id, d.key AS definition_key, d.version, i.business_key,
       h.element_id, h.item_id, h.actor, h.via, h.data
  FROM history AS h
  LEFT JOIN process_definition AS d ON d.id = h.definition_id
  LEFT JOIN process_instance AS i ON i.id = h.instance_id
 WHERE (h.xid, h.id) > (CAST(:xid AS xid8), :id) AND h.xid < pg_snapshot_xmin(pg_current_snapshot()) AND h.tenant_id = :tenant{where}
 ORDER BY h.xid, h.id LIMIT :limit
"""
