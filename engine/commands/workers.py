"""The register of workers: who lives, where, what it can run; and from where programs outside ask.

It informs people; no lease depends on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson

from engine.commands.transaction import Connection, command


@dataclass(frozen=True, slots=True)
class Beat:
    """What a worker says about itself. `acquired`: it has looked for work successfully since the last beat."""

    id: UUID
    host: str
    pid: int
    version: str
    slots: int
    busy: int
    kinds: Sequence[Sequence[str]]
    draining: bool = False
    acquired: bool = False
    longest_gap: float = 0.0  # between two renewals of one lease, as a part of it


# An upsert: after a long outage somebody else's upkeep may have removed the row of a worker that lives.
_BEAT = """
WITH beat AS (
  INSERT INTO worker AS w (id, host, pid, version, slots, busy, kinds, draining, longest_gap, last_acquired_at, started_at, heartbeat_at)
  VALUES (%(id)s, %(host)s, %(pid)s, %(version)s, %(slots)s, %(busy)s, %(kinds)s::jsonb, %(draining)s, %(longest_gap)s,
          CASE WHEN %(acquired)s THEN baton_clock() END, baton_clock(), baton_clock())
  ON CONFLICT ON CONSTRAINT pk_worker DO UPDATE
  SET busy = excluded.busy, draining = excluded.draining, longest_gap = excluded.longest_gap,
      heartbeat_at = excluded.heartbeat_at, stopped_at = NULL,
      last_acquired_at = coalesce(excluded.last_acquired_at, w.last_acquired_at)
)
SELECT count(*) FROM worker
WHERE stopped_at IS NULL AND heartbeat_at > baton_now() - make_interval(secs => %(alive_seconds)s) AND id <> %(id)s
"""


@command
def beat(conn: Connection, said: Beat, *, alive_seconds: float) -> int:
    """Register a worker or say that it still lives; returns how many live, this one included.

    Locks: its own row of `worker`. Refuses: nothing.
    """
    values: dict[str, Any] = {
        "id": said.id,
        "host": said.host,
        "pid": said.pid,
        "version": said.version,
        "slots": said.slots,
        "busy": said.busy,
        "kinds": orjson.dumps([list(kind) for kind in said.kinds]).decode(),
        "draining": said.draining,
        "acquired": said.acquired,
        "longest_gap": said.longest_gap,
        "alive_seconds": alive_seconds,
    }
    row = conn.execute(_BEAT, values).fetchone()
    assert row is not None
    return int(row[0]) + 1


@command
def stopped(conn: Connection, worker_id: UUID) -> None:
    """Note that a worker has ended of its own will.

    Locks: its row of `worker`. Refuses: nothing; a row that is gone is fine.
    """
    conn.execute("UPDATE worker SET stopped_at = baton_clock(), busy = 0, draining = false WHERE id = %s", (worker_id,))


_SEE = """
INSERT INTO external_worker (tenant_id, worker_id, address) VALUES (%(tenant_id)s, %(worker_id)s, %(address)s)
ON CONFLICT ON CONSTRAINT pk_external_worker DO UPDATE SET last_seen_at = baton_clock()
"""


@command
def see_external_worker(conn: Connection, worker_id: str, *, tenant_id: str, address: str) -> None:
    """A program that acquires external tasks has asked under this name from this address.

    Locks: its own row of `external_worker`. Refuses: nothing.
    """
    conn.execute(_SEE, {"tenant_id": tenant_id, "worker_id": worker_id, "address": address})
