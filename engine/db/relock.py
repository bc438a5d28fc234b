"""The lock after a look: with all that the step may need if the case has moved since, in the one call that is left for it.

A command that has read, and missed with its write or looked for what it calls, has two calls left: the lock and the write. So the lock
brings the whole case if that is little (baton_lock_moved_case.sql), and what the process may call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import psycopg

from engine.core.known import Call, Decidable, DecisionCall, NotDecidable
from engine.db import called, decisions
from engine.db.called import Means
from engine.db.load import Loaded, case_in
from engine.db.session import cursor_of

_LOCK = "SELECT baton_lock_moved_case(%(kind)s, %(leaf_id)s, %(seen)s) AS document"
_FINDING = f"""
WITH locked AS MATERIALIZED ({_LOCK}),
process AS ({called.FIND}),
decision AS ({decisions.FIND})
SELECT document, NULL::text, NULL::bigint, NULL::uuid, NULL::int, NULL::text, NULL::bytea, NULL::text, NULL::jsonb FROM locked
UNION ALL SELECT NULL, 'process', p.place, p.id, p.version, p.status, p.xml, p.resource_name, NULL FROM process p
UNION ALL SELECT NULL, 'decision', d.place, d.id, d.version, NULL, d.xml, d.resource_name, d.members FROM decision d
"""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a command read before: the revision of the root. `calls`, `decisions`: what to find with the lock.

    The latter are read from before the wait for the lock: the write compares what is called, and a decision never changes.
    """

    tenant_id: str
    revision: int
    calls: Sequence[Call] = ()
    decisions: Sequence[DecisionCall] = ()


@dataclass(frozen=True, slots=True)
class Relocked:
    """The case under its lock, and what was found with it."""

    case: Loaded | None
    calls: Means = field(default_factory=dict)
    decisions: dict[DecisionCall, Decidable | NotDecidable] = field(default_factory=dict)


def lock_moved_case(conn: psycopg.Connection[Any], kind: str, leaf_id: UUID, *, seen: Seen) -> Relocked:
    """Lock the root, then the leaf, then read. Inside a transaction that the caller opened."""
    parameters: dict[str, Any] = {"kind": kind, "leaf_id": leaf_id, "seen": seen.revision}
    if not seen.calls and not seen.decisions:
        return Relocked(_case(cursor_of(conn).execute(_LOCK, parameters).fetchone()[0], kind, leaf_id))
    asked, kept = decisions.asking(seen.decisions)
    parameters |= {"tenant_id": seen.tenant_id, **called.asked(seen.calls), **asked}
    (document, *_), *rows = cursor_of(conn).execute(_FINDING, parameters).fetchall()
    processes = [row[2:8] for row in rows if row[1] == "process"]
    decided = [
        (place, row_id, version, resource, xml, members)
        for _, what, place, row_id, version, _, xml, resource, members in rows
        if what == "decision"
    ]
    return Relocked(
        _case(document, kind, leaf_id),
        called.found(conn, seen.tenant_id, seen.calls, processes),
        decisions.found(seen.decisions, kept, decided),
    )


def _case(document: Any, kind: str, leaf_id: UUID) -> Loaded | None:
    return case_in((document["case"],), kind, leaf_id, document["whole"])
