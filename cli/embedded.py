"""A private PostgreSQL from the programs of a wheel: made, started, found again, stopped. POSIX only.

The server is a process of its own session. It outlives a killed parent, and the next start finds it and goes on with
it; `for_tests()` makes one that dies with its parent instead. Any number of processes may call `start` at once: a file
lock lets one start the server, the others get its URL. Whether it runs is decided by a query that names the data
folder, never by a process id. Settings are given on its command line: nothing is written into the data folder, which
belongs to another account when this process is root.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg

from cli.postgres_files import (
    ENVIRONMENT,
    EmbeddedServerError,
    place_for_data,
    run_as,
    server_programs,
    unprivileged_account,
)
from cli.processes import alive, dying_with_parent, working_in

SETTINGS = {
    "max_connections": "200",
    "shared_buffers": "128MB",
    "max_wal_size": "1GB",
    "log_min_duration_statement": "1000",
    "shared_preload_libraries": "pg_stat_statements",
    "timezone": "UTC",
    "unix_socket_directories": "",
    "listen_addresses": "127.0.0.1",
}
# Tests kill servers, not machines: what was handed to the operating system survives that without fsync.
TEST_SETTINGS = {"fsync": "off", "full_page_writes": "off", "log_min_duration_statement": "-1"}

LOG_LIMIT = 10_000_000  # bytes; a longer log is put aside at the next start
CRASH_SECONDS = 30  # how long the remains of a killed server may take to go
RECOVERY_SECONDS = 600  # how long a server may replay its log before it accepts connections
STOP_SECONDS = 60

STILL_THERE = ('lock file "postmaster.pid" already exists', "pre-existing shared memory block", "is still in use")
PORT_TAKEN = ("Address already in use", "could not create any TCP/IP sockets")


class EmbeddedPostgres:
    """The server whose state lies in `home`. Construction prepares the programs and touches no running server."""

    def __init__(self, home: Path, *, database: str = "baton", settings: Mapping[str, str] | None = None) -> None:
        self.home = home.resolve()
        self.database = database
        self.user = "baton"
        self.settings = {**SETTINGS, **(settings or {})}
        self.account = unprivileged_account()
        self.home.mkdir(mode=0o755, parents=True, exist_ok=True)
        self.place = place_for_data(self.home, self.account)
        self.data = self.place / "data"
        self.programs = server_programs(self.account)
        self.log = self.home / "server.log"
        self._child: subprocess.Popen[bytes] | None = None
        self._temporary = False

    @classmethod
    def for_tests(cls) -> EmbeddedPostgres:
        """A fast server in a temporary home of its own. It dies with this process; `stop` removes everything of it."""
        home = Path(tempfile.mkdtemp(prefix="baton-test-server-"))
        home.chmod(0o755)
        server = cls(home, settings=TEST_SETTINGS)
        server._temporary = True
        return server

    # ---- what callers use

    def start(self) -> str:
        """Make the data folder if need be, start the server unless it runs, and return the database's URL."""
        with self._lock():
            if not self.data.exists():
                self._make_data()
            if not self.accepting():
                self._child = None
                self._start()
            self._ensure_database()
            return self.url()

    def stop(self, *, mode: str = "fast") -> None:
        """Stop the server, whoever started it. Does nothing when it does not run."""
        with self._lock():
            self._halt(mode)
        if self._temporary:
            shutil.rmtree(self.place, ignore_errors=True)
            shutil.rmtree(self.home, ignore_errors=True)

    def restart(self, *, mode: str = "fast") -> str:
        """Stop, start, and return the URL, which is the same as before unless its port was taken meanwhile."""
        with self._lock():
            self._halt(mode)
            self._start()
            return self.url()

    def kill(self) -> None:
        """SIGKILL to the postmaster, as a fault."""
        pid = self.pid()
        if pid is None:
            raise EmbeddedServerError(f"no server to kill: {self.data} has no postmaster.pid")
        os.kill(pid, signal.SIGKILL)
        if self._child is not None:
            self._child.wait()
            self._child = None

    def url(self, database: str | None = None) -> str:
        """The URL of a database of this server. Raises FileNotFoundError before the first start."""
        password = (self.home / "password").read_text().strip()
        return f"postgresql://{self.user}:{password}@127.0.0.1:{self._port()}/{database or self.database}"

    def pid(self) -> int | None:
        """The process id in the lock file of the data folder, running or not."""
        try:
            return int((self.data / "postmaster.pid").read_text().partition("\n")[0])
        except (FileNotFoundError, ValueError):
            return None

    def lives(self) -> bool:
        """Whether the postmaster's process is there, as a cheap look; `accepting` is the true answer."""
        if self._child is not None:
            return self._child.poll() is None
        pid = self.pid()
        return pid is not None and alive(pid)

    def accepting(self) -> bool:
        """Whether *this* server answers. A process id may be a zombie's or a stranger's, a port another server's."""
        if not self._port():
            return False
        try:
            with psycopg.connect(self.url("postgres"), connect_timeout=3) as conn:
                row = conn.execute("SHOW data_directory").fetchone()
                return row is not None and Path(row[0]) == self.data
        except psycopg.OperationalError:
            return False

    # ---- making the data folder

    def _make_data(self) -> None:
        """initdb beside, then rename: a killed initdb leaves nothing that looks like data."""
        fresh = self.place / "data.new"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700)
        password = self.home / "password"
        password.unlink(missing_ok=True)
        password.touch(mode=0o600)
        password.write_text(f"{secrets.token_urlsafe(24)}\n")
        handed = self.place / "password.new"  # initdb reads it as the server's account
        shutil.copyfile(password, handed)
        handed.chmod(0o600)
        if self.account:
            os.chown(fresh, self.account.pw_uid, self.account.pw_gid)
            os.chown(handed, self.account.pw_uid, self.account.pw_gid)
        try:
            self._tool(
                "initdb",
                *("-D", str(fresh), "-U", self.user, "-A", "scram-sha-256", f"--pwfile={handed}", "-E", "UTF8"),
                *("--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C", "--data-checksums"),
            )
        finally:
            handed.unlink()
        fresh.rename(self.data)

    def _ensure_database(self) -> None:
        with psycopg.connect(self.url("postgres"), autocommit=True) as conn:
            if conn.execute("SELECT 1 FROM pg_database WHERE datname = %s", (self.database,)).fetchone() is None:
                conn.execute(f'CREATE DATABASE "{self.database}"')

    # ---- starting

    def _start(self) -> None:
        """Start until it accepts: on another port when this one is taken, again while a killed server's remains go."""
        self._check_owner()
        patience = time.monotonic() + CRASH_SECONDS
        pause = 0.1
        while True:
            said_before = self._open_log()
            self._spawn(self._choose_port())
            if self._wait_until_accepting():
                return
            said = self._said_since(said_before)
            if any(text in said for text in PORT_TAKEN):
                (self.home / "port").unlink()
            elif any(text in said for text in STILL_THERE):
                self._clear_strangers_lock()
            else:
                raise EmbeddedServerError(f"PostgreSQL did not start. It said (all of it in {self.log}):\n{said[-1500:]}")
            if time.monotonic() > patience:
                raise EmbeddedServerError(f"PostgreSQL did not start within {CRASH_SECONDS} s. It said:\n{said[-1500:]}")
            time.sleep(pause)
            pause = min(pause * 2, 2)

    def _check_owner(self) -> None:
        owner, expected = self.data.stat().st_uid, self.account.pw_uid if self.account else os.geteuid()
        if owner != expected:
            raise EmbeddedServerError(
                f"{self.data} belongs to user id {owner}, expected {expected}: it was made by another account. "
                "Start as that account, or set BATON_HOME to another folder."
            )

    def _spawn(self, port: int) -> None:
        options = [word for name, value in {**self.settings, "port": str(port)}.items() for word in ("-c", f"{name}={value}")]
        with self.log.open("ab") as log:
            self._child = subprocess.Popen(
                [str(self.programs / "postgres"), "-D", str(self.data), *options],
                cwd="/",
                env=ENVIRONMENT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C in the terminal is for the parent, which stops the server last
                preexec_fn=dying_with_parent(signal.SIGQUIT) if self._temporary else None,
                user=self.account.pw_uid if self.account else None,
                group=self.account.pw_gid if self.account else None,
                extra_groups=[] if self.account else None,
            )

    def _wait_until_accepting(self) -> bool:
        """False when the server ended instead. Replaying a long log takes as long as it takes, within reason."""
        assert self._child is not None
        end = time.monotonic() + RECOVERY_SECONDS
        while time.monotonic() < end:
            if self.accepting():
                return True
            if self._child.poll() is not None:
                self._child = None
                return False
            time.sleep(0.02)
        raise EmbeddedServerError(f"PostgreSQL has not accepted a connection for {RECOVERY_SECONDS} s; see {self.log}")

    def _choose_port(self) -> int:
        """The port of the last start, or a free one. Another process may still take it before the server does."""
        port: int = self._port()
        with socket.socket() as probe:
            # As the server does it: connections of the last server in TIME_WAIT do not make its port taken.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                with socket.socket() as free:
                    free.bind(("127.0.0.1", 0))
                    port = free.getsockname()[1]
            else:
                port = probe.getsockname()[1]
        (self.home / "port").write_text(f"{port}\n")
        return port

    def _port(self) -> int:
        """The remembered port; 0 when there is none."""
        try:
            return int((self.home / "port").read_text())
        except (FileNotFoundError, ValueError):
            return 0

    def _clear_strangers_lock(self) -> None:
        """Remove a lock file whose process id now belongs to somebody else, as after a restart of a container.

        PostgreSQL itself refuses to start then. Every process of a server has the data folder as its working directory,
        so while one is there, an orphaned backend included, the lock stays.
        """
        if not Path("/proc/self/cwd").exists() or any(working_in(self.data)):
            return
        pid = self.pid()
        if pid is not None and alive(pid):
            with suppress(FileNotFoundError):
                (self.data / "postmaster.pid").unlink()

    # ---- stopping

    def _halt(self, mode: str) -> None:
        if self.data.exists() and self.pid() is not None and self._tool("pg_ctl", "-D", str(self.data), "status", check=False) == 0:
            stop = ("-D", str(self.data), "-w", "-t", str(STOP_SECONDS), "stop")
            if self._tool("pg_ctl", "-m", mode, *stop, check=False) != 0:
                self._tool("pg_ctl", "-m", "immediate", *stop)
        if self._child is not None:
            self._child.wait(timeout=STOP_SECONDS)
            self._child = None

    # ---- small things

    @contextmanager
    def _lock(self) -> Iterator[None]:
        with (self.home / "server.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _tool(self, name: str, *arguments: str, check: bool = True) -> int:
        with tempfile.TemporaryFile("w+") as output:
            code = run_as(self.account, [str(self.programs / name), *arguments], output=output)
            output.seek(0)
            if check and code != 0:
                raise EmbeddedServerError(f"{name} failed with exit code {code}: {output.read()[-1500:]}")
        return code

    def _open_log(self) -> int:
        """Put a long log aside; returns where the next start's lines will begin."""
        with suppress(FileNotFoundError):
            if self.log.stat().st_size < LOG_LIMIT:
                return self.log.stat().st_size
            self.log.replace(self.log.with_suffix(".log.old"))
        return 0

    def _said_since(self, position: int) -> str:
        with self.log.open("rb") as log:
            log.seek(position)
            return log.read().decode(errors="replace")
