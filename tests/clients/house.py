"""The server that the clients talk to: a database of its own, `baton web` in two processes, one worker, and the access log."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psycopg

from cli.embedded import EmbeddedPostgres
from engine.commands.api_keys import add_api_key
from engine.commands.outcome import SYSTEM, Rejected
from engine.commands.people import add_person
from engine.db.migrate import migrate
from engine.db.session import connect
from tests.cli.processes import HERE, clean_environment, free_port
from tests.databases import in_database
from tests.worker.processes import eventually
from webapp.auth.passwords import rehash

USER = "clients"


@dataclass(frozen=True, slots=True)
class House:
    """`url`: of the engine's REST interface. `token`: a key for workers, limited as theirs should be. `conn` reads what the rows say."""

    url: str
    port: int
    password: str
    token: str
    starter: str  # the key of whoever deploys and starts
    conn: psycopg.Connection[Any]
    folder: Path
    access: Path

    def http(self) -> httpx.Client:
        """For whoever starts the cases: not one of the clients."""
        return httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {self.starter}"}, timeout=30)

    def rows(self, sql: str, *values: Any) -> list[Any]:
        return self.conn.execute(sql.encode(), values).fetchall()


@contextmanager
def house() -> Iterator[House]:
    """Up and ready; everything of it is gone in the end, but the logs if something went wrong."""
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="baton-clients-"))
        url = stack.enter_context(_database())
        migrate(url)
        conn = stack.enter_context(connect(url))
        password, token, starter = _person(conn)
        port = free_port()
        access = folder / "access.log"
        environment = clean_environment(
            DATABASE_URL=url,
            BATON_LISTEN=f"127.0.0.1:{port}",
            BATON_WEB_PROCESSES="2",
            BATON_RECOVERY_SECONDS="0.5",
            GUNICORN_CMD_ARGS=f"--access-logfile {access} --access-logformat '%(m)s %(U)s %(s)s %(M)s'",
        )
        for name in ("web", "worker"):
            stack.enter_context(_process(name, environment, folder / f"{name}.log"))
        _until_ready(f"http://127.0.0.1:{port}/health/ready")
        yield House(f"http://127.0.0.1:{port}/engine-rest", port, password, token, starter, conn, folder, access)
        shutil.rmtree(folder)


@contextmanager
def _database() -> Iterator[str]:
    """One of BATON_TEST_SERVER, as for the tests, else of a server of its own."""
    given = os.environ.get("BATON_TEST_SERVER")
    if given is None:
        server = EmbeddedPostgres.for_tests()
        try:
            yield server.start()
        finally:
            server.stop(mode="immediate")
        return
    name = f"baton_clients_{secrets.token_hex(4)}"
    with psycopg.connect(given, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}".encode())
    try:
        yield in_database(given, name)
    finally:
        with psycopg.connect(given, autocommit=True) as admin:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def _person(conn: psycopg.Connection[Any]) -> tuple[str, str, str]:
    """An operator's password, a key for workers and one for all that the operator may: external tasks are for operators."""
    password = secrets.token_urlsafe(12)
    added = add_person(conn, USER, actor=SYSTEM, display_name="Clients", role="operator", password_hash=rehash(password))
    limited = add_api_key(conn, USER, actor=SYSTEM, name="workers", scopes=["external_tasks", "read"])
    full = add_api_key(conn, USER, actor=SYSTEM, name="whoever starts")
    assert not any(isinstance(made, Rejected) for made in (added, limited, full)), (added, limited, full)
    return password, limited.token, full.token


@contextmanager
def _process(name: str, environment: dict[str, str], log: Path) -> Iterator[None]:
    with log.open("wb") as out:
        process = subprocess.Popen([sys.executable, "-m", "cli.main", name], cwd=HERE, env=environment, stdout=out, stderr=out)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _until_ready(url: str) -> None:
    def ready() -> bool:
        try:
            return httpx.get(url, timeout=5).status_code == 200
        except httpx.TransportError:
            return False

    eventually(ready, f"{url} to answer", seconds=60)
