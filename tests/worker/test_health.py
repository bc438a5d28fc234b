"""A worker says whether it lives and whether it can work, and warns where connections may run out."""

from __future__ import annotations

import json
import signal
import socket
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
import psycopg
import pytest
from sqlalchemy.engine import make_url

from engine.config import Address, Settings
from engine.db.room import of_web, too_few
from engine.db.session import connect
from tests.cli.processes import free_port
from tests.releases.previous import THIS
from tests.web.processes import WebProcess
from tests.worker.processes import eventually, row, worker
from tests.worker.test_worker import job, status
from worker.health import MOST_AT_ONCE, Health
from worker.main import Worker
from worker.slots import Slots


def asked(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, json.load(answer)["status"]
    except urllib.error.HTTPError as refused:
        return refused.code, json.load(refused)["status"]


def test_a_worker_is_ready_once_it_has_looked_for_work_and_not_while_it_drains(database_url: str, committed_db, tmp_path: Path):
    port = free_port()
    job(committed_db, "test.waits", inputs={"folder": tmp_path})
    with worker(database_url, tmp_path, worker_listen=f"127.0.0.1:{port}", drain_seconds="30") as process:
        eventually(lambda: asked(port, "/health/ready") == (200, "ready"), "the worker to be ready")
        assert asked(port, "/health/live") == (200, "live")
        assert asked(port, "/metrics") == (404, "not found")
        eventually(lambda: list(tmp_path.glob("running-*")), "the handler to run")
        process.signal(signal.SIGTERM)
        eventually(lambda: asked(port, "/health/ready") == (503, "draining"), "the worker to drain")
        process.signal(signal.SIGTERM)  # a second one hurries
        assert process.died() == 0


def test_who_asks_by_too_many_connections_is_hung_up_on_and_others_are_answered_when_these_are_gone():
    port = free_port()
    Health(Address("127.0.0.1", port), lambda: "ready").start()
    silent = [socket.create_connection(("127.0.0.1", port), timeout=10) for _ in range(MOST_AT_ONCE)]
    with socket.create_connection(("127.0.0.1", port), timeout=10) as one_more:
        assert one_more.recv(1) == b""
    for one in silent:
        one.close()
    eventually(lambda: asked_if_it_answers(port), "the threads to be free")


def asked_if_it_answers(port: int) -> bool:
    try:
        return asked(port, "/health/ready") == (200, "ready")
    except OSError:
        return False


def test_a_worker_without_a_free_slot_is_ready_by_its_heartbeat_and_only_by_one_that_arrived(database_url: str, monkeypatch):
    process = Worker(Settings(database_url=database_url))
    long_ago = time.monotonic() - 60
    process._acquirer.acquired_at = process._pulse.beaten_at = long_ago
    assert process.state() == "unavailable"
    process._pulse.beaten_at = time.monotonic()
    assert process.state() == "unavailable", "it has room, and asked for nothing"
    monkeypatch.setattr(Slots, "room", lambda self: 0)
    assert process.state() == "ready"
    process._pulse.beaten_at = long_ago
    assert process.state() == "unavailable"
    process._acquirer.acquired_at = time.monotonic()
    assert process.state() == "ready"


@pytest.mark.faults
def test_F45_F28_after_an_outage_a_worker_and_the_web_are_ready_again_and_have_said_little(
    database_url: str, committed_db, server_url, tmp_path
):
    """Nobody restarts anything. Meanwhile both say that they are not ready, and every page is a 503 that may be tried again."""
    port, name = free_port(), make_url(database_url).database
    settings = {"worker_listen": f"127.0.0.1:{port}", "heartbeat_seconds": "0.2"}
    with (
        psycopg.connect(server_url, autocommit=True) as admin,
        worker(database_url, tmp_path, **settings) as process,
        WebProcess(database_url, tmp_path / "web.log") as web,
    ):
        web.ready()
        eventually(lambda: asked(port, "/health/ready") == (200, "ready"), "the worker to be ready")
        try:
            admin.execute(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS false".encode())
            admin.execute("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s", (name,))
            for path in ("/health/ready", "/inbox", "/api/v1/tasks"):
                asks = {"headers": {"Authorization": f"Bearer baton_{'x' * 43}"}, "cookies": {"baton_session": "x" * 43}}
                answer = httpx.get(f"{web.url}{path}", **asks, trust_env=False, timeout=30)
                assert answer.status_code == 503, path
                assert path.startswith("/health") or answer.headers["Retry-After"] == "2"
            eventually(lambda: asked(port, "/health/ready") == (503, "unavailable"), "the worker to be not ready")
            assert asked(port, "/health/live") == (200, "live") and web.status("/health/live") == 200
        finally:
            admin.execute(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS true".encode())
        assert web.status("/health/ready") == 200, "the first request after it is back"
        eventually(lambda: asked(port, "/health/ready") == (200, "ready"), "the worker to be ready again")
        with connect(database_url) as conn:
            failing = job(conn, "test.fails", max_attempts=1)
            eventually(lambda: status(conn, failing)[0] == "failed", "the worker to work again")
        assert 1 <= len(process.lines("database_unreachable")) <= 3
        assert len(process.text().splitlines()) < 30 and "Traceback" not in process.text() + web.text()


def test_F47_a_replica_that_may_use_up_the_connections_says_so_at_its_start(database_url: str, committed_db, tmp_path: Path):
    assert too_few(committed_db, 1) is None
    with connect(database_url):  # somebody besides whoever asks
        found = too_few(committed_db, 100_000)
    assert found is not None and found.wanted == 100_000 and 0 < found.used < found.allowed < 100_000
    assert of_web(processes=2, pool_size=8) == 18
    with worker(database_url, tmp_path, worker_slots="200", handler_processes="64", delivery_slots="64") as process:
        pass  # 333 connections: more than a server of 200 has, fewer than one of 1,000
    allowed = found.allowed - found.used
    assert bool(process.lines("connections_may_run_out")) == (allowed < 333)
    with WebProcess(database_url, tmp_path / "web.log", web_processes="1", pool_size="200") as web:
        web.ready()
    assert ("connections may run out: this server opens up to 201" in web.text()) == (allowed < 201)


@pytest.mark.slow
def test_F47_a_web_server_opens_no_more_connections_than_its_pools_and_one_for_each_process(
    database_url: str, committed_db, tmp_path: Path
):
    """Requests that all wait for one table, many more than there are connections."""
    opened = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'baton-%%' AND datname = current_database()"
    with WebProcess(database_url, tmp_path / "web.log", web_processes="2", pool_size="2", web_threads="32") as web:
        web.ready()
        with ThreadPoolExecutor(24) as pool:
            committed_db.execute("BEGIN; LOCK TABLE person")
            answers = [pool.submit(web.status, "/health/ready") for _ in range(24)]
            with connect(database_url) as looking:
                eventually(lambda: row(looking, opened)[0] >= 2, "one of the pools to be used up")
                looks = [row(looking, opened)[0] for _ in range(50)]
            committed_db.execute("ROLLBACK")
        assert {answer.result() for answer in answers} == {200}
    assert max(looks) <= of_web(processes=2, pool_size=2)


def test_F40_processes_of_one_web_server_share_no_connection_and_their_parent_has_none(database_url: str, tmp_path: Path):
    with WebProcess(database_url, tmp_path / "web.log", web_processes="3") as web:
        web.ready()
        parent = psutil.Process(web.process.pid)
        port = make_url(database_url).port

        def ports(process: psutil.Process) -> set[int]:
            return {each.laddr.port for each in process.net_connections("tcp") if each.raddr and each.raddr.port == port}

        def all_have_asked() -> bool:
            web.status("/health/ready")
            return len(parent.children()) == 3 and all(map(ports, parent.children()))

        eventually(all_have_asked, "each process to have a connection")
        theirs = [ports(child) for child in parent.children()]
        assert sum(map(len, theirs)) == len(set.union(*theirs)) and ports(parent) == set()


FORKED = """
import os, sys
from engine.config import Address, Settings
from webapp.app import create_app
from webapp.db import command_connection
app = create_app(Settings.from_env())
def session():
    with app.app_context():
        conn = command_connection()
        return conn.info.backend_pid, conn.execute("SELECT pg_backend_pid()").fetchone()[0]
before = session()
child = os.fork()
if child == 0:
    mine = session()
    os._exit(0 if mine[0] == mine[1] != before[0] else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "the child has used its parent's session"
assert session() == before, "the parent goes on with its own"
"""


def test_F40_a_forked_child_never_uses_the_pool_of_its_parent(database_url: str):
    THIS.runs("-c", FORKED, DATABASE_URL=database_url)
