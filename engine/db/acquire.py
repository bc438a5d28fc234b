"""Every SKIP LOCKED: acquiring, renewing and recovering leased work, and the next open task.

The three tables of durable work (job, external_task, delivery) share one life cycle and the same statements. Each
function here is one short statement in autocommit; none waits for a row.

Acquisition never wades. One index probe for each (kind, topic, level) that the caller can run and nobody paused, each
bounded and starting at the low watermark; merged by age, a level counting as `AGEING` of it; then found by place (ctid: a
snapshot sees one version of a row), with the predicate repeated on the row that is locked (an older snapshot would lease the same rows
again); what changed meanwhile is left for the next look. A lease has a number that nothing resets, and spends an attempt.

No history event is written for an acquisition: the event that ends it carries owner, lease number, attempt and start.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple
from uuid import UUID

import psycopg

from engine.db.locks import EXCLUSIVE, GIVES_UP, ROOT_OF_ITEM_IF_FREE, TURN, keeps_turn
from engine.db.session import cursor_of, transaction
from engine.db.single_rows import texts
from engine.db.taken_back import FRONT, LOST, take_back_sql
from engine.failpoints import commit_point
from engine.frozen import dataclass
from engine.ids import new_id

Connection = psycopg.Connection[Any]
log = logging.getLogger(__name__)

AGEING = "interval '60 seconds'"  # what one priority level is worth in waiting time: 9 minutes from 0 to 9
HEAD_START = f"CASE b.level WHEN {FRONT} THEN interval '1 day' ELSE b.level * {AGEING} END"
MARGIN = "interval '5 minutes'"  # how long a transaction may stay open after it wrote an item, before the sweep must find it


# ---- what differs between the three tables


@dataclass(frozen=True, slots=True)
class Work:
    """One table of durable work. `match`: how its index groups items, against a branch (a, b); `pause`: what stops a whole branch.

    Workers serve every tenant at once: a pause of the tenant '' stops a branch of jobs or deliveries for all of them, those of other
    tenants hold their items. `branches`: where the branches come from; deliveries of a kind have one for each destination (ROUTES).
    """

    table: str
    match: str
    pause: str
    seconds: str
    branches: str = "unnest(%(a)s::text[], %(b)s::text[]) AS c (a, b)"


# The branches of a kind of delivery: what goes to no registered destination, and each destination but the paused ones. One that takes so
# many at a time has room for those less the ones that are being sent.
# These are counted in the order of their own index: without an order, a database without statistics reads every lease for each destination.
_ROUTES = """
  SELECT '' AS b, NULL::bigint AS turns, NULL::bigint AS room
  UNION ALL
  SELECT d.id::text, d.turns, CASE WHEN d.concurrency IS NOT NULL THEN d.concurrency - (SELECT count(*) FROM (SELECT FROM delivery v
    WHERE v.route BETWEEN d.id::text AND d.id::text AND v.route <> '' AND v.status = 'leased' ORDER BY v.route LIMIT d.concurrency) s) END
  FROM destination d
  WHERE d.kind = c.a AND NOT EXISTS (SELECT FROM pause p WHERE p.tenant_id = d.tenant_id AND p.kind = d.kind AND p.topic = d.name)"""
JOB = Work(
    "job",
    "j.kind = b.a AND j.topic = b.b",
    "p.tenant_id = '' AND p.kind = c.a AND p.topic IN (c.b, '*')",
    "coalesce(j.lease_seconds, mine.seconds)",
)
EXTERNAL_TASK = Work(
    "external_task",
    "j.tenant_id = b.a AND j.topic = b.b",
    "p.tenant_id = c.a AND p.kind = 'external_task' AND p.topic IN (c.b, '*')",
    "mine.seconds",
)
DELIVERY = Work(
    "delivery",
    "j.kind = b.a AND j.route = b.b",
    "p.tenant_id = '' AND p.kind = c.a AND p.topic = ''",
    "mine.seconds",
    f"(SELECT c.a, r.b FROM unnest(%(a)s::text[]) AS c (a) CROSS JOIN LATERAL ({_ROUTES}) r) AS c",
)
WORK: Mapping[str, Work] = {work.table: work for work in (JOB, EXTERNAL_TASK, DELIVERY)}


@dataclass(frozen=True, slots=True)
class Acquired:
    """An item leased to `owner`. `kind`: job | external_task | delivery; `topic`: handler, topic, or kind of delivery."""

    kind: str
    item_id: UUID
    number: int
    owner: str
    expires_at: datetime
    tenant_id: str
    job_kind: str  # service | timer | start_timer | message | cancel | continue; "" for what is not a job
    topic: str
    instance_id: UUID | None
    root_id: UUID | None
    definition_id: UUID | None
    element_id: str | None
    attempt: int
    max_attempts: int
    seconds_left: float  # by the database's clock, for a deadline on a monotonic clock


# ---- acquire


def acquire_jobs(
    conn: Connection, *, owner: str, capabilities: Collection[tuple[str, str]], limit: int, lease_seconds: float, workers: int
) -> list[Acquired]:
    """Lease at most `limit` due jobs of the given (kind, topic)s; `workers`: how many are alive, this one included."""
    branches = [(kind, topic, lease_seconds) for kind, topic in sorted(capabilities)]
    return _acquire(conn, JOB, owner, branches, limit, workers)


def acquire_deliveries(
    conn: Connection, *, owner: str, kinds: Collection[str], limit: int, lease_seconds: float, workers: int
) -> list[Acquired]:
    """Lease at most `limit` due deliveries of the given kinds (http, mail)."""
    return _acquire(conn, DELIVERY, owner, [(kind, "", lease_seconds) for kind in sorted(kinds)], limit, workers)


def acquire_external(
    conn: Connection, *, tenant_id: str, owner: str, topics: Mapping[str, float], limit: int, workers: int = 4,
    chosen: Mapping[str, str] | None = None,
) -> list[Acquired]:  # fmt: skip
    """Lease at most `limit` external tasks to the client `owner`; `topics`: topic -> seconds of its lease.

    `chosen`: topic -> which of its tasks, as JSON (`CHOSEN`); what is not wanted is waded through.
    """
    branches = [(tenant_id, topic, s) for topic, s in sorted(topics.items())]
    return _acquire(conn, EXTERNAL_TASK, owner, branches, limit, workers, [(chosen or {}).get(topic) for _, topic, _ in branches])


def acquire_one_external(conn: Connection, item_id: UUID, *, tenant_id: str, owner: str, seconds: float) -> list[Acquired]:
    """Lease this external task if it is free; whoever holds its row is left alone."""
    params = {"item_id": item_id, "tenant_id": tenant_id, "owner": owner, "seconds": seconds}
    with commit_point(conn, "acquire.before_commit"):
        rows = cursor_of(conn).execute(_ACQUIRE_ONE, params).fetchall()
    return [Acquired("external_task", row[0], row[1], owner, *row[2:]) for row in rows]


def _acquire(
    conn: Connection, work: Work, owner: str, branches: Sequence[tuple[str, str, float]], limit: int, workers: int,
    chosen: Sequence[str | None] = (),
) -> list[Acquired]:  # fmt: skip
    if limit < 1 or not branches:
        return []
    a, b, seconds = _columns(tuple(branches))
    params = {
        "a": a,
        "b": b,
        "seconds": seconds,
        "owner": owner,
        "limit": limit,
        # Others may hold locks on that many rows in front of ours.
        "reach": limit * (workers + 1),
        "chosen": list(chosen),
    }
    statement = _ACQUIRE_CHOSEN if any(chosen) else _ACQUIRE[work.table]
    with commit_point(conn, "acquire.before_commit"):
        rows = cursor_of(conn).execute(statement, params).fetchall()
    return [Acquired(work.table, row[0], row[1], owner, *row[2:]) for row in rows]


@lru_cache(maxsize=100)
def _columns(branches: tuple[tuple[str, str, float], ...]) -> tuple[str, str, str]:
    """As arrays that the server reads; a worker asks for the same ones each time."""
    return texts(a for a, _, _ in branches), texts(b for _, b, _ in branches), texts(repr(seconds) for _, _, seconds in branches)


def acquire_sql(work: Work) -> str:
    """The acquisition of one table, as prepared; shown by `baton explain` and the plan tests."""
    return _ACQUIRE[work.table]


def _free(alias: str) -> str:
    # Literals, so that the partial index serves; `held` as the index has it.
    return f"{alias}.status = 'available' AND {alias}.held = '{{}}' AND {alias}.available_at <= baton_now()"


_STILL_FREE = _free("j").replace("status =", 'status COLLATE "C" =')  # of a row that was found: as in the guards of locks.py

_AGAIN = f"{_STILL_FREE} AND j.attempts < j.max_attempts"


# Which tasks of a topic a client wants: an object with any of these keys. Variables are those of the whole instance.
CHOSEN = """(b.chosen IS NULL OR EXISTS (
      SELECT FROM process_instance i JOIN process_definition d ON d.id = j.definition_id WHERE i.id = j.instance_id
      AND (NOT b.chosen ? 'business_key' OR i.business_key = b.chosen->>'business_key')
      AND (NOT b.chosen ? 'definition_ids' OR b.chosen->'definition_ids' ? d.id::text)
      AND (NOT b.chosen ? 'definition_keys' OR b.chosen->'definition_keys' ? d.key)
      AND (NOT b.chosen ? 'version_tag' OR d.version_tag = b.chosen->>'version_tag')
      AND NOT EXISTS (SELECT FROM jsonb_each(b.chosen->'variables') AS w (name, value) WHERE NOT EXISTS (
        SELECT FROM scope s JOIN variable v ON v.scope_id = s.id
        WHERE s.instance_id = i.id AND s.parent_id IS NULL AND v.name = w.name AND v.value = w.value))))"""


def _acquire_sql(work: Work, *, chosen: bool = False) -> str:
    kind = "j.kind" if work is JOB else "''"
    return f"""
WITH branch AS MATERIALIZED (
  SELECT c.a, c.b, c.seconds, l.level, coalesce(w.at, '-infinity') AS low{", c.chosen" if chosen else ""}
  FROM unnest(%(a)s::text[], %(b)s::text[], %(seconds)s::float8[]{", %(chosen)s::jsonb[]" if chosen else ""})
    AS c (a, b, seconds{", chosen" if chosen else ""})
  CROSS JOIN generate_series(0, {FRONT}) AS l (level)
  LEFT JOIN watermark w ON w.name = '{work.table} ' || c.a || ' ' || c.b
  WHERE NOT EXISTS (SELECT FROM pause p WHERE {work.pause})
), due AS MATERIALIZED (
  SELECT f.id, f.place, f.age, b.seconds
  FROM branch b CROSS JOIN LATERAL ({_front(work, f" AND {CHOSEN}" if chosen else "")} LIMIT %(reach)s) f
  ORDER BY f.age, f.id LIMIT %(reach)s
), mine AS MATERIALIZED (
  SELECT j.ctid AS place, due.seconds
  FROM due JOIN {work.table} j ON j.ctid = due.place
  WHERE {_AGAIN}
  ORDER BY due.age, due.id LIMIT %(limit)s
  FOR UPDATE OF j SKIP LOCKED
)
{_leased(work, kind, "j.topic")}"""


def _acquire_deliveries_sql() -> str:
    """As of the others, and of a destination no more than it has room for: one with a thousand in front keeps no other waiting.

    Who has a destination's lock (`roomy`) with `turns` as it was read has counted all that others have acquired: each acquisition moves
    it on, and a lock on a row that has moved on since is none. Who does not get it looks again later; nobody waits, no count can drift.
    """
    return f"""
WITH branch AS MATERIALIZED (
  SELECT c.a, r.b, c.seconds, r.room, r.turns, l.level, coalesce(w.at, '-infinity') AS low
  FROM unnest(%(a)s::text[], %(b)s::text[], %(seconds)s::float8[]) AS c (a, b, seconds) CROSS JOIN LATERAL ({_ROUTES}) AS r
  CROSS JOIN generate_series(0, {FRONT}) AS l (level)
  LEFT JOIN watermark w ON w.name = 'delivery ' || c.a || ' ' || r.b
  WHERE NOT EXISTS (SELECT FROM pause p WHERE {DELIVERY.pause}) AND coalesce(r.room, 1) > 0
), front AS MATERIALIZED (
  SELECT f.id, f.place, f.age, b.seconds, b.b, b.room, b.turns, row_number() OVER (PARTITION BY b.b ORDER BY f.age, f.id) AS nth
  FROM branch b CROSS JOIN LATERAL ({_front(DELIVERY)} LIMIT least(%(reach)s, b.room)) f
), due AS MATERIALIZED (
  SELECT * FROM front WHERE room IS NULL OR nth <= room ORDER BY age, id LIMIT %(reach)s
), roomy AS MATERIALIZED (
  SELECT d.id::text AS b FROM destination d JOIN (SELECT DISTINCT b, turns FROM due WHERE room IS NOT NULL) w ON d.id::text = w.b
  WHERE d.turns = w.turns ORDER BY d.id LIMIT %(reach)s FOR NO KEY UPDATE OF d SKIP LOCKED
), mine AS MATERIALIZED (
  SELECT j.ctid AS place, due.seconds, due.b, due.room
  FROM due JOIN delivery j ON j.ctid = due.place
  WHERE {_AGAIN} AND (due.room IS NULL OR due.b IN (SELECT b FROM roomy))
  ORDER BY due.age, due.id LIMIT %(limit)s
  FOR UPDATE OF j SKIP LOCKED
), turned AS (
  UPDATE destination d SET turns = d.turns + 1 FROM (SELECT DISTINCT b FROM mine WHERE room IS NOT NULL) m WHERE d.id::text = m.b
)
{_leased(DELIVERY, "''", "j.kind")}"""


def _front(work: Work, more: str = "") -> str:
    """The first of one branch; its limit follows."""
    return f"""
    SELECT j.id, j.ctid AS place, j.available_at - {HEAD_START} AS age
    FROM {work.table} j
    WHERE {work.match} AND j.level = b.level AND {_free("j")} AND j.available_at >= b.low{more}
    ORDER BY j.available_at, j.id"""


def _leased(work: Work, kind: str, topic: str) -> str:
    return f"""UPDATE {work.table} j SET status = 'leased', lease_owner = %(owner)s, lease_number = j.lease_number + 1,
  attempts = j.attempts + 1, level = j.priority, leased_at = baton_clock(),
  lease_expires_at = baton_clock() + make_interval(secs => {work.seconds})
FROM mine WHERE j.ctid = mine.place AND j.status = 'available'
RETURNING j.id, j.lease_number, j.lease_expires_at, j.tenant_id, {kind}, {topic}, j.instance_id, j.root_id, j.definition_id,
  j.element_id, j.attempts, j.max_attempts, extract(epoch FROM j.lease_expires_at - baton_clock())::float8
"""


_ACQUIRE = {
    "job": _acquire_sql(JOB),
    "external_task": _acquire_sql(EXTERNAL_TASK),
    "delivery": _acquire_deliveries_sql(),
}
_ACQUIRE_CHOSEN = _acquire_sql(EXTERNAL_TASK, chosen=True)
_ACQUIRE_ONE = f"""
WITH mine AS MATERIALIZED (
  SELECT j.id FROM external_task j
  WHERE j.id = %(item_id)s AND j.tenant_id = %(tenant_id)s AND {_STILL_FREE} AND j.attempts < j.max_attempts
  FOR UPDATE OF j SKIP LOCKED
)
UPDATE external_task j SET status = 'leased', lease_owner = %(owner)s, lease_number = j.lease_number + 1, attempts = j.attempts + 1,
  level = j.priority, leased_at = baton_clock(), lease_expires_at = baton_clock() + make_interval(secs => %(seconds)s::float8)
FROM mine WHERE j.id = mine.id AND j.status = 'available'
RETURNING j.id, j.lease_number, j.lease_expires_at, j.tenant_id, '', j.topic, j.instance_id, j.root_id, j.definition_id,
  j.element_id, j.attempts, j.max_attempts, extract(epoch FROM j.lease_expires_at - baton_clock())::float8
"""

# The next open task that names the actor or a group of theirs (parameters of `may_params`).
NEXT_TASK = (
    "SELECT t.id FROM user_task t WHERE t.status = 'open' AND t.tenant_id = %(may_tenant)s"
    " AND t.id IN (SELECT e.task_id FROM inbox_entry e WHERE e.tenant_id = %(may_tenant)s"
    " AND ((e.kind = 'user' AND e.name = %(may_user)s) OR (e.kind = 'group' AND e.name = ANY (%(may_groups)s::text[]))))"
    " AND EXISTS (SELECT FROM process_instance r WHERE r.id = t.root_id AND r.mark IS NULL)"
    " ORDER BY t.priority DESC, t.due_at NULLS LAST, t.created_at, t.id LIMIT 1 FOR NO KEY UPDATE OF t SKIP LOCKED"
)


# ---- renew


class Extended(NamedTuple):
    """`expires_at`: item -> new expiry; `lost`: leased under another number, or not at all."""

    expires_at: dict[UUID, datetime]
    lost: set[UUID]


def renew_leases(conn: Connection, work: Work, leases: Iterable[tuple[UUID, int, float | None, datetime | None]]) -> Extended:
    """Move the expiry of leases on; a row that is locked now is renewed at the next tick (R4).

    A lease: item id, number, and for how long: in seconds, or None for as long as when it was acquired, which its first
    expiry tells.
    """
    asked = list(leases)
    if not asked:
        return Extended({}, set())
    ids, numbers, seconds, first = (list(column) for column in zip(*asked, strict=True))
    params = {"ids": ids, "numbers": numbers, "seconds": seconds, "first": first, "limit": len(asked)}
    cursor = cursor_of(conn)
    renewed = dict(cursor.execute(_RENEW[work.table], params).fetchall())
    if len(renewed) == len(asked):
        return Extended(renewed, set())
    # Skipped is not lost: somebody may hold the row for a moment. A plain read tells.
    held = {row[0] for row in cursor.execute(_STILL_LEASED[work.table], params).fetchall()}
    return Extended(renewed, set(ids) - set(renewed) - held)


_RENEW = {
    table: f"""
WITH mine AS MATERIALIZED (
  SELECT j.id, coalesce(make_interval(secs => a.seconds), a.first - j.leased_at) AS duration
  FROM unnest(%(ids)s::uuid[], %(numbers)s::bigint[], %(seconds)s::float8[], %(first)s::timestamptz[])
    AS a (id, number, seconds, first)
  JOIN {table} j ON j.id = a.id
  WHERE j.status = 'leased' AND j.lease_number = a.number
  ORDER BY j.id LIMIT %(limit)s
  FOR UPDATE OF j SKIP LOCKED
)
UPDATE {table} j SET lease_expires_at = baton_clock() + coalesce(mine.duration, interval '30 seconds')
FROM mine WHERE j.id = mine.id AND j.status = 'leased' RETURNING j.id, j.lease_expires_at
"""
    for table in WORK
}
_STILL_LEASED = {
    table: "SELECT j.id FROM unnest(%(ids)s::uuid[], %(numbers)s::bigint[]) AS a (id, number)"
    f" JOIN {table} j ON j.id = a.id WHERE j.status = 'leased' AND j.lease_number = a.number"
    for table in WORK
}


# ---- recover


@dataclass(frozen=True, slots=True)
class Recovered:
    """A lease that was taken back. `status`: available, or failed when its last attempt was the one that it lost."""

    kind: str
    item_id: UUID
    number: int
    status: str


def recover_expired(conn: Connection, *, limit: int, forgiven: Collection[str] = ()) -> list[Recovered]:
    """Take back at most `limit` expired leases of each table; any replica may, none waits, one bad row stops no other.

    `forgiven`: topics of external tasks, or `*` for all, whose expired leases spend no attempt.
    """
    return [item for work in WORK.values() for item in _recover(conn, work, limit, forgiven)]


def recover_one_external(conn: Connection, item_id: UUID, *, forgiven: Collection[str]) -> None:
    """Take back the lease of this external task if it has expired, for whoever wants to have it now."""
    _take_back(conn, EXTERNAL_TASK, 1, item_id, forgiven)


def _recover(conn: Connection, work: Work, limit: int, forgiven: Collection[str]) -> list[Recovered]:
    try:
        return _take_back(conn, work, limit, None, forgiven)
    except psycopg.OperationalError:
        raise  # the connection, or the server: no row of ours is to blame
    except psycopg.Error:
        log.exception("recovery of a batch failed, going on row by row table=%s limit=%s", work.table, limit)
    recovered = []
    for item_id in _expired(conn, work):
        try:
            recovered += _take_back(conn, work, 1, item_id, forgiven)
        except psycopg.OperationalError:
            raise
        except psycopg.Error:
            log.exception("recovery failed table=%s item=%s", work.table, item_id)
        if len(recovered) >= limit:
            break
    return recovered


def _take_back(conn: Connection, work: Work, limit: int, only: UUID | None, forgiven: Collection[str]) -> list[Recovered]:
    params = {"limit": limit, "only": only, "incidents": [new_id() for _ in range(limit)], "forgiven": list(forgiven)}
    statement = (_RECOVER if only is None else _RECOVER_ONE)[work.table]
    with commit_point(conn, "recover.before_commit"):
        rows = cursor_of(conn).execute(statement, params).fetchall()
    recovered = [Recovered(work.table, *row[:3]) for row in rows if row[2] != "in turn"]
    for item_id in [row[0] for row in rows if row[2] == "in turn"]:
        recovered += _take_back_in_turn(conn, work, item_id, forgiven)
    return recovered


def _take_back_in_turn(conn: Connection, work: Work, item_id: UUID, forgiven: Collection[str]) -> list[Recovered]:
    """Exclusive work that has lost its last attempt gives its turn up, under the root's lock. Somebody has that: at the next tick."""
    cursor = cursor_of(conn)
    with transaction(conn):
        params = {"item_id": item_id, "incidents": [new_id()], "forgiven": list(forgiven)}
        found = cursor.execute(_RECOVER_IN_TURN[work.table], params).fetchall()
        for row in found:
            cursor.execute(TURN, {"root_id": row[3]})
    return [Recovered(work.table, *row[:3]) for row in found]


def _expired(conn: Connection, work: Work, page: int = 1000) -> Iterable[UUID]:
    """Every expired item, page by page: a page of rows that cannot be recovered must not hide the rest."""
    after: tuple[Any, Any] = ("-infinity", UUID(int=0))
    while True:
        rows = conn.execute(_EXPIRED[work.table], (*after, page)).fetchall()
        yield from (row[1] for row in rows)
        if len(rows) < page:
            return
        after = rows[-1]


# After a mass loss the items come back spread over up to half a minute, else all of them hit the same place at once.
_SPREAD = "random() * least(30, 0.05 * greatest(0, n.many - 10)) * interval '1 second'"
_WHY_LOST = (
    "format('The worker lost its lease (number %%s) in attempt %%s of %%s: it died, stalled, or was cut off.',"
    " j.lease_number, j.attempts, j.max_attempts)"
)
_EXPIRED_ONE = "j.status = 'leased' AND j.lease_expires_at < baton_now()"
_FORGIVEN = {"external_task": "ARRAY[j.topic, '*'] && %(forgiven)s::text[]"}


def _recovery(work: Work, which: str, order: str = "") -> str:
    """Those that `which` names, but for exclusive work that has lost its last attempt: that is told instead."""
    table, left = work.table, ""
    if table in EXCLUSIVE:
        given_up = f"{which} AND {GIVES_UP.format(alias='j')}{order}"
        left = f" UNION ALL (SELECT j.id, j.lease_number, 'in turn', j.root_id FROM {table} j WHERE {given_up})"
    lost = f"SELECT {LOST} FROM {table} j WHERE {which}{keeps_turn(table)}{order} FOR UPDATE SKIP LOCKED"
    return take_back_sql(table, lost, kind="recovered", actor="'engine'", why=_WHY_LOST, wait=_SPREAD, left=left,
        forgiven=_FORGIVEN.get(table, "false"))  # fmt: skip


_RECOVER = {
    work.table: _recovery(
        work,
        f"{_EXPIRED_ONE} AND j.lease_expires_at >="
        f" coalesce((SELECT w.at FROM watermark w WHERE w.name = '{work.table} leases'), '-infinity')",
        " ORDER BY j.lease_expires_at, j.id LIMIT %(limit)s",
    )
    for work in WORK.values()
}
_RECOVER_ONE = {work.table: _recovery(work, f"j.id = %(only)s AND {_EXPIRED_ONE}") for work in WORK.values()}
_RECOVER_IN_TURN = {
    table: take_back_sql(
        table,
        f"SELECT {LOST} FROM {table} j, root WHERE j.id = %(item_id)s AND {_EXPIRED_ONE} FOR UPDATE OF j SKIP LOCKED",
        kind="recovered",
        actor="'engine'",
        why=_WHY_LOST,
        wait="interval '0'",
        root=f"{ROOT_OF_ITEM_IF_FREE.format(table=table)},\n",
        forgiven=_FORGIVEN.get(table, "false"),
    )
    for table in EXCLUSIVE
}
_EXPIRED = {
    table: f"SELECT lease_expires_at, id FROM {table} WHERE status = 'leased' AND lease_expires_at < baton_now()"
    " AND (lease_expires_at, id) > (%s, %s) ORDER BY lease_expires_at, id LIMIT %s"
    for table in WORK
}


def recover_sql(work: Work) -> str:
    """The recovery of one table, as prepared; shown by `baton explain` and the plan tests."""
    return _RECOVER[work.table]
