"""What is due now, lane by lane, without wading: a lane is one (kind, topic, level) of one table of durable work.

The lanes are found by hopping through the acquisition index (a loose scan), so a million future or backing-off rows
cost nothing; within a lane the index is ordered by `available_at`, so the first row is the oldest.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from engine.queries.rows import CAP, rows


@dataclass(frozen=True, slots=True)
class Lane:
    """`work`: job | external_task | delivery. `kind`: of the job or delivery; `topic`: handler or topic."""

    work: str
    kind: str
    topic: str
    due: int
    oldest_at: datetime
    oldest_seconds: float


def lanes(conn: Connection, *, tenant_id: str = "") -> list[Lane]:
    """Every lane with something due, the longest waiting first."""
    return rows(conn, Lane, LANES, {"tenant": tenant_id, "cap": CAP + 1})


LANES = """
WITH RECURSIVE
job_lane AS (
  (SELECT kind, topic, level FROM job WHERE status = 'available' AND held = '{}' ORDER BY kind, topic, level LIMIT 1)
  UNION ALL
  SELECT next.kind, next.topic, next.level FROM job_lane AS here CROSS JOIN LATERAL (
    SELECT kind, topic, level FROM job
     WHERE status = 'available' AND held = '{}' AND (kind, topic, level) > (here.kind, here.topic, here.level)
     ORDER BY kind, topic, level LIMIT 1) AS next
),
task_lane AS (
  (SELECT topic, level FROM external_task WHERE status = 'available' AND held = '{}' AND tenant_id = :tenant
    ORDER BY topic, level LIMIT 1)
  UNION ALL
  SELECT next.topic, next.level FROM task_lane AS here CROSS JOIN LATERAL (
    SELECT topic, level FROM external_task
     WHERE status = 'available' AND held = '{}' AND tenant_id = :tenant AND (topic, level) > (here.topic, here.level)
     ORDER BY topic, level LIMIT 1) AS next
),
delivery_lane AS (
  (SELECT kind, level FROM delivery WHERE status = 'available' AND held = '{}' ORDER BY kind, level LIMIT 1)
  UNION ALL
  SELECT next.kind, next.level FROM delivery_lane AS here CROSS JOIN LATERAL (
    SELECT kind, level FROM delivery
     WHERE status = 'available' AND held = '{}' AND (kind, level) > (here.kind, here.level)
     ORDER BY kind, level LIMIT 1) AS next
),
found AS (
  SELECT 'job' AS work, lane.kind, lane.topic, seen.due, seen.oldest_at FROM job_lane AS lane CROSS JOIN LATERAL (
    SELECT count(*) AS due, min(available_at) AS oldest_at FROM (
      SELECT available_at FROM job
       WHERE status = 'available' AND held = '{}' AND kind = lane.kind AND topic = lane.topic AND level = lane.level
         AND tenant_id = :tenant AND available_at <= baton_now()
       ORDER BY available_at LIMIT :cap) AS front) AS seen
  UNION ALL
  SELECT 'external_task', '', lane.topic, seen.due, seen.oldest_at FROM task_lane AS lane CROSS JOIN LATERAL (
    SELECT count(*) AS due, min(available_at) AS oldest_at FROM (
      SELECT available_at FROM external_task
       WHERE status = 'available' AND held = '{}' AND tenant_id = :tenant AND topic = lane.topic AND level = lane.level
         AND available_at <= baton_now()
       ORDER BY available_at LIMIT :cap) AS front) AS seen
  UNION ALL
  SELECT 'delivery', lane.kind, '', seen.due, seen.oldest_at FROM delivery_lane AS lane CROSS JOIN LATERAL (
    SELECT count(*) AS due, min(available_at) AS oldest_at FROM (
      SELECT available_at FROM delivery
       WHERE status = 'available' AND held = '{}' AND kind = lane.kind AND level = lane.level
         AND tenant_id = :tenant AND available_at <= baton_now()
       ORDER BY available_at LIMIT :cap) AS front) AS seen
)
SELECT work, kind, topic, sum(due)::int AS due, min(oldest_at) AS oldest_at,
       extract(epoch FROM baton_now() - min(oldest_at))::float AS oldest_seconds
  FROM found WHERE due > 0
 GROUP BY work, kind, topic
 ORDER BY oldest_at, work, kind, topic
"""
