"""`baton up`: everything on one machine, for trying it out. Starts what is missing, takes over what was left, stops all of it.

Order: one `up` a home (a file lock); end what a killed one left behind; PostgreSQL, unless DATABASE_URL names a server;
migrations; sample people and models; the mail sink and the sample service; two workers; the web server. Data, password
and ports are kept in the home (BATON_HOME, else .baton in the current folder).
"""

from __future__ import annotations

import fcntl
import os
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import httpx

from cli.embedded import EmbeddedPostgres
from cli.samples import sample_files
from cli.samples.people import PEOPLE, make_sample_people
from cli.supervisor import MARK, Child, Supervisor, end_leftovers
from cli.web import GUNICORN
from engine.commands.deploy import deploy
from engine.commands.outcome import SYSTEM, Rejected
from engine.config import Address, Settings
from engine.db.migrate import migrate
from engine.db.session import connect
from engine.told import when_told

WORKERS = 2
MAIL_PORT = 8025
SERVICE_PORT = 8071
READY_SECONDS = 120
CHECK_SECONDS = 0.2
HERE = Path(__file__).parents[1]


@click.command()
def up() -> None:
    """Start everything for trying it out, until Ctrl-C.

    Without DATABASE_URL an embedded PostgreSQL is started. The sample people's password is BATON_SAMPLE_PASSWORD, else
    one that is made, printed and kept.
    """
    settings = Settings.from_env()
    if settings.production:
        raise click.ClickException(
            "BATON_ENV=production: `baton up` makes people with a password that is printed; use `baton web` and `baton worker`"
        )
    home = settings.home.absolute()
    home.mkdir(mode=0o755, parents=True, exist_ok=True)
    with only_one(home):
        Up(settings, home).run()


class Up:
    """One run: what was told to it, and what it started."""

    def __init__(self, settings: Settings, home: Path) -> None:
        self.settings = settings
        self.home = home
        self.server: EmbeddedPostgres | None = None
        self.supervisor = Supervisor(say)
        self._signals = 0
        self._told = threading.Event()

    def run(self) -> None:
        when_told((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), self._tell)
        end_leftovers(str(self.home), say=say)
        try:
            database_url = self._start_database()
            self._start_everything(database_url)
            while not self._told.wait(CHECK_SECONDS):
                self.supervisor.check()
                self._check_database()
        finally:
            self._stop()

    def _tell(self) -> None:
        self._signals += 1
        self._told.set()

    # ---- starting

    def _start_database(self) -> str:
        if self.settings.database_url is not None:
            say("Using the database that DATABASE_URL names")
            return self.settings.database_url
        self.server = EmbeddedPostgres(self.home / "postgres")
        if not self.server.data.exists():
            say(f"Making a PostgreSQL database in {self.server.data}")
        url = self.server.start()
        if self.server.account:
            say(f"PostgreSQL runs as the account {self.server.account.pw_name}, because this is root")
        return url

    def _start_everything(self, database_url: str) -> None:
        migrate(database_url)
        listen = self._address()
        mail, service = free_port(self.home, "mail", MAIL_PORT), free_port(self.home, "service", SERVICE_PORT)
        password = self.settings.sample_password or kept_secret(self.home / "sample-password", 9)
        environment = self._environment(database_url, listen, mail, service)
        logs = self.home / "logs"
        baton = [sys.executable, "-m", "cli.main"]
        sink = [sys.executable, "-m", "cli.devservices", str(mail), str(service), str(self.home / "mails")]
        self.supervisor.start(Child("services", sink, environment, logs / "services.log", last_signal=signal.SIGKILL, grace_seconds=2))
        # gunicorn on SIGQUIT goes at once: nobody is there to look after it any more.
        self.supervisor.start(Child("web", GUNICORN, environment, logs / "web.log", last_signal=signal.SIGQUIT, grace_seconds=20))
        with connect(database_url, application_name="baton-up") as conn:
            make_sample_people(conn, password)
            outcome = deploy(conn, sample_files(service=f"http://127.0.0.1:{service}"), actor=SYSTEM, name="samples")
            if isinstance(outcome, Rejected):
                raise click.ClickException(f"the samples cannot be deployed: {outcome.refusal}: {outcome.problems}")
        for number in range(1, WORKERS + 1):
            grace = self.settings.drain_seconds + 10
            self.supervisor.start(
                Child(f"worker-{number}", [*baton, "worker"], environment, logs / f"worker-{number}.log", grace_seconds=grace)
            )
        self._wait_until_ready(listen)
        if not self._told.is_set():
            self._greet(listen, password, logs)

    def _address(self) -> Address:
        """Where the web listens: as told, and then or not at all; else on the first free port from the default on."""
        wanted = self.settings.listen
        if os.environ.get("BATON_LISTEN"):
            if not is_free(wanted.host, wanted.port):
                raise click.ClickException(f"BATON_LISTEN: {wanted} is taken by another program; name another port or leave it unset")
            return wanted
        for port in range(wanted.port, wanted.port + 100):
            if is_free(wanted.host, port):
                if port != wanted.port:
                    say(f"Port {wanted.port} is taken by another program: using {port}")
                return Address(wanted.host, port)
        raise click.ClickException(f"no free port from {wanted.port} to {wanted.port + 99}; name one with BATON_LISTEN")

    def _environment(self, database_url: str, listen: Address, mail: int, service: int) -> dict[str, str]:
        """What the children are told: everything that this process was, and where the others are."""
        handlers = ",".join((*self.settings.handlers, "cli.samples.handlers"))
        networks = ",".join((*map(str, self.settings.allowed_networks), "127.0.0.1/32"))
        told = {
            MARK: str(self.home),
            "DATABASE_URL": database_url,
            "BATON_SECRET_KEY": self.settings.secret_key or kept_secret(self.home / "secret-key", 32),
            "BATON_LISTEN": str(listen),
            "BATON_HANDLERS": handlers,
            "BATON_ALLOWED_NETWORKS": networks,
            "BATON_SAMPLE_SERVICE": f"http://127.0.0.1:{service}",
            "PYTHONPATH": os.pathsep.join(filter(None, (str(HERE), os.environ.get("PYTHONPATH")))),
            "PYTHONUNBUFFERED": "1",
        }
        if self.settings.mail_server is None:
            told["BATON_MAIL_SERVER"] = f"127.0.0.1:{mail}"
        return {"BATON_HANDLER_PROCESSES": "2", **os.environ, **told}

    def _wait_until_ready(self, listen: Address) -> None:
        end = time.monotonic() + READY_SECONDS
        while not self._told.wait(0.05):
            try:
                if httpx.get(f"http://{listen}/health/ready", timeout=2, trust_env=False).status_code == 200:
                    return
            except httpx.HTTPError:
                pass  # not yet
            broken = [child for child in self.supervisor.children if child.process is not None and child.process.poll() is not None]
            if broken or time.monotonic() > end:
                child = broken[0] if broken else next(child for child in self.supervisor.children if child.name == "web")
                what = "has ended" if broken else f"does not answer after {READY_SECONDS} s"
                raise click.ClickException(f"{child.name} {what}. The end of {child.log}:\n{child.tail()}")

    def _greet(self, listen: Address, password: str, logs: Path) -> None:
        say(f"\nBaton is running at http://{listen}\n")
        for person in PEOPLE:
            say(f"  {person.username:<6}{person.display_name:<15}{', '.join(person.groups) or person.role}")
        say(f"\n  password: {password}\n")
        say(f"Mails: http://{listen}/dev/mail    Sample service: http://{listen}/dev/service    Logs: {logs}")
        say("Traffic: make drive (or: baton samples drive)    Stop: Ctrl-C")

    # ---- running and stopping

    def _check_database(self) -> None:
        """Start the embedded server again if it is gone. Its pid is asked, which costs nothing; `start` asks it itself."""
        if self.server is not None and not self.server.lives():
            say("PostgreSQL has ended; it starts again")
            self.server.start()

    def _stop(self) -> None:
        say("\nStopping" if self._told.is_set() else "Stopping after a failure")
        already = self._signals
        self.supervisor.stop(hurry=lambda: self._signals > already)
        if self.server is not None:
            self.server.stop()
        say("Stopped")


def say(text: str) -> None:
    click.echo(text)
    sys.stdout.flush()


@contextmanager
def only_one(home: Path) -> Iterator[None]:
    """Hold the home's lock, which the kernel lets go of however this process ends."""
    with (home / "up.lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise click.ClickException(f"`baton up` runs here already, as process {file.read().strip() or 'unknown'} ({home})") from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def kept_secret(path: Path, size: int) -> str:
    """A secret that is made once and kept, readable for its owner only."""
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        made = secrets.token_urlsafe(size)
        path.touch(mode=0o600)
        path.write_text(f"{made}\n")
        return made


def is_free(host: str, port: int) -> bool:
    """Whether a server could listen there now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def free_port(home: Path, name: str, first: int) -> int:
    """The port of the last start if it is free, else the first one from `first` on. It is written into deployed models."""
    note = home / f"{name}-port"
    remembered = int(note.read_text()) if note.exists() else first
    wanted: list[int] = [remembered, *range(first, first + 100)]
    for port in wanted:
        if is_free("127.0.0.1", port):
            note.write_text(f"{port}\n")
            return port
    raise click.ClickException(f"no free port from {first} to {first + 99} for the {name}")
