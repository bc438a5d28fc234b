"""What nobody would notice until it hurts: the alarms, read in one statement, the same for the overview, the log and the API.

An alarm is about the whole server or database, not about one tenant's cases. What other roles do is seen only by a role that may
(`GRANT pg_read_all_stats`); what is not seen raises no alarm.
"""

from __future__ import annotations

from dataclasses import dataclass

EXPIRED_SECONDS = 60  # a lease that ended so long ago should have been taken back: any worker that lives looks every few seconds
SNAPSHOT_SECONDS = 300  # a transaction so old keeps every row that was consumed since then from vacuum
BEHIND_TRANSACTIONS = 10_000_000  # of a slot or a standby, whose age is told in transactions alone


@dataclass(frozen=True, slots=True)
class Alarm:
    """`name`: expired_lease | old_snapshot | invalid_index | missing_partition. `about`: which; `seconds`: how old, if it has an age."""

    name: str
    about: str
    seconds: float | None


_OLDEST_LEASES = ", ".join(
    f"(SELECT min(lease_expires_at) FROM {table} WHERE status = 'leased')" for table in ("job", "external_task", "delivery")
)

ALARMS = f"""
SELECT 'expired_lease' AS name, '' AS about, extract(epoch FROM baton_now() - oldest.at)::float8 AS seconds
FROM (SELECT least({_OLDEST_LEASES}) AS at) oldest WHERE oldest.at < baton_now() - interval '{EXPIRED_SECONDS} seconds'
UNION ALL
(SELECT 'old_snapshot', format('process %s, %s, %s', pid, coalesce(nullif(application_name, ''), usename), state),
        extract(epoch FROM baton_now() - xact_start)::float8
 FROM pg_stat_activity
 WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type <> 'autovacuum worker' AND query !~* '^ *vacuum'
   AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL) AND xact_start < baton_now() - interval '{SNAPSHOT_SECONDS} seconds'
 ORDER BY xact_start LIMIT 3)
UNION ALL
SELECT 'old_snapshot', format('prepared transaction %s', gid), extract(epoch FROM baton_now() - prepared)::float8
FROM pg_prepared_xacts WHERE database = current_database() AND prepared < baton_now() - interval '{SNAPSHOT_SECONDS} seconds'
UNION ALL
SELECT 'old_snapshot', format('replication slot %s', slot_name), NULL
FROM pg_replication_slots WHERE greatest(age(xmin), age(catalog_xmin)) > {BEHIND_TRANSACTIONS}
UNION ALL
SELECT 'old_snapshot', format('standby %s', application_name), NULL
FROM pg_stat_replication WHERE age(backend_xmin) > {BEHIND_TRANSACTIONS}
UNION ALL
SELECT 'invalid_index', c.relname::text, NULL
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE NOT i.indisvalid AND c.relnamespace = 'public'::regnamespace
  AND NOT EXISTS (SELECT FROM pg_stat_progress_create_index p WHERE p.index_relid = i.indexrelid)
UNION ALL
SELECT 'missing_partition', month.name, NULL
FROM (SELECT 'history_' || to_char((baton_now() + interval '14 days') AT TIME ZONE 'UTC', 'YYYY_MM') AS name) month
WHERE to_regclass(month.name) IS NULL
"""
