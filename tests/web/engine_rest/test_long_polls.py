"""Long polls at a real server: who waits costs no thread and no connection, is called when there is work, and only if it is there."""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import psycopg
import pytest

from tests.web.operations import api_key, deployed, one, started
from tests.web.processes import WebProcess
from tests.worker.processes import eventually

MANY = 200
BODY = '{"workerId": "%s", "maxTasks": 1, "asyncResponseTimeout": %d, "topics": [{"topicName": "charging", "lockDuration": 60000}]}'
REQUEST = (
    "POST /engine-rest/external-task/fetchAndLock HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"
    "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
)


class Poller:
    """One client that has sent its fetch and waits for the answer."""

    def __init__(self, web: WebProcess, key: str, worker: str = "w", *, wait: int = 40_000) -> None:
        host, _, port = web.url.removeprefix("http://").partition(":")
        self.connection = socket.create_connection((host, int(port)), timeout=60)
        body = BODY % (worker, wait)
        self.connection.sendall((REQUEST % (key, len(body), body)).encode())

    def answer(self) -> str:
        """Everything up to the end of a JSON list."""
        read = b""
        while not read.rstrip().endswith(b"]"):
            more = self.connection.recv(65536)
            assert more, f"expected an answer, found the end after {read!r}"
            read += more
        return read.decode()

    def close(self) -> None:
        self.connection.close()


@pytest.fixture
def key(committed_db: psycopg.Connection, people: dict[str, UUID]) -> str:
    deployed(committed_db, "c7_external_task")
    return api_key(committed_db, "olga")


@pytest.fixture
def web(database_url: str, key: str, tmp_path: Path) -> Iterator[WebProcess]:
    with WebProcess(database_url, tmp_path / "web.log", web_threads="4", pool_size="3") as web:
        yield web.ready()
        assert "Traceback" not in web.text()


def waiting(web: WebProcess) -> int:
    """How many polls the server holds, by its own count."""
    for line in httpx.get(f"{web.url}/metrics", trust_env=False, timeout=20).text.splitlines():
        if line.startswith("baton_web_long_polls "):
            return int(float(line.split()[1]))
    return 0


def begin(conn: psycopg.Connection, amount: int = 1) -> UUID:
    return started(conn, "orders", amount=amount)


@pytest.mark.slow
def test_two_hundred_who_wait_take_no_thread_and_no_connection_and_others_are_answered(
    web: WebProcess, key: str, committed_db: psycopg.Connection
) -> None:
    pollers = [Poller(web, key, f"w{number}") for number in range(MANY)]
    eventually(lambda: waiting(web) == MANY, f"{MANY} to wait")
    threads = len(list(Path(f"/proc/{_worker(web)}/task").iterdir()))
    assert threads < 4 + 10, "expected those of the server alone"
    busy = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'baton-web' AND datname = current_database() AND state <> 'idle'"
    open_ones = busy.replace(" AND state <> 'idle'", "")
    assert one(committed_db, open_ones) <= 3, "the pool's"
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: httpx.get(f"{web.url}/login", trust_env=False, timeout=20).status_code, range(8)))
    assert answers == [200] * 8
    for _ in range(5):
        begin(committed_db)
    eventually(lambda: one(committed_db, "SELECT count(*) FROM external_task WHERE status = 'leased'") == 5, "five to have a task")
    eventually(lambda: waiting(web) == MANY - 5, "the others to wait on")
    owners = {row[0] for row in committed_db.execute("SELECT lease_owner FROM external_task").fetchall()}
    had = [poller for number, poller in enumerate(pollers) if f"w{number}" in owners]
    assert len(had) == 5
    assert all('"topicName":"charging"' in poller.answer() for poller in had)
    assert web.terminate() == 0, "a stop answers those who wait"
    rest = [poller for poller in pollers if poller not in had]
    assert all(poller.answer().rstrip().endswith("[]") for poller in rest)


def _worker(web: WebProcess) -> int:
    [child] = Path(f"/proc/{web.process.pid}/task/{web.process.pid}/children").read_text().split()
    return int(child)


@pytest.mark.slow
def test_a_client_that_has_gone_gets_no_task_and_the_next_one_does(web: WebProcess, key: str, committed_db: psycopg.Connection) -> None:
    gone = Poller(web, key, "gone")
    eventually(lambda: waiting(web) == 1, "it to wait")
    gone.close()
    eventually(lambda: waiting(web) == 0, "the server to notice")
    reset = Poller(web, key, "reset")
    eventually(lambda: waiting(web) == 1, "it to wait")
    reset.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    reset.close()
    eventually(lambda: waiting(web) == 0, "the server to notice a reset as well")
    begin(committed_db)
    there = Poller(web, key, "there")
    assert '"workerId":"there"' in there.answer()
    assert one(committed_db, "SELECT lease_owner || attempts FROM external_task") == "there1"


@pytest.mark.slow
def test_a_poll_is_answered_in_time_and_its_connection_goes_on(web: WebProcess, key: str, committed_db: psycopg.Connection) -> None:
    with httpx.Client(base_url=f"{web.url}/engine-rest", headers={"Authorization": f"Bearer {key}"}, trust_env=False, timeout=60) as client:

        def fetch(wait: int, **more: Any) -> Any:
            topic = {"topicName": "charging", "lockDuration": 60_000, **more}
            return client.post(
                "/external-task/fetchAndLock", json={"workerId": "w", "maxTasks": 5, "asyncResponseTimeout": wait, "topics": [topic]}
            )

        assert fetch(300).json() == []
        assert fetch(300).json() == []
        begin(committed_db)
        [task] = fetch(20_000).json()
        assert client.post(f"/external-task/{task['id']}/complete", json={"workerId": "w"}).status_code == 204
        begin(committed_db, amount=7)
        assert fetch(300, processVariables={"amount": 8}).json() == []  # there is one, and none of those that are wanted
        assert len(fetch(300, processVariables={"amount": 7}).json()) == 1


@pytest.mark.slow
def test_one_whose_key_is_revoked_waits_no_more_and_takes_nobodys_room(web: WebProcess, key: str, committed_db: psycopg.Connection) -> None:
    poller = Poller(web, key)
    eventually(lambda: waiting(web) == 1, "it to wait")
    committed_db.execute("UPDATE api_key SET revoked_at = baton_clock()")
    begin(committed_db)
    eventually(lambda: waiting(web) == 0, "it to be refused")
    assert poller.connection.recv(4096).startswith(b"HTTP/1.1 401")
    assert one(committed_db, "SELECT status FROM external_task") == "available"


@pytest.mark.slow
def test_who_finds_no_room_is_answered_at_once(database_url: str, key: str, committed_db: psycopg.Connection, tmp_path: Path) -> None:
    with WebProcess(database_url, tmp_path / "web.log", long_polls="4") as web:
        web.ready()
        olga = [Poller(web, key) for _ in range(3)]
        eventually(lambda: waiting(web) == 2, "a half of them for one person")
        eventually(lambda: sum(map(_has_answer, olga)) == 1, "one to be turned away")
        committed_db.execute("UPDATE person SET role = 'operator'")
        others = [Poller(web, api_key(committed_db, name)) for name in ("ada", "bo", "cy")]
        eventually(lambda: waiting(web) == 4, "all of the room to be taken")
        eventually(lambda: sum(map(_has_answer, others)) == 1, "one to be turned away")


def _has_answer(poller: Poller) -> bool:
    return bool(select.select([poller.connection], [], [], 0)[0])
