"""F29: each transaction may be on another session of the server, and there are fewer sessions than clients."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from engine.db.migrate import migrate
from engine.db.session import ROLE_DEFAULTS, connect
from tests import rows
from tests.cli.processes import HERE, clean_environment
from tests.databases import in_database
from tests.faults.load import Receiver
from tests.pooler import PgBouncer, pooling
from tests.releases.previous import THIS
from tests.releases.traffic import Traffic, models, problems
from tests.web.processes import WebProcess
from tests.worker.processes import WorkerProcess, eventually
from worker.database import Database

pytestmark = pytest.mark.slow

SESSIONS = 3
OPEN = "SELECT count(*) FROM process_instance WHERE status = 'running'"
COMMANDS = "acquire complete_task external_tasks jobs leases messages"


@pytest.fixture
def pooler_here(server_url: str, tmp_path: Path) -> Iterator[PgBouncer]:
    with pooling(server_url, tmp_path, sessions=SESSIONS) as made:
        yield made


@pytest.fixture
def empty_url(server_url: str) -> Iterator[str]:
    """A database that nobody has migrated."""
    name = f"baton_pooled_{os.getpid()}"
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}".encode())
        yield in_database(server_url, name)
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def test_F29_web_and_worker_lose_and_double_nothing_behind_a_pooler_of_transactions(pooler_here: PgBouncer, empty_url: str, tmp_path: Path):
    url = pooler_here.url(empty_url, marked=False)
    told = {"DATABASE_URL": url, "BATON_POOLER": "transaction"}
    THIS.baton("migrate", **told)
    person = ("ada", "--display-name", "Ada Moreno", "--role", "administrator", "--group", "clerks", "--password-stdin")
    THIS.baton("user", "add", *person, typed="first password\n", **told)
    for file, text in models().items():
        (tmp_path / file).write_text(text)
    THIS.baton("deploy", *(str(tmp_path / file) for file in reversed(models())), **told)
    receiver = Receiver(tmp_path)
    traffic = Traffic(THIS.baton("key", "add", "ada", "--name", "traffic", **told).strip(), receiver, in_flight=8)
    settings = {"allowed_networks": "127.0.0.1/32", "pooler": "transaction", "upkeep_seconds": "1"}
    worker = WorkerProcess(url, tmp_path / "worker.log", **settings)
    try:
        with worker, WebProcess(url, tmp_path / "web.log", pooler="transaction") as web:
            worker.ready()
            traffic.sites = [web.ready().url]
            traffic.start()
            eventually(lambda: traffic.finished() >= 20 or traffic.trouble, "20 cases", seconds=60)
            with connect(empty_url) as conn:
                (sessions,) = rows_of(conn, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
                assert sessions <= SESSIONS + 1, "the clients share the pooler's sessions; one is this test's"
                traffic.stop()
                eventually(lambda: conn.execute(OPEN).fetchone() == (0,), "every case to complete", seconds=60)
                wrong = problems(conn, traffic, receiver)
            assert not wrong, "\n".join(wrong[:20])
            for process in (worker, web):
                assert "Traceback" not in process.text() and "prepared statement" not in process.text(), process.text()[-3000:]
            assert worker.terminate() == 0
    finally:
        traffic.abandon()
        receiver.stop()


def test_F29_commands_pass_their_tests_behind_a_pooler_of_transactions(server_url: str, template_url: str):
    told = clean_environment(BATON_TEST_SERVER=server_url, BATON_TEST_TEMPLATE=template_url.rsplit("/", 1)[1], BATON_TEST_POOLER="on")
    files = [f"tests/commands/test_{name}.py" for name in COMMANDS.split()]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *files],
        cwd=HERE, env=told, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert int(done.stdout.split(" passed")[0].split()[-1]) > 80


def test_F29_nothing_is_prepared_and_nothing_set_on_the_sessions_that_clients_share(pooler_here: PgBouncer, database_url: str):
    workers = Database(pooler_here.url(database_url), name="a worker", stopping=threading.Event())
    with connect(pooler_here.url(database_url)) as first, workers.connection() as second:
        for conn in (first, second) * 3:
            job = rows.job(conn)
            assert rows.columns(conn, "job", job, "status") == ("available",)
    with psycopg.connect(pooler_here.url(database_url, marked=False), autocommit=True, prepare_threshold=None) as conn:
        assert rows_of(conn, "SELECT count(*) FROM pg_prepared_statements") == (0,)
        set_by_somebody = "SELECT count(*) FROM pg_settings WHERE source = 'session' AND name = ANY(%s)"
        assert rows_of(conn, set_by_somebody, [name for name in ROLE_DEFAULTS if name != "timezone"]) == (0,)  # that it follows itself


def test_F29_a_migration_through_the_pooler_lets_sessions_begin_as_commands_need_them(pooler_here: PgBouncer, empty_url: str):
    migrate(pooler_here.url(empty_url))
    with psycopg.connect(empty_url) as conn:
        found = {name: rows_of(conn, "SELECT current_setting(%s)", name)[0] for name in ROLE_DEFAULTS}
    assert found == ROLE_DEFAULTS


def rows_of(conn: psycopg.Connection, query: str, *params: object) -> tuple:
    found = conn.execute(query, params).fetchone()
    assert found is not None
    return tuple(found)
