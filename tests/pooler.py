"""A real PgBouncer in transaction mode between a test and its server."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from sqlalchemy.engine import make_url

from cli.postgres_files import unprivileged_account
from cli.processes import dying_with_parent
from engine.config import POOLED
from engine.db.session import plain_url
from tests.cli.processes import free_port, until

SETTINGS = """
[databases]
* = host={host} port={port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = plain
auth_file = {folder}/people
pool_mode = transaction
default_pool_size = {sessions}
max_client_conn = 400
server_login_retry = 1
query_wait_timeout = 30
ignore_startup_parameters = extra_float_digits
log_connections = 0
log_disconnections = 0
"""


def program() -> str:
    """Its path; fails with the one line to run where it is not installed."""
    found = os.environ.get("BATON_PGBOUNCER") or shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    assert found, "the tests behind a pooler need PgBouncer. Run: sudo apt-get install pgbouncer   (or set BATON_PGBOUNCER to one)"
    return found


class PgBouncer:
    """It runs until `stop`, or until this process ends. `sessions`: of each database on the server, shared by all clients."""

    def __init__(self, server_url: str, folder: Path, *, sessions: int = 4) -> None:
        self.server, self.port, self.folder = make_url(plain_url(server_url)), free_port(), folder / "pgbouncer"
        self._write(sessions)
        self.process = self._started()

    def url(self, database_url: str, *, marked: bool = True) -> str:
        """The same database through it. `marked`: said in the URL, as Settings does for BATON_POOLER=transaction."""
        url = make_url(plain_url(database_url)).set(host="127.0.0.1", port=self.port).render_as_string(hide_password=False)
        return f"{url}?{POOLED}" if marked else url

    def restart(self) -> None:
        """Every connection through it is cut, on both sides."""
        self.stop()
        self.process = self._started()

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def text(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def _write(self, sessions: int) -> None:
        server, account = self.server, unprivileged_account()
        # Below the folders of a test nobody but root may enter; its own lies where its account can reach it.
        if account is not None:
            self.folder = Path("/tmp") / f"baton-pgbouncer-{os.getpid()}-{self.port}"
        self.folder.mkdir()
        settings = {"host": server.host, "port": server.port, "listen": self.port, "folder": self.folder, "sessions": sessions}
        (self.folder / "settings.ini").write_text(SETTINGS.format(**settings))
        (self.folder / "people").write_text(f'"{server.username}" "{server.password}"\n')
        for file in ("settings.ini", "people"):
            (self.folder / file).chmod(0o600)
            if account is not None:
                os.chown(self.folder / file, account.pw_uid, account.pw_gid)

    def _started(self) -> subprocess.Popen[bytes]:
        account = unprivileged_account()
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(
                [program(), str(self.folder / "settings.ini")],
                cwd="/",
                stdout=log,
                stderr=log,
                user=account.pw_uid if account else None,
                group=account.pw_gid if account else None,
                extra_groups=[] if account else None,
                preexec_fn=dying_with_parent(signal.SIGKILL),
            )
        until(lambda: process.poll() is not None or self._answers(), "PgBouncer answers", seconds=20)
        assert process.poll() is None, self.text()
        return process

    def _answers(self) -> bool:
        try:
            url = self.server.set(host="127.0.0.1", port=self.port).render_as_string(hide_password=False)
            with psycopg.connect(url, connect_timeout=3) as conn:
                return conn.execute("SELECT 1", prepare=False).fetchone() == (1,)
        except psycopg.OperationalError:
            return False


@contextmanager
def pooling(server_url: str, folder: Path, *, sessions: int = 4) -> Iterator[PgBouncer]:
    pooler = PgBouncer(server_url, folder, sessions=sessions)
    try:
        yield pooler
    except BaseException:
        print(f"---- PgBouncer\n{pooler.text()[-3000:]}")
        raise
    finally:
        pooler.stop()
        shutil.rmtree(pooler.folder, ignore_errors=True)
