"""A web server that is told to stop, and a database that throws everybody out: nobody's press is lost, nobody listens in vain."""

from __future__ import annotations

import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import UUID

import httpx
import psycopg
import pytest

from engine.db.session import connect
from tests import rows
from tests.cli.processes import Person
from tests.web.conftest import PASSWORD
from tests.web.processes import WebProcess
from tests.worker.processes import eventually

WAITING = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    " AND application_name = 'baton-web'"
)


@pytest.mark.slow
def test_F39_a_web_server_that_stops_ends_its_live_streams_at_once_and_answers_what_was_asked(
    database_url: str, committed_db: psycopg.Connection, people: dict[str, UUID], tmp_path: Path
):
    task = rows.task(committed_db, groups=("clerks",))
    with WebProcess(database_url, tmp_path / "web.log") as web, connect(database_url) as other, ThreadPoolExecutor(1) as pool:
        web.ready()
        ada = Person(web.url, "ada", PASSWORD)
        page = ada.get(f"/tasks/{task}").text
        ended = threading.Event()
        with ada.stream("GET", "/live?topics=inbox", timeout=60) as stream:
            assert stream.status_code == 200, stream.read()

            def listen() -> None:
                for _ in stream.iter_bytes():
                    pass
                ended.set()

            listening = threading.Thread(target=listen, daemon=True)
            listening.start()
            other.execute("BEGIN")
            other.execute("SELECT 1 FROM user_task FOR UPDATE")
            fields = {"csrf_token": ada.token_in(page), "request_id": "one"}
            bo = httpx.Client(base_url=web.url, cookies=ada.cookies, trust_env=False, timeout=60)
            press = pool.submit(bo.post, f"/tasks/{task}/claim", data=fields)
            eventually(lambda: other.execute(WAITING).fetchone() == (1,), "the press to wait for the row")
            web.process.send_signal(signal.SIGTERM)
            assert ended.wait(15), "a stream that listens would hold the server up"
            assert not press.done() and web.process.poll() is None
            other.execute("COMMIT")
            assert press.result(30).status_code == 303
        assert web.process.wait(40) == 0
    assert committed_db.execute("SELECT assignee FROM user_task").fetchone() == ("ada",)
    assert "Traceback" not in web.text()


def test_F45_the_first_press_after_the_database_threw_everybody_out_is_done(committed_db: psycopg.Connection, client_for):
    tasks = [rows.task(committed_db, groups=("clerks",)) for _ in range(2)]
    ada = client_for("ada")
    for task in tasks:
        ada.get(f"/tasks/{task}")
        committed_db.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE application_name = 'baton-web' AND datname = current_database()"
        )
        assert ada.post(f"/tasks/{task}/claim", {"request_id": str(task)}).status_code == 303
    assert committed_db.execute("SELECT DISTINCT assignee FROM user_task").fetchall() == [("ada",)]
