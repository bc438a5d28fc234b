"""The servers of a storm: a primary, a synchronous standby that may take over, and PgBouncer in transaction mode.

All of them are private, made from the wheel's programs (PgBouncer from the system's), and die with this process.
What they said is read from their logs.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import psycopg

from cli.embedded import TEST_SETTINGS, EmbeddedPostgres
from cli.processes import working_in
from engine.db.migrate import migrate
from tests.faults.storm.proxy import Link, Proxies
from tests.pooler import PgBouncer
from tests.worker.processes import eventually

SETTINGS = {
    **TEST_SETTINGS,
    "log_line_prefix": "%m [%p] %e ",  # %e: the SQLSTATE, so that a 40P01 is one whatever its words
    "log_min_error_statement": "error",
    "pg_stat_statements.track": "all",  # what a function or trigger runs, too: a NOTIFY may hide there
    "wal_level": "replica",
    "max_wal_senders": "6",
    "wal_keep_size": "256MB",
    "hot_standby": "on",
    "wal_retrieve_retry_interval": "200ms",
    "synchronous_commit": "on",
    "autovacuum_naptime": "5s",
}
DATABASE = "storm"
SESSIONS = 12  # of PgBouncer on the server: fewer than its clients have connections


class Server(EmbeddedPostgres):
    """One PostgreSQL of the storm, with a home that is removed in the end."""

    @classmethod
    def made(cls) -> Server:
        server = cls.for_tests()
        assert isinstance(server, Server)
        server.settings, server.database = {**server.settings, **SETTINGS}, DATABASE
        return server

    def follow(self, primary: Server) -> None:
        """Become a standby of `primary`: its data as of now, and all that comes."""
        shutil.copyfile(primary.home / "password", self.home / "password")
        (self.home / "password").chmod(0o600)
        target = self.place / "data"
        source = primary.url("postgres").removesuffix("/postgres")
        owner = self.account
        self.place.chmod(0o755)
        fresh = self.place / "data.new"
        fresh.mkdir(mode=0o700)
        if owner:
            os.chown(fresh, owner.pw_uid, owner.pw_gid)
        self._tool("pg_basebackup", "-D", str(fresh), "-d", source, "-X", "stream", "-c", "fast", "-R")
        fresh.rename(target)
        self.start()

    def halt(self, mode: str) -> None:
        """Stop it and keep its data. `kill` is SIGKILL to the postmaster."""
        if mode == "kill":
            self.kill()
        else:
            with self._lock():
                self._halt(mode)
        eventually(lambda: not any(working_in(self.data)), "every process of the server to be gone", seconds=60)

    @property
    def port(self) -> int:
        return self._port()


class Topology:
    """`primary` is who serves at the moment; `back`, the link that leads PgBouncer there."""

    def __init__(self, folder: Path, proxies: Proxies) -> None:
        self.folder, self.proxies = folder, proxies
        self.servers = [Server.made()]
        self.primary = self.servers[0]
        self.database = DATABASE
        self.standby: Server | None = None
        self.pgbouncer: PgBouncer | None = None
        self.back: Link | None = None

    def start(self) -> None:
        self.primary.start()
        migrate(self.url())
        with psycopg.connect(self.url(), autocommit=True) as conn:
            conn.execute("CREATE EXTENSION pg_stat_statements")

    def add_pooler(self) -> None:
        """PgBouncer in transaction mode, on a link of its own to whoever is the primary."""
        self.back = self.proxies.link(lambda: self.primary.port)
        self.pgbouncer = PgBouncer(self.url_at(self.back.port), self.folder, sessions=SESSIONS)
        migrate(self.pgbouncer.url(self.url()))  # sets what sessions behind it begin with

    def add_standby(self) -> None:
        """From its start on, a commit is acknowledged when the standby has it."""
        standby = Server.made()
        self.servers.append(standby)
        standby.follow(self.primary)
        with psycopg.connect(self.url("postgres"), autocommit=True) as conn:
            conn.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            conn.execute("SELECT pg_reload_conf()")
            synchronous = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync' AND state = 'streaming'"
            eventually(lambda: conn.execute(synchronous).fetchone() == (1,), "the standby to be synchronous", seconds=60)
        self.standby = standby

    def promote(self, how: str) -> None:
        """The primary goes (`immediate` or `kill`) and never comes back; the standby takes over."""
        assert self.standby is not None, "expected a standby to promote"
        self.primary.halt(how)
        with psycopg.connect(self.standby.url("postgres"), autocommit=True) as conn:
            assert conn.execute("SELECT pg_promote(true, 60)").fetchone() == (True,)
        self.primary, self.standby = self.standby, None
        if self.back is not None:
            self.back.cut()

    def fresh(self, name: str) -> None:
        """Go on with another database: a copy of the first, which must not have been written since."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as conn:
            conn.execute(f"CREATE DATABASE {name} TEMPLATE {DATABASE}".encode())
        self.database = name

    def url(self, database: str | None = None) -> str:
        """The primary itself, past every link."""
        return self.primary.url(database or self.database)

    def url_at(self, port: int) -> str:
        return self.url().replace(f":{self.primary.port}/", f":{port}/")

    def logs(self) -> str:
        return "\n".join(path.read_text(errors="replace") for server in self.servers for path in sorted(server.home.glob("server.log*")))

    def stop(self) -> None:
        if self.pgbouncer is not None:
            self.pgbouncer.stop()
            shutil.rmtree(self.pgbouncer.folder, ignore_errors=True)
        for server in self.servers:
            server.stop(mode="immediate")
