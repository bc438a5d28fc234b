"""Near misses: who nearly waits for a message that found nobody, and which messages nearly fit one who waits.

Each carries a sentence that says what differs. What is looked at is bounded, however much waits: for each key its neighbours in the
index and a few other spellings of it, for each name those of the tenant that are like it. It looks at rows that are there: who
waited and was answered is known only where the message had an id (`message_receipt`), and expired messages for a day.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from sqlalchemy import Connection

from engine.queries.differing import CLOSE, alike, difference, variants
from engine.queries.instance import SubscriptionRow
from engine.queries.rows import row, rows

Near = TypeVar("Near", "NearReceiver", "NearMessage")

MOST = 5
"""Near misses of one message, or of one who waits."""
OTHERS = 3  # of them with quite another key
WAITERS = 20  # of one case
AROUND = 20  # keys before and after in the index
NAMES = 300  # names of a tenant that are compared


@dataclass(frozen=True, slots=True)
class Lost:
    """A message that found nobody. `waiting`: it is stored and has not expired; `expired_at`: it has."""

    name: str
    key: str
    waiting: bool = False
    expired_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class NearReceiver:
    """`reason`: key | name | suspended | signal | too_late | waits | received. `differs` goes on where `who` ends."""

    reason: str
    who: str
    differs: str
    message_name: str
    correlation_key: str
    since: datetime
    instance_id: UUID | None
    business_key: str | None
    definition_key: str | None
    version: int | None
    element_id: str | None
    rank: int = 0

    @property
    def says(self) -> str:
        return f"{self.who} {self.differs}."


@dataclass(frozen=True, slots=True)
class Waiter:
    """One who waits for a message, since when."""

    name: str
    key: str
    since: datetime


@dataclass(frozen=True, slots=True)
class NearMessage:
    """`reason`: key | name | expired. `differs` says it as a sentence without its end."""

    reason: str
    differs: str
    message_id: UUID
    message_name: str
    correlation_key: str
    published_at: datetime
    expires_at: datetime
    rank: int = 0

    @property
    def says(self) -> str:
        return f"{self.differs}."


def near_receivers(conn: Connection, lost: Sequence[Lost], *, tenant_id: str) -> list[tuple[NearReceiver, ...]]:
    """For each message up to `MOST` of those who nearly wait for it, the nearest first."""
    if not lost:
        return []
    asked = _asked([(each.name, each.key) for each in lost], _names(conn, SUBSCRIPTION_NAMES, tenant_id))
    params = {"tenant": tenant_id, "asked": json.dumps(asked), "around": AROUND}
    found: list[dict[UUID, NearReceiver]] = [{} for _ in lost]
    for subscription in rows(conn, _Subscription, RECEIVERS, params):
        if (near := _receiver(lost[subscription.n], subscription)) is not None:
            found[subscription.n].setdefault(subscription.id, near)
    for receipt in rows(conn, _Received, RECEIVED, params):
        each = lost[receipt.n]
        differs = f"received another message of this name and key, with the id {_quoted(receipt.message_id)}"
        found[receipt.n][receipt.instance_id] = NearReceiver(
            "received", "A case", differs, each.name, each.key, receipt.published_at, receipt.instance_id, None, None, None, None, 2
        )
    return [_nearest(one.values(), each.key) for one, each in zip(found, lost, strict=True)]


def near_messages(conn: Connection, waiters: Sequence[Waiter], *, tenant_id: str) -> list[tuple[NearMessage, ...]]:
    """For each who waits up to `MOST` of the messages that nearly fit, the nearest first; expired ones too, while they are known."""
    if not waiters:
        return []
    asked = _asked([(each.name, each.key) for each in waiters], _names(conn, MESSAGE_NAMES, tenant_id))
    found: list[dict[UUID, NearMessage]] = [{} for _ in waiters]
    for message in rows(conn, _Stored, MESSAGES, {"tenant": tenant_id, "asked": json.dumps(asked), "around": AROUND}):
        if (near := _message(waiters[message.n], message)) is not None:
            found[message.n].setdefault(message.id, near)
    return [_nearest(one.values(), each.key) for one, each in zip(found, waiters, strict=True)]


def near_of_waiting(
    conn: Connection, subscriptions: Sequence[SubscriptionRow], *, tenant_id: str
) -> list[tuple[SubscriptionRow, tuple[NearMessage, ...]]]:
    """Those of a case that wait for a message, at most `WAITERS`, each with the messages that nearly fit."""
    waiting = [row for row in subscriptions if row.kind == "catch"][:WAITERS]
    waiters = [Waiter(row.message_name, row.correlation_key, row.created_at) for row in waiting]
    return list(zip(waiting, near_messages(conn, waiters, tenant_id=tenant_id), strict=True))


def lost_message(conn: Connection, message_id: UUID, *, tenant_id: str) -> Lost | None:
    """One that is stored, or that expired within a day."""
    return row(conn, Lost, LOST, {"id": message_id, "tenant": tenant_id})


@dataclass(frozen=True, slots=True)
class _Subscription:
    n: int
    id: UUID
    kind: str
    name: str
    key: str
    since: datetime
    element_id: str
    instance_id: UUID | None
    business_key: str | None
    mark: str | None
    definition_key: str
    definition_name: str
    version: int
    definition_status: str


@dataclass(frozen=True, slots=True)
class _Received:
    n: int
    message_id: str
    instance_id: UUID
    published_at: datetime


@dataclass(frozen=True, slots=True)
class _Stored:
    n: int
    id: UUID
    name: str
    key: str
    published_at: datetime
    expires_at: datetime
    expired: bool


@dataclass(frozen=True, slots=True)
class _Name:
    name: str


def _names(conn: Connection, sql: str, tenant_id: str) -> list[str]:
    return [found.name for found in rows(conn, _Name, sql, {"tenant": tenant_id, "names": NAMES})]


def _asked(wanted: Sequence[tuple[str, str]], names: Sequence[str]) -> list[dict[str, object]]:
    """What the statements look for: each name and key, other spellings of the key, and names like it with the same key."""
    like = {name: [other for other in names if difference(other, name) in CLOSE][:MOST] for name in {name for name, _ in wanted}}
    return [
        {"n": n, "how": how, "name": spelled, "key": typed}
        for n, (name, key) in enumerate(wanted)
        for how, spelled, typed in (
            ("same", name, key),
            *(("typed", name, other) for other in variants(key)),
            *(("named", other, key) for other in like[name]),
        )
    ]


def _receiver(lost: Lost, found: _Subscription) -> NearReceiver | None:
    """What keeps the message from this one; None: nothing does, or they have nothing in common."""
    name = difference(found.name, lost.name)
    key = difference(found.key, lost.key) if found.kind == "catch" else ""
    suspended = found.mark is not None or (found.definition_status == "suspended" and found.kind == "start")
    rest = f"; and its {'case' if found.kind == 'catch' else 'version'} is suspended" if suspended else ""
    if found.mark == "cancelling" or found.definition_status == "deleting" or (name and key):
        return None
    if found.kind in ("signal", "signal_start"):
        if name:
            return None
        reason, rank, differs = "signal", 1, "waits for a signal of this name, and this is a message"
    elif name:
        reason, rank = "name", 0
        differs = f"waits for {_quoted(found.name)}, and this is {_quoted(lost.name)}: {CLOSE[name]}{rest}"
    elif key:
        reason, rank = "key", 0 if key in CLOSE else 3
        differs = f"waits with key {_quoted(found.key)}, and this has {_quoted(lost.key)}: {CLOSE.get(key, 'another key')}{rest}"
    elif suspended:
        reason, rank, differs = "suspended", 0, f"waits for exactly this{rest}: it is not received until somebody resumes that"
    elif lost.waiting:
        return None  # it is on its way
    elif lost.expired_at is not None and found.since >= lost.expired_at:
        reason, rank, differs = "too_late", 0, "waits for exactly this, but only since the message had expired"
    else:
        reason, rank, differs = "waits", 0, "waits for exactly this now: sent again, it would be received"
    who = f"{found.definition_name}, version {found.version}{f', {found.business_key}' if found.business_key else ''}"
    return NearReceiver(
        reason, who, differs, found.name, found.key, found.since, found.instance_id, found.business_key, found.definition_key,
        found.version, found.element_id, rank,
    )  # fmt: skip


def _message(waiter: Waiter, found: _Stored) -> NearMessage | None:
    name, key = difference(found.name, waiter.name), difference(found.key, waiter.key)
    if (name and key) or not (name or key or found.expired):
        return None
    late = "; it has expired" if found.expired else ""
    if name:
        reason, rank = "name", 0
        differs = f"A message {_quoted(found.name)} has this key, and this waits for {_quoted(waiter.name)}: {CLOSE[name]}{late}"
    elif key:
        reason, rank = "key", 0 if key in CLOSE else 3
        differs = (
            f"A message has key {_quoted(found.key)}, and this waits with {_quoted(waiter.key)}: {CLOSE.get(key, 'another key')}{late}"
        )
    else:
        when = "before this began to wait" if found.expires_at <= waiter.since else "unused"
        reason, rank, differs = "expired", 0, f"A message of this name and key expired {when}"
    return NearMessage(reason, differs, found.id, found.name, found.key, found.published_at, found.expires_at, rank)


def _nearest(found: Iterable[Near], key: str) -> tuple[Near, ...]:
    """The nearest first: of quite other keys those that begin alike, and only a few."""
    ordered: list[Near] = sorted(found, key=lambda each: (each.rank, -alike(each.correlation_key, key), each.correlation_key))
    kept: list[Near] = [each for each in ordered if each.rank < 3]
    kept += [each for each in ordered if each.rank == 3][:OTHERS]
    return tuple(kept[:MOST])


def _quoted(text: str) -> str:
    """A key is a text, and shown as one: where it ends is seen."""
    return json.dumps(text, ensure_ascii=False) if text else "none"


_ASKED = "asked AS MATERIALIZED (SELECT * FROM jsonb_to_recordset(CAST(:asked AS jsonb)) AS a (n int, how text, name text, key text))"


def _looks(table: str, columns: str, name: str, more: str, first: str) -> str:
    """The looks into one table: the very key, and the keys around it."""
    select = f"SELECT a.n, f.* FROM asked AS a CROSS JOIN LATERAL (SELECT {columns} FROM {table} AS s WHERE s.tenant_id = :tenant"
    this = f"AND s.{name} = a.name {more}"
    return " UNION ALL ".join((
        f"{select} {this} AND s.correlation_key = a.key ORDER BY {first}, s.id LIMIT {MOST}) AS f",
        f"{select} {this} AND s.correlation_key < a.key ORDER BY s.correlation_key DESC LIMIT :around) AS f WHERE a.how = 'same'",
        f"{select} {this} AND s.correlation_key > a.key ORDER BY s.correlation_key LIMIT :around) AS f WHERE a.how = 'same'",
    ))  # fmt: skip


_SUBSCRIPTION = (
    "s.id, s.kind, s.message_name AS name, s.correlation_key AS key, s.created_at AS since, s.element_id,"
    " s.instance_id, s.root_id, s.definition_id"
)
RECEIVERS = f"""
WITH {_ASKED}, found AS (
  {_looks("subscription", _SUBSCRIPTION, "message_name", "AND s.kind = 'catch'", "s.created_at")}
  UNION ALL
  SELECT a.n, f.* FROM asked AS a CROSS JOIN LATERAL (SELECT {_SUBSCRIPTION} FROM subscription AS s
    WHERE s.tenant_id = :tenant AND s.message_name = a.name AND s.correlation_key = '' AND s.kind <> 'catch'
    ORDER BY s.created_at, s.id LIMIT {MOST}) AS f WHERE a.how <> 'typed'
)
SELECT f.n, f.id, f.kind, f.name, f.key, f.since, f.element_id, f.instance_id, i.business_key, r.mark,
       d.key AS definition_key, coalesce(nullif(d.name, ''), d.key) AS definition_name, d.version, d.status AS definition_status
  FROM found AS f JOIN process_definition AS d ON d.id = f.definition_id
  LEFT JOIN process_instance AS i ON i.id = f.instance_id
  LEFT JOIN process_instance AS r ON r.id = f.root_id
 ORDER BY f.n, f.since, f.id LIMIT 5000
"""

RECEIVED = f"""
WITH {_ASKED}
SELECT a.n, r.message_id, CAST(r.outcome ->> 'instance_id' AS uuid) AS instance_id, r.published_at
  FROM asked AS a CROSS JOIN LATERAL (
    SELECT * FROM (SELECT * FROM message_receipt AS m WHERE m.tenant_id = :tenant AND m.name = a.name LIMIT 200) AS m
     WHERE m.correlation_key = a.key AND m.outcome ->> 'outcome' = 'correlated' AND m.outcome ->> 'instance_id' IS NOT NULL
     ORDER BY m.published_at DESC LIMIT 1) AS r
 WHERE a.how = 'same' AND :around > 0 ORDER BY a.n LIMIT 200
"""

_MESSAGE = "s.id, s.name, s.correlation_key AS key, s.published_at, s.expires_at"
MESSAGES = f"""
WITH {_ASKED}, found AS (
  {_looks("message", _MESSAGE, "name", "", "s.published_at")}
  UNION ALL
  {_looks("message_expired", _MESSAGE, "name", "", "s.expires_at DESC")}
)
SELECT n, id, name, key, published_at, expires_at, expires_at <= baton_now() AS expired
  FROM found ORDER BY n, published_at, id LIMIT 5000
"""


def _hop(table: str, name: str) -> str:
    """The names of a tenant, by hopping along an index from one to the next."""
    return f"""(WITH RECURSIVE hop AS (
  (SELECT {name} AS name, 1 AS n FROM {table} WHERE tenant_id = :tenant ORDER BY {name} LIMIT 1)
  UNION ALL
  SELECT next.name, hop.n + 1 FROM hop CROSS JOIN LATERAL (
    SELECT s.{name} AS name FROM {table} AS s WHERE s.tenant_id = :tenant AND s.{name} > hop.name ORDER BY s.{name} LIMIT 1) AS next
   WHERE hop.n < :names
) SELECT name FROM hop)"""


SUBSCRIPTION_NAMES = _hop("subscription", "message_name")
MESSAGE_NAMES = f"{_hop('message', 'name')} UNION {_hop('message_expired', 'name')}"

LOST = """
SELECT name, correlation_key AS key, expires_at > baton_now() AS waiting,
       CASE WHEN expires_at <= baton_now() THEN expires_at END AS expired_at
  FROM (SELECT id, tenant_id, name, correlation_key, expires_at FROM message WHERE id = :id AND tenant_id = :tenant
        UNION ALL
        SELECT id, tenant_id, name, correlation_key, expires_at FROM message_expired WHERE id = :id AND tenant_id = :tenant) AS m
 LIMIT 1
"""
