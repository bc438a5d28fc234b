"""What handlers say while they run, from a real worker to the rows: soon, and through an outage of the database."""

from __future__ import annotations

import threading
from typing import Any

import psycopg

from engine.ids import new_id
from tests.worker.processes import eventually, row, worker
from tests.worker.test_worker import job, status
from worker.scribe import MOST_ATTEMPTS, Said, Scribe

Connection = psycopg.Connection[Any]


def test_what_a_handler_says_can_be_read_while_it_runs_and_after_it_failed(database_url, committed_db, tmp_path):
    gate = tmp_path / "gate"
    item = job(committed_db, "test.says_and_waits", inputs={"gate": gate}, max_attempts=1)
    lines = "SELECT array_agg(level || ' ' || text ORDER BY id) FROM attempt_line WHERE item_id = %s AND lease_number = 1"
    with worker(database_url, tmp_path):
        eventually(lambda: row(committed_db, lines, item)[0] == ["info begun"], "the first line while the handler runs")
        said = "SELECT progress, doing FROM attempt_report WHERE item_id = %s"
        eventually(lambda: row(committed_db, said, item) == (0.25, "waiting"), "its progress, which may be written a moment later")
        assert status(committed_db, item)[0] == "leased"
        gate.touch()
        eventually(lambda: status(committed_db, item)[0] == "failed", "the attempt to fail")
        eventually(lambda: row(committed_db, lines, item)[0] == ["info begun", "debug gone on"], "its last line")


def test_an_inline_handler_says_it_too_and_a_worker_that_stops_writes_what_was_said(database_url, committed_db, tmp_path):
    item = job(committed_db, "test.says_inline", max_attempts=1)
    with worker(database_url, tmp_path) as process:
        eventually(lambda: status(committed_db, item)[0] == "failed", "the attempt to fail")
        assert process.terminate() == 0
    assert row(committed_db, "SELECT text FROM attempt_line WHERE item_id = %s", item) == ("inline",)


class Gone:
    """A database that does not answer for as long as it is `away`."""

    def __init__(self, url: str) -> None:
        self.url, self.away, self.asked = url, threading.Event(), threading.Semaphore(0)
        self.away.set()

    def connection(self) -> Connection:
        self.asked.release()
        if self.away.is_set():
            raise psycopg.OperationalError("it is away")
        return psycopg.connect(self.url, autocommit=True)

    def drop(self) -> None:
        pass


class Row:
    def __init__(self, number: int = 1) -> None:
        self.item_id, self.number, self.tenant_id = new_id(), number, ""


def test_what_is_said_while_the_database_is_away_is_written_when_it_is_back_in_order(database_url, committed_db):
    database, of = Gone(database_url), Row()
    scribe = Scribe(database)  # type: ignore[arg-type]
    scribe.start()
    scribe.tell(of, {"log": "first", "level": "info"})  # type: ignore[arg-type]
    scribe.tell(of, {"progress": 0.1, "doing": "a"})  # type: ignore[arg-type]
    assert database.asked.acquire(timeout=20)
    scribe.tell(of, {"log": "second", "level": "error"})  # type: ignore[arg-type]
    database.away.clear()
    texts = "SELECT array_agg(text ORDER BY id) FROM attempt_line WHERE item_id = %s"
    eventually(lambda: row(committed_db, texts, of.item_id)[0] == ["first", "second"], "both lines, in order")
    assert row(committed_db, "SELECT progress, doing, lines FROM attempt_report WHERE item_id = %s", of.item_id)[1:] == ("a", 2)
    scribe.stop()


def test_an_outage_fills_no_memory():
    database = Gone("")
    scribe = Scribe(database)  # type: ignore[arg-type]
    for _ in range(MOST_ATTEMPTS + 50):
        scribe.tell(Row(), {"log": "x", "level": "info"})  # type: ignore[arg-type]
    assert len(scribe._unwritten) == MOST_ATTEMPTS
    scribe._write()
    assert len(scribe._unwritten) == MOST_ATTEMPTS
    said = Said(new_id(), 1, "")
    for _ in range(500):
        said.note({"log": "x", "level": "info"})
    said.after(said)
    assert (len(said.lines), said.more) == (200, 300 + 300 + 200)
