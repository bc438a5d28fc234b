"""What a worker acquired ahead of its slots, when these turn out to be slow: nobody waits for them and no attempt is spent."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg

from tests import rows
from tests.worker.processes import WorkerProcess, eventually, row, worker
from worker.slots import MOST_AHEAD

Connection = psycopg.Connection[Any]


def practised(conn: Connection, process: WorkerProcess) -> None:
    """Let it learn that items take no time."""
    jobs = [rows.job(conn, topic="test.fails", max_attempts=1) for _ in range(80)]
    process.says("job_failed", times=len(jobs))


def slow_then_quick(conn: Connection, folder: Path) -> list[UUID]:
    """Two items that hang, and behind them, at once, some that would take no time; returns these."""
    inputs = psycopg.types.json.Jsonb({"inputs": {"folder": {"type": "string", "value": str(folder)}}})
    with conn.transaction():
        for _ in range(2):
            rows.job(conn, topic="test.waits", payload=inputs, overdue=60)
        quick = [rows.job(conn, topic="test.fails", max_attempts=1) for _ in range(MOST_AHEAD)]
    eventually(lambda: len(list(folder.glob("running-*"))) == 2, "both slow handlers to run")
    return quick


def states(conn: Connection, jobs: list[UUID]) -> set[tuple[Any, ...]]:
    return {rows.columns(conn, "job", job, "status", "attempts") for job in jobs}


def test_what_waits_behind_slow_handlers_is_handed_back_unspent_and_others_run_it(database_url, committed_db, tmp_path):
    with worker(database_url, tmp_path) as process:
        practised(committed_db, process)
        quick = slow_then_quick(committed_db, tmp_path)
        eventually(lambda: states(committed_db, quick) == {("available", 0)}, "what waits to be handed back")
        assert row(committed_db, "SELECT count(*) FROM job WHERE id = ANY (%s) AND lease_number > 0", quick)[0] > 0, "some were leased"
        assert "reason=waited" in process.lines("job_not_started")[-1]
        with worker(database_url, tmp_path, "other"):
            eventually(lambda: states(committed_db, quick) == {("failed", 1)}, "the other worker to run them")
        (tmp_path / "go").touch()


def test_R5_a_worker_that_drains_hands_back_at_once_what_no_slot_has_begun(database_url, committed_db, tmp_path):
    with worker(database_url, tmp_path) as process:
        practised(committed_db, process)
        quick = slow_then_quick(committed_db, tmp_path)
        process.signal(15)
        eventually(lambda: states(committed_db, quick) == {("available", 0)}, "what waits to be handed back")
        assert process.process.poll() is None, "it lets what runs come to its end"
        (tmp_path / "go").touch()
        assert process.died() == 0
