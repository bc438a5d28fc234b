"""What happened in the last seconds, with who may hear of it. Read by the one tail of each web process."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

import psycopg
from psycopg.rows import dict_row

# The partition key bounds the scan; the task's row says who may see it, and holds no lock here.
RECENT = """
    SELECT h.id, extract(epoch FROM h.at)::float8 AS at, h.tenant_id, h.kind, h.instance_id, h.root_id,
      h.definition_id, h.item_id, i.started_by,
      coalesce(t.candidate_users, '{}') || ARRAY(SELECT x FROM unnest(ARRAY[t.assignee, t.ended_by,
        h.data ->> 'from', h.actor]) x WHERE x IS NOT NULL) AS people,
      coalesce(t.candidate_groups, '{}') AS groups
    FROM history h
    LEFT JOIN user_task t ON h.kind LIKE 'task!_%%' ESCAPE '!' AND t.id = h.item_id
    LEFT JOIN process_instance i ON i.id = h.instance_id
    WHERE h.at > baton_now() - make_interval(secs => %s)
    ORDER BY h.id DESC LIMIT %s
"""


@dataclass(frozen=True, slots=True)
class Change:
    """One history event, as much of it as a hint needs. `people` and `groups`: who may hear of a task."""

    id: int
    at: float  # seconds, of the database's clock
    tenant_id: str
    kind: str
    instance_id: UUID | None
    root_id: UUID | None
    definition_id: UUID | None
    item_id: UUID | None
    started_by: str | None
    people: frozenset[str]
    groups: frozenset[str]


def changes_since_seconds(conn: psycopg.Connection, seconds: float, *, limit: int = 5000) -> list[Change]:
    """Oldest first. Under more than `limit` events in that time the oldest are left out: a hint more or less is no harm."""
    with conn.cursor(row_factory=dict_row) as cursor:
        found = cursor.execute(RECENT, (seconds, limit)).fetchall()
    sets = ({"people": frozenset(row["people"]), "groups": frozenset(row["groups"])} for row in found)
    return [Change(**{**row, **both}) for row, both in zip(found, sets, strict=True)][::-1]
