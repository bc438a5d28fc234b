"""Exclusive work through real workers: what the handlers themselves saw of one another."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg

from tests.worker.models import chain, deployed, service, started
from tests.worker.processes import eventually, row, worker

Connection = psycopg.Connection[Any]


def many(conn: Connection, handler: str, folder: Path, *, count: int, exclusive: str = "true") -> UUID:
    """A case with so many instances of one activity, all at once."""
    each = f"<multiInstanceLoopCharacteristics><loopCardinality>{count}</loopCardinality></multiInstanceLoopCharacteristics></serviceTask>"
    work = service("work", handler, {"folder": folder}, exclusive=exclusive).replace("</serviceTask>", each)
    deployed(conn, "many", chain("many", work))
    return started(conn, "many")


def completed(conn: Connection, case: UUID) -> None:
    eventually(
        lambda: row(conn, "SELECT status = 'completed' FROM process_instance WHERE id = %s", case)[0], "the case to complete", seconds=60
    )


def test_F20_twenty_exclusive_items_of_a_case_and_two_workers_never_run_two_at_once(database_url, committed_db, tmp_path):
    case = many(committed_db, "test.alone", tmp_path, count=20)
    with worker(database_url, tmp_path, "one"), worker(database_url, tmp_path, "two"):
        completed(committed_db, case)
    seen = [line.split() for line in (tmp_path / "seen").read_text().splitlines()]
    assert [line[0] for line in seen] == ["alone"] * 20
    assert len({key for _, key, *_ in seen}) == 20


def test_without_the_word_they_run_side_by_side(database_url, committed_db, tmp_path):
    """The test above would see it: two handlers that wait for a file are both inside."""
    case = many(committed_db, "test.waits", tmp_path, count=2, exclusive="false")
    with worker(database_url, tmp_path):
        eventually(lambda: len(list(tmp_path.glob("running-*"))) == 2, "two handlers at once")
        (tmp_path / "go").touch()
        completed(committed_db, case)


def test_F20_F21_the_item_whose_worker_is_killed_keeps_its_turn_and_nothing_is_stuck(database_url, committed_db, tmp_path):
    case = many(committed_db, "test.waits", tmp_path, count=3)
    with worker(database_url, tmp_path, "one") as one, worker(database_url, tmp_path, "two") as two:
        eventually(lambda: list(tmp_path.glob("running-*-1")), "a handler to run")
        (item,) = row(committed_db, "SELECT id FROM job WHERE status = 'leased'")
        (pid,) = row(committed_db, "SELECT w.pid FROM job j JOIN worker w ON w.id::text = j.lease_owner WHERE j.id = %s", item)
        assert pid in (one.pid, two.pid)
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: (tmp_path / f"running-{item}-2").exists(), "the same item in its next attempt")
        assert sorted(path.name for path in tmp_path.glob("running-*")) == [f"running-{item}-1", f"running-{item}-2"]
        (tmp_path / "go").touch()
        completed(committed_db, case)
    assert len(list(tmp_path.glob("running-*"))) == 4
