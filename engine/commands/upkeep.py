"""Upkeep: what nothing depends on and what would pile up otherwise. Any replica may call it at any time.

Each chore is a transaction of its own. Who acts is decided in the database: an advisory lock lets one in, and a row of
`watermark` says when it was last done, so ten replicas that tick every minute do it once a minute. What a chore deletes
had stopped to count long before: an expired session or message is refused by those who read it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.commands.transaction import Connection, command, transaction
from engine.db.acquire import DELIVERY, EXTERNAL_TASK, JOB
from engine.db.alarms import ALARMS
from engine.db.locks import TURN, TURNLESS
from engine.db.marks import move_watermarks
from engine.db.partitions import make_partitions
from engine.db.watermarks import move_inbox_watermarks, move_lease_watermarks
from engine.logs import line

log = logging.getLogger(__name__)

MOST_ROWS = 5_000  # of one table in one transaction
MOST_RUNS = 10  # of one chore at a time, if each finds so many
LOCK_SPACE = 7_265  # first key of the advisory locks here; the second is the chore's place in CHORES


@dataclass(frozen=True, slots=True)
class Kept:
    """What upkeep is told. `job_branches`: the (kind, topic)s that this build runs."""

    request_seconds: float
    job_branches: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Chore:
    name: str
    every_seconds: float
    do: Callable[[Connection, Kept], int]


def _delete(table: str, key: str, gone: str) -> Callable[[Connection, Kept], int]:
    statement = f"DELETE FROM {table} WHERE {key} IN (SELECT {key} FROM {table} WHERE {gone} LIMIT {MOST_ROWS})"

    def do(conn: Connection, kept: Kept) -> int:
        return conn.execute(statement).rowcount

    return do


def _requests(conn: Connection, kept: Kept) -> int:
    return conn.execute(
        "DELETE FROM request WHERE ctid = ANY (ARRAY(SELECT ctid FROM request"
        f" WHERE created_at < baton_now() - make_interval(secs => %s) ORDER BY created_at LIMIT {MOST_ROWS}))",
        (kept.request_seconds,),
    ).rowcount


def _firings(conn: Connection, kept: Kept) -> int:
    # What is past a month cannot fire again: the next occurrence is written in the transaction of the one before, later than it.
    return conn.execute(
        "DELETE FROM timer_firing WHERE ctid = ANY (ARRAY(SELECT ctid FROM timer_firing"
        f" WHERE fired_at < baton_now() - interval '30 days' ORDER BY fired_at LIMIT {MOST_ROWS}))"
    ).rowcount


def _messages(conn: Connection, kept: Kept) -> int:
    # One that expired is seen for a day longer, in a table that no delivery reads; its variables go at once.
    return conn.execute(
        "WITH gone AS (DELETE FROM message WHERE id IN"
        f" (SELECT id FROM message WHERE expires_at < baton_now() LIMIT {MOST_ROWS}) RETURNING *)"
        " INSERT INTO message_expired (id, tenant_id, name, correlation_key, published_by, published_at, expires_at)"
        " SELECT id, tenant_id, name, correlation_key, published_by, published_at, expires_at FROM gone"
    ).rowcount


def _receipts(conn: Connection, kept: Kept) -> int:
    return conn.execute(
        "DELETE FROM message_receipt WHERE ctid = ANY (ARRAY(SELECT ctid FROM message_receipt"
        f" WHERE kept_until <= baton_now() ORDER BY kept_until LIMIT {MOST_ROWS}))"
    ).rowcount


def _request_counts(conn: Connection, kept: Kept) -> int:
    # Two minutes more than a window: whoever adds to one looked at the clock a moment ago.
    return conn.execute(
        "DELETE FROM request_count WHERE ctid = ANY (ARRAY(SELECT ctid FROM request_count"
        f" WHERE minute < extract(epoch FROM baton_now())::bigint / 60 - 2 LIMIT {MOST_ROWS}))"
    ).rowcount


def _reports(conn: Connection, kept: Kept) -> int:
    # Lines first: without the row of its attempt a line is not shown.
    return sum(
        conn.execute(
            f"DELETE FROM {table} WHERE ctid = ANY (ARRAY(SELECT ctid FROM {table}"
            f" WHERE {at} < baton_now() - interval '30 days' ORDER BY {at} LIMIT {MOST_ROWS}))"
        ).rowcount
        for table, at in (("attempt_line", "at"), ("attempt_report", "reported_at"))
    )


def _external_workers(conn: Connection, kept: Kept) -> int:
    return conn.execute(
        "DELETE FROM external_worker WHERE ctid = ANY (ARRAY(SELECT ctid FROM external_worker"
        f" WHERE last_seen_at < baton_now() - interval '1 day' ORDER BY last_seen_at LIMIT {MOST_ROWS}))"
    ).rowcount


def _partitions(conn: Connection, kept: Kept) -> int:
    # ATTACH waits for whoever reads the history in a long transaction; nobody shall queue up behind us meanwhile.
    conn.execute("SET LOCAL lock_timeout = '2s'")
    with conn.cursor() as cursor:
        return len(make_partitions(cursor))


def _watermarks(sweep: bool) -> Callable[[Connection, Kept], int]:
    def do(conn: Connection, kept: Kept) -> int:
        external = [(tenant, topic) for tenant, topic in conn.execute(_EXTERNAL_BRANCHES).fetchall()]
        for work, branches in ((JOB, list(kept.job_branches)), (EXTERNAL_TASK, external), (DELIVERY, [("http", ""), ("mail", "")])):
            if branches:
                move_watermarks(conn, work, branches, sweep=sweep)
        if sweep:
            move_lease_watermarks(conn)
            move_inbox_watermarks(conn)
        return 0

    return do


def _turns(conn: Connection, kept: Kept) -> int:
    found = conn.execute(TURNLESS).fetchall()
    for (root_id,) in found:
        log.warning("turn_passed_late root=%s", root_id)
        conn.execute(TURN, {"root_id": root_id})
    return len(found)


def _alarms(conn: Connection, kept: Kept) -> int:
    for name, about, seconds in conn.execute(ALARMS).fetchall():
        log.warning(line("alarm", name=name, about=about or None, seconds=seconds))
    return 0


# Each (tenant, topic) with free external tasks, by hopping along the index from one to the next.
_EXTERNAL_BRANCHES = """
WITH RECURSIVE hop AS (
  (SELECT tenant_id, topic FROM external_task WHERE status = 'available' AND held = '{}' ORDER BY tenant_id, topic LIMIT 1)
  UNION ALL
  SELECT next.tenant_id, next.topic FROM hop CROSS JOIN LATERAL (
    SELECT j.tenant_id, j.topic FROM external_task j
    WHERE j.status = 'available' AND j.held = '{}' AND (j.tenant_id, j.topic) > (hop.tenant_id, hop.topic)
    ORDER BY j.tenant_id, j.topic LIMIT 1) next
)
SELECT tenant_id, topic FROM hop
"""

CHORES = (
    Chore("partitions", 3600, _partitions),
    Chore("watermarks", 60, _watermarks(sweep=False)),
    Chore("watermark_sweep", 300, _watermarks(sweep=True)),
    Chore("turns", 60, _turns),
    Chore("sessions", 300, _delete("web_session", "token_hash", "expires_at < baton_now()")),
    Chore("messages", 60, _messages),
    Chore("requests", 300, _requests),
    Chore("login_attempts", 3600, _delete("login_attempt", "id", "at < baton_now() - interval '1 day'")),
    Chore("workers", 3600, _delete("worker", "id", "coalesce(stopped_at, heartbeat_at) < baton_now() - interval '1 day'")),
    Chore("external_workers", 3600, _external_workers),
    Chore("timer_firings", 300, _firings),
    Chore("alarms", 60, _alarms),
    Chore("message_receipts", 300, _receipts),
    Chore("expired_messages", 60, _delete("message_expired", "id", "expires_at < baton_now() - interval '1 day'")),
    Chore("attempt_reports", 300, _reports),
    Chore("request_counts", 60, _request_counts),
)

_TURN = """
INSERT INTO watermark AS w (name, at) VALUES (%(name)s, baton_clock())
ON CONFLICT ON CONSTRAINT pk_watermark DO UPDATE SET at = excluded.at, swept_at = excluded.at
WHERE w.at <= baton_now() - make_interval(secs => %(every)s) RETURNING 1
"""
_AGAIN = "UPDATE watermark SET at = '-infinity' WHERE name = %(name)s"


def upkeep(conn: Connection, kept: Kept) -> dict[str, int]:
    """Do every chore whose time has come, unless somebody else is at it: chore -> rows removed or made.

    A chore that fails is logged and stops no other; psycopg.OperationalError (no database) goes to the caller.
    """
    done = {}
    for number, chore in enumerate(CHORES):
        try:
            count = _as_often_as_needed(conn, number, kept)
        except Exception as problem:
            if conn.broken or conn.closed:
                raise
            log.exception("upkeep_failed chore=%s problem=%s", chore.name, type(problem).__name__)
            continue
        if count is not None:
            done[chore.name] = count
    return done


def _as_often_as_needed(conn: Connection, number: int, kept: Kept) -> int | None:
    total = None
    for _ in range(MOST_RUNS):
        count = take_turn(conn, number, kept)
        if count is None:
            break
        total = (total or 0) + count
        if count < MOST_ROWS:
            break
    return total


@command
def take_turn(conn: Connection, number: int, kept: Kept) -> int | None:
    """Do one chore if its time has come; None: not yet, or another replica is at it.

    Locks: an advisory lock that it only tries; then rows that nobody needs any more. Refuses: nothing.
    """
    chore = CHORES[number]
    with transaction(conn):
        mine = conn.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", (LOCK_SPACE, number)).fetchone()
        if not mine or not mine[0]:
            return None
        if conn.execute(_TURN, {"name": f"upkeep {chore.name}", "every": chore.every_seconds * 0.8}).fetchone() is None:
            return None
        count = chore.do(conn, kept)
        if count >= MOST_ROWS:  # there may be more: its time is now, for whoever comes next
            conn.execute(_AGAIN, {"name": f"upkeep {chore.name}"})
        return count
