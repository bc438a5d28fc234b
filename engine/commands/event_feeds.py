"""Feeds: process events that go to a destination as they happen, as deliveries of the outbox.

A feed remembers its place in the stream of events (engine.queries.events), and moves on in the transaction that writes the deliveries: each
event is written once, and one that commits late is not passed over. The deliveries of one case stand in one line, in the order of the
stream. From there on they are sent as all deliveries are: signed, at least once under one id, retried, paused, skipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from psycopg import errors

from engine.commands.may import may
from engine.commands.outcome import Actor, FeedRemoved, FeedSaved, FieldProblem, Refusal, Rejected
from engine.commands.requests import WRITE_REQUEST, Request, encode, is_repeat, recorded, request_for
from engine.commands.transaction import Connection, command, transaction
from engine.db.locks import FEED_IF_FREE
from engine.destinations import EXPECTED_NAME, NAME
from engine.ids import new_id

MOST_EVENTS = 200  # that one look of a worker writes for one feed
MOST_KINDS = 50
LONGEST_KEY = 255


@command
def add_feed(
    conn: Connection,
    name: str,
    destination: str,
    *,
    actor: Actor,
    kinds: Sequence[str] = (),
    definition_key: str = "",
    request_id: str | None = None,
) -> FeedSaved | Rejected:
    """Send what happens from now on to a registered destination for web requests. `kinds`, `definition_key`: only these.

    Locks: nothing that waits but the unique key. Refuses: NOT_ALLOWED; INVALID (also for a name that is taken).
    """
    if not may(actor, "add", "feed"):
        return Rejected(Refusal.NOT_ALLOWED)
    problems = _problems(name, kinds, definition_key)
    if problems:
        return _invalid(problems)
    values = {
        "id": new_id(),
        "tenant_id": actor.tenant_id,
        "name": name,
        "destination": destination,
        "kinds": list(kinds),
        "definition_key": definition_key,
        "actor": actor.username,
    }
    asked = request_for(actor, request_id, "add_feed", name, [destination, list(kinds), definition_key])
    done = FeedSaved(name, destination)
    outcome: FeedSaved | Rejected | None = _written(conn, _ADD, values, done, asked)
    return outcome or _why_not(conn, name, destination, actor)


@command
def remove_feed(conn: Connection, name: str, *, actor: Actor, request_id: str | None = None) -> FeedRemoved | Rejected:
    """Nothing more is written for it; what was written is still sent.

    Locks: the feed. Refuses: NOT_ALLOWED, NOT_FOUND.
    """
    if not may(actor, "remove", "feed"):
        return Rejected(Refusal.NOT_ALLOWED)
    values = {"tenant_id": actor.tenant_id, "name": name, "actor": actor.username}
    asked = request_for(actor, request_id, "remove_feed", name)
    outcome: FeedRemoved | None = _written(conn, _REMOVE, values, FeedRemoved(name), asked)
    return outcome or Rejected(Refusal.NOT_FOUND)


@command
def move_feeds_on(conn: Connection) -> int:
    """Write deliveries for what has happened since each feed's place, and move it on; returns how many were written.

    Locks: the feeds, SKIP LOCKED, so that two workers do not wait for each other. Refuses: nothing.
    """
    if conn.execute(_ANY).fetchone() is None:
        return 0  # no transaction each second in every worker of an installation without feeds
    with transaction(conn):
        feeds = conn.execute(_FEEDS).fetchall()
        return sum(_move_on(conn, feed) for feed in feeds)


def _move_on(conn: Connection, feed: Sequence[Any]) -> int:
    feed_id, tenant_id, name, route, address, max_attempts, retry, kinds, key, xid, event_id, done = feed
    asked = {"tenant": tenant_id, "xid": xid, "id": event_id, "kinds": kinds, "key": key, "limit": MOST_EVENTS}
    found = conn.execute(_EVENTS, asked).fetchall()
    place = (found[-1][1], found[-1][0]) if len(found) == MOST_EVENTS else (done, 2**63 - 1)
    rows = [
        {"id": str(new_id()), "line": str(event[3] or event[2] or ""), "address": address, "request": _request(name, address, event)}
        for event in found
    ]
    values = {
        "feed": feed_id,
        "tenant": tenant_id,
        "route": route,
        "address": address,
        "max_attempts": max_attempts,
        "retry": retry,
        "rows": orjson.dumps(rows).decode(),
        "xid": str(place[0]),
        "event_id": place[1],
    }
    conn.execute(_WRITE, values)
    return len(rows)


def _request(name: str, address: str, event: Sequence[Any]) -> dict[str, Any]:
    id, _, instance_id, root_id, at, kind, definition_key, version, business_key, element_id, item_id, actor, data = event
    happened: datetime = at
    body = {
        "type": kind,
        "timestamp": happened.isoformat(),
        "data": {
            "id": id,
            "process_instance_id": _text(instance_id),
            "root_instance_id": _text(root_id),
            "process_definition_key": definition_key,
            "version": version,
            "business_key": business_key,
            "element_id": element_id,
            "item_id": _text(item_id),
            "actor": actor,
            "data": data,
        },
    }
    return {"method": "POST", "url": address, "headers": {"Baton-Feed": name}, "body": body}


def _text(id: UUID | None) -> str | None:
    return None if id is None else str(id)


def _problems(name: str, kinds: Sequence[str], definition_key: str) -> tuple[FieldProblem, ...]:
    found = []
    if not NAME.fullmatch(name):
        found.append(FieldProblem("name", f"expected {EXPECTED_NAME}, found {name[:64]!r}"))
    if len(kinds) > MOST_KINDS or not all(kind.replace("_", "").isascii() and kind.replace("_", "").isalpha() for kind in kinds):
        found.append(FieldProblem("kinds", f"expected at most {MOST_KINDS} names of kinds of events"))
    if len(definition_key) > LONGEST_KEY or "\0" in definition_key:
        found.append(FieldProblem("process_definition_key", f"expected at most {LONGEST_KEY} characters"))
    return tuple(found)


def _invalid(problems: tuple[FieldProblem, ...]) -> Rejected:
    return Rejected(Refusal.INVALID, "; ".join(f"{p.field}: {p.message}" for p in problems), problems=problems)


def _why_not(conn: Connection, name: str, destination: str, actor: Actor) -> Rejected:
    row = conn.execute(_STANDS, {"tenant_id": actor.tenant_id, "name": name}).fetchone()
    if row is not None and row[0]:
        return _invalid((FieldProblem("name", f"expected a name of its own, found another feed called {name}"),))
    what = f"expected the name of a registered destination for web requests, found {destination[:64]!r}"
    return _invalid((FieldProblem("destination", what),))


def _written(conn: Connection, statements: tuple[str, str], values: dict[str, Any], done: Any, asked: Request | None) -> Any:
    """`done`, what was recorded under this request before, or None: the statement's guard found nothing."""
    if asked is not None:
        values = {**values, **asked.params(), "outcome": encode(done)}
    try:
        row = conn.execute(statements[asked is not None], values).fetchone()
    except errors.UniqueViolation as error:
        if not is_repeat(error):
            raise
        return recorded(conn, asked)
    return done if row is not None else recorded(conn, asked)


# ---- the statements


def _noted(statement: str, action: str) -> tuple[str, str]:
    """Without and with a request row."""
    text = f"""
WITH {statement}, noted AS (
  INSERT INTO audit (at, tenant_id, actor, action, object_kind, object_id)
  SELECT baton_clock(), %(tenant_id)s, %(actor)s, '{action}', 'feed', %(name)s FROM moved
)"""
    press = f", press AS ({WRITE_REQUEST.format(outcome='%(outcome)s::jsonb', source='moved')})"
    return text + " SELECT 1 FROM moved", text + press + " SELECT 1 FROM moved"


_ADD = _noted(
    """moved AS (
  INSERT INTO event_feed (id, tenant_id, name, destination_id, kinds, definition_key, xid, event_id, created_by, created_at)
  SELECT %(id)s, d.tenant_id, %(name)s, d.id, %(kinds)s, %(definition_key)s,
    (pg_snapshot_xmin(pg_current_snapshot())::text::bigint - 1)::text::xid8, 9223372036854775807, %(actor)s, baton_clock()
  FROM destination d WHERE d.tenant_id = %(tenant_id)s AND d.name = %(destination)s AND d.kind = 'http' AND d.removed_at IS NULL
  ON CONFLICT DO NOTHING RETURNING id
)""",
    "add",
)
_REMOVE = _noted("moved AS (DELETE FROM event_feed f WHERE f.tenant_id = %(tenant_id)s AND f.name = %(name)s RETURNING f.id)", "remove")
_STANDS = "SELECT EXISTS (SELECT FROM event_feed WHERE tenant_id = %(tenant_id)s AND name = %(name)s)"
_ANY = "SELECT FROM event_feed LIMIT 1"
# Only those with something ahead of them: what all transactions below the oldest that runs have written stays as it is.
_FEEDS = f"""
SELECT f.id, f.tenant_id, f.name, d.id::text, d.address, d.max_attempts, d.retry, f.kinds, f.definition_key,
  f.xid::text, f.event_id, pg_snapshot_xmin(pg_current_snapshot())::text::bigint - 1
FROM event_feed f JOIN destination d ON d.id = f.destination_id
WHERE d.removed_at IS NULL AND EXISTS (SELECT FROM history h
  WHERE (h.xid, h.id) > (f.xid, f.event_id) AND h.xid < pg_snapshot_xmin(pg_current_snapshot()) AND h.tenant_id = f.tenant_id)
ORDER BY f.id {FEED_IF_FREE}
"""
# Events of deliveries are left out: each delivery of a feed would bring on the next.
_EVENTS = """
SELECT h.id, h.xid::text::bigint, h.instance_id, h.root_id, h.at, h.kind, p.key, p.version, i.business_key, h.element_id, h.item_id,
  h.actor, h.data
FROM history h
LEFT JOIN process_definition p ON p.id = h.definition_id
LEFT JOIN process_instance i ON i.id = h.instance_id
WHERE (h.xid, h.id) > (%(xid)s::text::xid8, %(id)s) AND h.xid < pg_snapshot_xmin(pg_current_snapshot()) AND h.tenant_id = %(tenant)s
  AND (%(kinds)s::text[] = '{}' OR h.kind = ANY (%(kinds)s::text[])) AND (%(key)s = '' OR p.key = %(key)s)
  AND h.kind NOT LIKE 'delivery\\_%%'
ORDER BY h.xid, h.id LIMIT %(limit)s
"""
_WRITE = """
WITH moved AS (
  UPDATE event_feed SET xid = %(xid)s::text::xid8, event_id = %(event_id)s WHERE id = %(feed)s RETURNING id
)
INSERT INTO delivery (id, tenant_id, kind, destination, address, route, line, held, due_at, available_at, created_at, max_attempts, retry,
  request)
SELECT u.id, %(tenant)s, 'http', %(address)s, %(address)s, %(route)s, nullif(u.line, ''),
  CASE WHEN u.line = '' THEN '{}'::text[] ELSE ARRAY['ordered'] END, at, at, at, %(max_attempts)s, %(retry)s, u.request
FROM moved, (SELECT baton_clock() AS at) clock, jsonb_to_recordset(%(rows)s::jsonb) AS u (id uuid, line text, request jsonb)
"""
