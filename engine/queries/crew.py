"""Workers, the outbox, messages, and sign-ins that failed: the smaller lists of operations."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection

from engine.core.lifecycle import DELIVERY
from engine.db.workers import KNOWN_HANDLERS
from engine.queries.rows import PAGE, Page, capped, page_of, row, rows, scalar, time_cursor


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """One start of a worker process. `age_seconds`: since its last heartbeat. `leases` counts what it holds now."""

    id: UUID
    host: str
    pid: int
    version: str
    started_at: datetime
    heartbeat_at: datetime
    age_seconds: float
    last_acquired_at: datetime | None
    slots: int
    busy: int
    kinds: Any
    draining: bool
    stopped_at: datetime | None
    longest_gap: float
    leases: int


def known_handlers(conn: Connection) -> frozenset[str]:
    """Those of the workers that are alive."""
    return frozenset(scalar(conn, f"SELECT {KNOWN_HANDLERS}", {}))


def workers(conn: Connection, *, stopped: bool = False, limit: int = 200) -> list[WorkerRow]:
    """Those that have not stopped, the silent first; with `stopped`, those that stopped within a week too."""
    return rows(conn, WorkerRow, WORKERS, {"stopped": stopped, "limit": limit})


def worker(conn: Connection, worker_id: UUID) -> WorkerRow | None:
    """One start of a worker, as long as it is remembered."""
    return row(conn, WorkerRow, f"{_WORKER} WHERE id = :id", {"id": worker_id})


@dataclass(frozen=True, slots=True)
class ExternalWorkerRow:
    """A name under which programs outside ask for external tasks. `addresses`: the last five; `present`: those within `SHARED_MINUTES`."""

    worker_id: str
    addresses: list[str]
    present: int
    first_seen_at: datetime
    last_seen_at: datetime
    leases: int


SHARED_MINUTES = 5  # two addresses within so long are two programs of one name, or one that has just moved


def external_workers(conn: Connection, *, tenant_id: str = "", limit: int = 200) -> list[ExternalWorkerRow]:
    """Those of the last day: names that several addresses share first, then those that asked last."""
    return rows(conn, ExternalWorkerRow, EXTERNAL_WORKERS, {"tenant": tenant_id, "minutes": SHARED_MINUTES, "limit": limit})


@dataclass(frozen=True, slots=True)
class DeliveryRow:
    id: UUID
    kind: str
    destination: str
    element_id: str | None
    instance_id: UUID | None
    business_key: str | None
    definition_id: UUID | None
    definition_name: str | None
    status: str
    due_at: datetime
    available_at: datetime
    wait_seconds: float
    attempts: int
    max_attempts: int
    lease_number: int
    last_error: str | None
    response: Any
    held: list[str]
    line: str | None
    to: str | None
    created_at: datetime
    ended_at: datetime | None


def deliveries(
    conn: Connection, *, tenant_id: str = "", status: str = "", q: str = "", to: str = "", due: bool = False, item_id: UUID | None = None,
    cursor: str | None = None, limit: int = PAGE,
) -> Page[DeliveryRow]:  # fmt: skip
    """The outbox, newest first (by key, as in `work.work_items`). `q`: part of where it goes; `to`: a registered destination.

    Raises BadCursor.
    """
    after = time_cursor(cursor)
    where = ["w.tenant_id = :tenant"]
    if to:
        where.append("w.route IN (SELECT id::text FROM destination WHERE tenant_id = :tenant AND name = :to)")
    if status in DELIVERY:
        where.append(f"w.status = '{status}'")
    if due:
        where.append("w.status = 'available' AND w.held = '{}' AND w.available_at <= baton_now()")
    if q:
        where.append("strpos(lower(w.destination), lower(:q)) > 0")
    if item_id is not None:
        where.append("w.id = :item")
    if after is not None:
        where.append("w.id < :after_id")
    params = {"tenant": tenant_id, "q": q, "to": to, "item": item_id, "limit": limit + 1, "after_id": after and after[1]}
    found = rows(conn, DeliveryRow, DELIVERIES.format(where=" AND ".join(where)), params)
    return page_of(found, limit=limit, position=lambda delivery: (delivery.created_at, delivery.id))


@dataclass(frozen=True, slots=True)
class OutboxCounts:
    available: int
    leased: int
    failed: int


def outbox_counts(conn: Connection, *, tenant_id: str = "") -> OutboxCounts:
    found = row(conn, OutboxCounts, OUTBOX_COUNTS, {"tenant": tenant_id})
    if found is None:
        raise LookupError("expected one row of counts, found none")
    return found


@dataclass(frozen=True, slots=True)
class OpenSubscription:
    id: UUID
    kind: str
    message_name: str
    correlation_key: str
    element_id: str
    definition_id: UUID
    definition_key: str
    definition_name: str
    version: int
    instance_id: UUID | None
    business_key: str | None
    created_at: datetime


def open_subscriptions(
    conn: Connection, *, tenant_id: str = "", q: str = "", cursor: str | None = None, limit: int = PAGE
) -> Page[OpenSubscription]:
    """Who waits for which message, newest first. `q`: part of the message's name or key. Raises BadCursor."""
    params = _listed(tenant_id, q, cursor, limit)
    found = rows(conn, OpenSubscription, SUBSCRIPTIONS, params)
    return page_of(found, limit=limit, position=lambda subscription: (subscription.created_at, subscription.id))


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """`left_seconds` is negative once it has expired; it is not used from then on."""

    id: UUID
    name: str
    correlation_key: str
    variables: dict[str, Any]
    published_by: str
    published_at: datetime
    expires_at: datetime
    left_seconds: float


def stored_messages(
    conn: Connection, *, tenant_id: str = "", q: str = "", cursor: str | None = None, limit: int = PAGE
) -> Page[StoredMessage]:
    """Messages that nobody waited for yet, newest first. Raises BadCursor."""
    found = rows(conn, StoredMessage, MESSAGES, _listed(tenant_id, q, cursor, limit))
    return page_of(found, limit=limit, position=lambda message: (message.published_at, message.id))


def stored_message(conn: Connection, message_id: UUID, *, tenant_id: str = "") -> StoredMessage | None:
    """One of them, until somebody receives it or upkeep takes it away."""
    return row(conn, StoredMessage, f"{_MESSAGE} AND id = :id", {"tenant": tenant_id, "id": message_id})


@dataclass(frozen=True, slots=True)
class ExpiredMessage:
    """One that nobody had in time. It is not used any more."""

    id: UUID
    name: str
    correlation_key: str
    published_by: str
    published_at: datetime
    expires_at: datetime


def expired_messages(
    conn: Connection, *, tenant_id: str = "", q: str = "", cursor: str | None = None, limit: int = 20
) -> Page[ExpiredMessage]:
    """Those of the last day, the last to expire first. Raises BadCursor."""
    found = rows(conn, ExpiredMessage, EXPIRED, _listed(tenant_id, q, cursor, limit))
    return page_of(found, limit=limit, position=lambda message: (message.expires_at, message.id))


@dataclass(frozen=True, slots=True)
class FailedLogins:
    """Wrong passwords for one name from one address within a day."""

    username_key: str
    address: str
    tries: int
    first_at: datetime
    last_at: datetime


def failed_logins(conn: Connection, *, tenant_id: str = "", limit: int = 100) -> list[FailedLogins]:
    """The last day's, most recent first, from the newest 20,000 tries."""
    return rows(conn, FailedLogins, LOGINS, {"tenant": tenant_id, "limit": limit})


def _listed(tenant_id: str, q: str, cursor: str | None, limit: int) -> dict[str, Any]:
    after = time_cursor(cursor)
    return {"tenant": tenant_id, "q": q, "limit": limit + 1, "after_at": after and after[0], "after_id": after and after[1]}


_HELD = "status = 'leased' AND lease_owner = worker.id::text"

_WORKER = f"""
SELECT id, host, pid, version, started_at, heartbeat_at, extract(epoch FROM baton_now() - heartbeat_at)::float AS age_seconds,
       last_acquired_at, slots, busy, kinds, draining, stopped_at, longest_gap,
       {capped(" UNION ALL ".join(f"SELECT 1 FROM {table} WHERE {_HELD}" for table in ("job", "external_task", "delivery")))} AS leases
  FROM worker"""

WORKERS = f"""{_WORKER}
 WHERE stopped_at IS NULL OR (:stopped AND stopped_at > baton_now() - interval '7 days')
 ORDER BY stopped_at IS NOT NULL, heartbeat_at, id LIMIT :limit
"""

EXTERNAL_WORKERS = """
WITH held AS MATERIALIZED (
  SELECT lease_owner, count(*)::int AS many FROM external_task WHERE tenant_id = :tenant AND status = 'leased' GROUP BY lease_owner
)
SELECT w.worker_id, (array_agg(w.address ORDER BY w.last_seen_at DESC, w.address))[1:5] AS addresses,
       count(*) FILTER (WHERE w.last_seen_at > baton_now() - make_interval(mins => :minutes))::int AS present,
       min(w.first_seen_at) AS first_seen_at, max(w.last_seen_at) AS last_seen_at, coalesce(min(held.many), 0) AS leases
  FROM external_worker AS w LEFT JOIN held ON held.lease_owner = w.worker_id
 WHERE w.tenant_id = :tenant AND w.last_seen_at > baton_now() - interval '1 day'
 GROUP BY w.worker_id
 ORDER BY count(*) FILTER (WHERE w.last_seen_at > baton_now() - make_interval(mins => :minutes)) > 1 DESC,
       max(w.last_seen_at) DESC, w.worker_id
 LIMIT :limit
"""

DELIVERIES = """
SELECT w.id, w.kind, w.destination, w.element_id, w.instance_id, i.business_key,
       d.id AS definition_id, coalesce(nullif(d.name, ''), d.key) AS definition_name,
       w.status, w.due_at, w.available_at,
       extract(epoch FROM w.available_at - baton_now())::float AS wait_seconds,
       w.attempts, w.max_attempts, w.lease_number, w.last_error, w.response, w.held, w.line, t.name AS to, w.created_at, w.ended_at
  FROM delivery AS w
  LEFT JOIN process_instance AS i ON i.id = w.instance_id
  LEFT JOIN process_definition AS d ON d.id = w.definition_id
  LEFT JOIN destination AS t ON t.id::text = w.route
 WHERE {where}
 ORDER BY w.id DESC LIMIT :limit
"""

OUTBOX_COUNTS = f"""
SELECT {capped("SELECT 1 FROM delivery WHERE tenant_id = :tenant AND status = 'available'")} AS available,
       {capped("SELECT 1 FROM delivery WHERE tenant_id = :tenant AND status = 'leased'")} AS leased,
       {capped("SELECT 1 FROM delivery WHERE tenant_id = :tenant AND status = 'failed'")} AS failed
"""

SUBSCRIPTIONS = """
SELECT s.id, s.kind, s.message_name, s.correlation_key, s.element_id, s.definition_id, d.key AS definition_key,
       coalesce(nullif(d.name, ''), d.key) AS definition_name, d.version, s.instance_id, i.business_key, s.created_at
  FROM subscription AS s
  JOIN process_definition AS d ON d.id = s.definition_id
  LEFT JOIN process_instance AS i ON i.id = s.instance_id
 WHERE s.tenant_id = :tenant
   AND (:q = '' OR strpos(lower(s.message_name), lower(:q)) > 0 OR strpos(lower(s.correlation_key), lower(:q)) > 0)
   AND (CAST(:after_at AS timestamptz) IS NULL OR (s.created_at, s.id) < (:after_at, :after_id))
 ORDER BY s.created_at DESC, s.id DESC LIMIT :limit
"""

_MESSAGE = """
SELECT id, name, correlation_key, variables, published_by, published_at, expires_at,
       extract(epoch FROM expires_at - baton_now())::float AS left_seconds
  FROM message
 WHERE tenant_id = :tenant
"""

MESSAGES = f"""{_MESSAGE}
   AND (:q = '' OR strpos(lower(name), lower(:q)) > 0 OR strpos(lower(correlation_key), lower(:q)) > 0)
   AND (CAST(:after_at AS timestamptz) IS NULL OR (published_at, id) < (:after_at, :after_id))
 ORDER BY published_at DESC, id DESC LIMIT :limit
"""

EXPIRED = """
SELECT id, name, correlation_key, published_by, published_at, expires_at
  FROM message_expired
 WHERE tenant_id = :tenant
   AND (:q = '' OR strpos(lower(name), lower(:q)) > 0 OR strpos(lower(correlation_key), lower(:q)) > 0)
   AND (CAST(:after_at AS timestamptz) IS NULL OR (expires_at, id) < (:after_at, :after_id))
 ORDER BY expires_at DESC, id DESC LIMIT :limit
"""

LOGINS = """
SELECT username_key, address, count(*)::int AS tries, min(at) AS first_at, max(at) AS last_at
  FROM (SELECT username_key, address, at FROM login_attempt
         WHERE tenant_id = :tenant AND NOT succeeded AND at > baton_now() - interval '24 hours'
         ORDER BY id DESC LIMIT 20000) AS latest
 GROUP BY username_key, address
 ORDER BY last_at DESC, username_key LIMIT :limit
"""
