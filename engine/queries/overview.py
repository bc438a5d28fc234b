"""The operations overview: every number on it, each capped, and the throughput of the last day."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from engine.db.workers import SILENT_AFTER_SECONDS
from engine.queries.due import Lane, lanes
from engine.queries.rows import CAP, capped, rows


@dataclass(frozen=True, slots=True)
class Numbers:
    """What one statement counts. Each stops at CAP + 1."""

    running: int
    started_today: int
    tasks: int
    tasks_overdue: int
    leased: int
    expired: int
    expired_oldest_seconds: float | None
    failed: int
    incidents: int
    incident_instances: int
    late_refusals: int
    deliveries_waiting: int
    workers: int
    workers_alive: int
    failed_logins: int
    now: datetime


@dataclass(frozen=True, slots=True)
class Overview:
    """The whole page: numbers, and what is due by lane (the longest waiting first)."""

    numbers: Numbers
    lanes: tuple[Lane, ...]

    def _of(self, *work: str) -> list[Lane]:
        return [lane for lane in self.lanes if lane.work in work]

    @property
    def due(self) -> int:
        """Jobs and external tasks that are due and not leased."""
        return sum(lane.due for lane in self._of("job", "external_task"))

    @property
    def oldest_due_seconds(self) -> float | None:
        return max((lane.oldest_seconds for lane in self._of("job", "external_task")), default=None)

    @property
    def outbox_lag_seconds(self) -> float | None:
        return max((lane.oldest_seconds for lane in self._of("delivery")), default=None)


def overview(conn: Connection, *, tenant_id: str = "") -> Overview:
    """Everything that the overview shows except the chart."""
    [numbers] = rows(conn, Numbers, NUMBERS, {"tenant": tenant_id})
    return Overview(numbers, tuple(lanes(conn, tenant_id=tenant_id)))


@dataclass(frozen=True, slots=True)
class Bucket:
    """A slice of time: steps that ended well, attempts that failed and will be retried, items that used up all attempts."""

    at: datetime
    done: int
    retried: int
    exhausted: int


def throughput(conn: Connection, *, hours: int = 24, slices: int = 48, tenant_id: str = "") -> list[Bucket]:
    """`slices` buckets that end now, empty ones included, oldest first."""
    params = {"tenant": tenant_id, "hours": hours, "slices": slices, "seconds": hours * 3600 / slices}
    return rows(conn, Bucket, THROUGHPUT, params)


_LIVE = "status IN ('open', 'claimed')"
_WORK = ("job", "external_task", "delivery")


def _over_work(what: str) -> str:
    """The same count over the three tables of durable work, together capped."""
    return capped(" UNION ALL ".join(f"(SELECT 1 FROM {table} WHERE {what} LIMIT {CAP + 1})" for table in _WORK))


NUMBERS = f"""
SELECT
  {capped("SELECT 1 FROM process_instance WHERE tenant_id = :tenant AND status = 'running'")} AS running,
  {capped("SELECT 1 FROM process_instance WHERE tenant_id = :tenant AND started_at > baton_now() - interval '24 hours'")}
    AS started_today,
  live.tasks, live.tasks_overdue,
  {_over_work("tenant_id = :tenant AND status = 'leased'")} AS leased,
  {_over_work("tenant_id = :tenant AND status = 'leased' AND lease_expires_at < baton_now()")} AS expired,
  extract(epoch FROM baton_now() - least(
    (SELECT min(lease_expires_at) FROM job WHERE status = 'leased' AND lease_expires_at < baton_now() AND tenant_id = :tenant),
    (SELECT min(lease_expires_at) FROM external_task WHERE status = 'leased' AND lease_expires_at < baton_now() AND tenant_id = :tenant),
    (SELECT min(lease_expires_at) FROM delivery WHERE status = 'leased' AND lease_expires_at < baton_now() AND tenant_id = :tenant)
  ))::float AS expired_oldest_seconds,
  {_over_work("tenant_id = :tenant AND status = 'failed'")} AS failed,
  broken.incidents, broken.incident_instances,
  {capped("SELECT 1 FROM refusal WHERE tenant_id = :tenant AND at > baton_now() - interval '24 hours' AND reason = 'lease_lost'")}
    AS late_refusals,
  {capped("SELECT 1 FROM delivery WHERE tenant_id = :tenant AND status = 'available'")} AS deliveries_waiting,
  crew.workers, crew.workers_alive,
  {capped("SELECT 1 FROM login_attempt WHERE tenant_id = :tenant AND NOT succeeded AND at > baton_now() - interval '24 hours'")}
    AS failed_logins,
  baton_now() AS now
FROM (SELECT count(*) AS tasks, count(*) FILTER (WHERE due_at < baton_now()) AS tasks_overdue FROM
        (SELECT due_at FROM user_task WHERE tenant_id = :tenant AND {_LIVE} ORDER BY created_at LIMIT {CAP + 1}) AS seen) AS live,
     (SELECT count(*) AS incidents, count(DISTINCT instance_id) AS incident_instances FROM
        (SELECT instance_id FROM incident WHERE tenant_id = :tenant LIMIT {CAP + 1}) AS seen) AS broken,
     (SELECT count(*) AS workers,
             count(*) FILTER (WHERE heartbeat_at > baton_now() - make_interval(secs => {SILENT_AFTER_SECONDS})) AS workers_alive
        FROM worker WHERE stopped_at IS NULL) AS crew
"""

# `at` bounds the partitions, and the block range index within them. A failed item says in its event whether attempts are left.
THROUGHPUT = """
WITH span AS (SELECT baton_now() AS till, baton_now() - make_interval(hours => :hours) AS since),
counted AS (
  SELECT floor(extract(epoch FROM h.at - span.since) / :seconds)::int AS slice,
         count(*) FILTER (WHERE h.kind IN ('task_completed', 'job_completed', 'external_task_completed', 'delivery_completed',
                                           'timer_fired', 'message_correlated')) AS done,
         count(*) FILTER (WHERE h.kind IN ('job_failed', 'external_task_failed', 'delivery_failed')
                            AND h.data ->> 'status' IS DISTINCT FROM 'failed') AS retried,
         count(*) FILTER (WHERE h.kind IN ('job_failed', 'external_task_failed', 'delivery_failed')
                            AND h.data ->> 'status' = 'failed') AS exhausted
    FROM span, history AS h
   WHERE h.at >= baton_now() - make_interval(hours => :hours) AND h.tenant_id = :tenant
     AND h.kind IN ('task_completed', 'job_completed', 'external_task_completed', 'delivery_completed', 'timer_fired',
                    'message_correlated', 'job_failed', 'external_task_failed', 'delivery_failed')
   GROUP BY 1
)
SELECT span.since + make_interval(secs => n * :seconds) AS at,
       coalesce(done, 0)::int AS done, coalesce(retried, 0)::int AS retried, coalesce(exhausted, 0)::int AS exhausted
  FROM span CROSS JOIN generate_series(0, :slices - 1) AS n LEFT JOIN counted ON counted.slice = n
 ORDER BY n
"""
