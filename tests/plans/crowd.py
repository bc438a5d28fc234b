"""Rows by the hundred thousand, as the engine would have left them: consumed, paused, held, later, and a few that are due.

`BATON_PLAN_ROWS` says how many stand in front (30,000 in the suite; 1,000,000 for the figure in docs/performance.md).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import psycopg

ROWS = int(os.environ.get("BATON_PLAN_ROWS", "30000"))
LIVE = 5_000
Connection = psycopg.Connection[Any]

CASE = """
INSERT INTO deployment (id, deployed_by) VALUES ('00000000-0000-0000-0000-000000000001', 'op');
INSERT INTO process_definition (id, key, version, name, deployment_id, resource_name, content_hash, xml)
  VALUES ('00000000-0000-0000-0000-000000000002', 'crowd', 1, 'Crowd', '00000000-0000-0000-0000-000000000001', 'crowd.bpmn', '', '');
INSERT INTO process_instance (id, root_id, definition_id, started_by) VALUES
  ('00000000-0000-0000-0000-000000000003', '00000000-0000-0000-0000-000000000003', '00000000-0000-0000-0000-000000000002', 'op');
INSERT INTO scope (id, instance_id, path)
  VALUES ('00000000-0000-0000-0000-000000000004', '00000000-0000-0000-0000-000000000003',
    ARRAY['00000000-0000-0000-0000-000000000004'::uuid]);
INSERT INTO token (id, instance_id, root_id, scope_id, element_id)
  VALUES ('00000000-0000-0000-0000-000000000005', '00000000-0000-0000-0000-000000000003',
    '00000000-0000-0000-0000-000000000003',
          '00000000-0000-0000-0000-000000000004', 'work');
INSERT INTO person (id, username, display_name, sort_key, role) VALUES (gen_random_uuid(), 'ada', 'Ada Moreno', 'ada moreno', 'user');
"""
DEFINITION = "'00000000-0000-0000-0000-000000000002'::uuid"
INSTANCE = "'00000000-0000-0000-0000-000000000003'::uuid"
TOKEN = "'00000000-0000-0000-0000-000000000005'::uuid"

# Columns that every row of one table shares, and their values; `topic` is the column that groups its index.
ITEM = ("instance_id, root_id, definition_id, token_id, element_id", f"{INSTANCE}, {INSTANCE}, {DEFINITION}, {TOKEN}, 'work'")
WORK = {
    "job": ("topic", f"kind, {ITEM[0]}", f"'service', {ITEM[1]}"),
    "external_task": ("topic", *ITEM),
    "delivery": ("kind", "destination, instance_id, request", f"'d', {INSTANCE}, '{{}}'"),
}
BRANCH = {"job": ("service", "score"), "external_task": ("", "score"), "delivery": ("http", "")}

# As engine.ids makes them: the time first (RFC 9562, 5.7), so that what was made together lies together in an index.
NEW_ID = (
    "(lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0') || '7' || substr(md5(random()::text), 1, 3)"
    " || '8' || substr(md5(random()::text), 1, 15))::uuid"
)
OLD = "baton_clock() - interval '20 days' + g * interval '1 ms'"
LATER = "baton_clock() + interval '1 day' + g * interval '1 ms'"
NOW = "baton_clock() - interval '2 minutes' + g * interval '1 ms'"


def a_case(conn: Connection) -> None:
    """One instance that all rows belong to."""
    conn.execute(CASE)


def work_rows(conn: Connection, table: str, n: int, *, at: str, more: str = "", values: str = "", other: str = "") -> None:
    """`n` rows of durable work at the times `at`; `more` and `values`: further columns; `other`: of another topic (or kind)."""
    grouped, columns, shared = WORK[table]
    topic = other or ("http" if table == "delivery" else "score")
    more, values = f", {more}" if more else "", f", {values}" if values else ""
    conn.execute(
        f"INSERT INTO {table} (id, {grouped}, {columns}, max_attempts, due_at, available_at {more})"
        f" SELECT {NEW_ID}, '{topic}', {shared}, 3, {at}, {at} {values} FROM generate_series(1, {int(n)}) g"
    )


def in_front(conn: Connection, table: str, case: str) -> None:
    """ROWS rows that acquisition must not wade through."""
    match case:
        case "consumed":
            work_rows(conn, table, ROWS, at=OLD)
            _consume(conn, f"DELETE FROM {table} WHERE id IN (SELECT id FROM {table} ORDER BY available_at LIMIT %s)")
        case "held":
            work_rows(conn, table, ROWS, at=OLD, more="held", values="'{suspended}'")
        case "later":
            work_rows(conn, table, ROWS, at=LATER)
        case "backing off":
            work_rows(conn, table, ROWS, at=LATER, more="attempts, last_error", values="1, 'refused'")
        case "paused":
            work_rows(conn, table, ROWS, at=OLD, other="mail" if table == "delivery" else "stopped")
            kind, topic = {"job": ("service", "stopped"), "external_task": ("external_task", "stopped"), "delivery": ("mail", "")}[table]
            conn.execute("INSERT INTO pause (kind, topic, paused_by) VALUES (%s, %s, 'op')", (kind, topic))
        case _:
            raise ValueError(case)


def leased_rows_in_front(conn: Connection, table: str) -> None:
    """ROWS rows whose lease expired and which somebody has recovered since, without a vacuum."""
    work_rows(
        conn, table, ROWS, at=OLD,
        more="status, lease_owner, lease_number, leased_at, lease_expires_at, attempts",
        values="'leased', 'gone', 1, baton_clock() - interval '20 days', baton_clock() - interval '20 days' + g * interval '1 ms', 1",
    )  # fmt: skip
    _consume(conn, f"DELETE FROM {table} WHERE id IN (SELECT id FROM {table} WHERE status = 'leased' ORDER BY lease_expires_at LIMIT %s)")


def _consume(conn: Connection, statement: str, batch: int = 50_000) -> None:
    left = ROWS
    while left > 0:
        conn.execute(statement, (min(batch, left),))
        left -= batch


def empty(conn: Connection, *tables: str) -> None:
    """A table as new: the small measurement leaves nothing that the large one would meet."""
    conn.execute(f"TRUNCATE {', '.join(tables)} CASCADE")


def without_vacuum(conn: Connection) -> None:
    """Autovacuum off for the hot tables of this database: what was consumed stays in the indexes."""
    for table in ("job", "external_task", "delivery", "user_task", "inbox_entry", "process_instance", "token"):
        conn.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")


def task_rows(conn: Connection, n: int, *, at: str, groups: int = 1) -> None:
    """`n` open tasks, spread over `groups` groups: clerks0, clerks1, …"""
    conn.execute(
        "WITH t AS (INSERT INTO user_task"
        " (id, instance_id, root_id, definition_id, element_id, name, sort_key, candidate_groups, created_at)"
        f" SELECT {NEW_ID}, {INSTANCE}, {INSTANCE}, {DEFINITION}, 'check', 'Check', 'check', ARRAY['clerks' || g % {int(groups)}],"
        f" {at}"
        f" FROM generate_series(1, {int(n)}) g RETURNING id, created_at, candidate_groups)"
        " INSERT INTO inbox_entry (task_id, kind, name, created_at) SELECT id, 'group', candidate_groups[1], created_at FROM t"
    )


def finish_tasks(conn: Connection) -> None:
    """Complete every open task, as the engine does."""
    conn.execute("DELETE FROM inbox_entry")
    conn.execute("UPDATE user_task SET status = 'completed', ended_at = baton_clock(), ended_by = 'bo', assignee = 'bo'")


def fill(conn: Connection, *steps: Callable[[], None]) -> None:
    """Run the steps with settings that make bulk loading quick, then ANALYZE."""
    conn.execute("SET synchronous_commit = off")
    for step in steps:
        step()
    conn.execute("ANALYZE")
