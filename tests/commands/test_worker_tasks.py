"""One external task by its id, for programs that know no lease number: leased if it is free, changed only where its status allows it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import psycopg
import pytest

from engine.commands.outcome import Refusal, Rejected
from engine.commands.worker_tasks import TaskChanged, lock_external_task, set_priority, set_retries
from engine.db.session import connect
from tests import rows
from tests.cast import OP, engage
from tests.rows import columns, everything, one

Connection = psycopg.Connection[Any]


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    engage(committed_db)
    return committed_db


def lock(conn: Connection, task: UUID) -> Any:
    return lock_external_task(conn, task, actor=OP, worker_id="w", lease_seconds=30)


@pytest.mark.parametrize(
    "busy",
    [
        {"held": ["paused"]},
        {"status": "failed", "attempts": 3},
        {"overdue": -60.0},
        {"attempts": 3, "max_attempts": 3},
    ],
    ids=["held", "failed", "not due", "without an attempt"],
)
def test_R2_one_that_is_not_free_is_not_leased(conn: Connection, busy: dict[str, Any]) -> None:
    task = rows.external_task(conn, **busy)
    before = everything(conn)
    refused = lock(conn, task)
    assert isinstance(refused, Rejected) and refused.refusal is Refusal.LEASE_LOST
    assert everything(conn) == before


def test_R2_one_whose_row_somebody_has_is_left_alone_at_once(conn: Connection, database_url: str) -> None:
    task = rows.external_task(conn)
    conn.execute("SET lock_timeout = '3s'")
    with connect(database_url) as other, other.transaction():
        other.execute("SELECT 1 FROM external_task WHERE id = %s FOR UPDATE", (task,))
        refused = lock(conn, task)
    assert isinstance(refused, Rejected) and refused.refusal is Refusal.LEASE_LOST
    assert lock(conn, task) == TaskChanged(task)
    assert columns(conn, "external_task", task, "status", "lease_owner", "lease_number", "attempts") == ("leased", "w", 1, 1)


def test_retries_of_one_that_failed_let_it_go_on(conn: Connection) -> None:
    task = rows.external_task(conn, status="failed", attempts=3, max_attempts=3)
    rows.insert(conn, "incident", kind="failed", message="?", instance_id=columns(conn, "external_task", task, "instance_id")[0],
                external_task_id=task)  # fmt: skip
    assert set_retries(conn, task, actor=OP, retries=2) == TaskChanged(task)
    assert columns(conn, "external_task", task, "status", "attempts", "max_attempts") == ("available", 3, 5)
    assert one(conn, "SELECT count(*) FROM incident") == 0


def test_one_that_has_ended_is_changed_by_nobody_and_no_audit_says_so(conn: Connection) -> None:
    task = rows.external_task(conn)
    conn.execute("INSERT INTO history (at, kind, item_id, actor) VALUES (baton_clock(), 'external_task_completed', %s, 'w')", (task,))
    conn.execute("DELETE FROM external_task WHERE id = %s", (task,))
    before = everything(conn)
    for refused in (set_priority(conn, task, actor=OP, priority=9), set_retries(conn, task, actor=OP, retries=2)):
        assert isinstance(refused, Rejected) and refused.refusal in (Refusal.NOT_FOUND, Refusal.LEASE_LOST)
    assert everything(conn) == before
    other = replace(OP, tenant_id="acme")
    assert set_priority(conn, rows.external_task(conn), actor=other, priority=9) == Rejected(Refusal.NOT_FOUND)
