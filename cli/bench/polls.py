"""What people notice of programs that wait: pages of one web process, alone and beside many long polls, in turns.

A `baton web` of one process over a database of its own. A person looks at pages, several at a time, one after another; in every
second window as many programs as asked for wait for external tasks meanwhile, and one task a second is made for them, which one of them
is given, and completes. The windows are taken in turns, so that a machine whose mood changes changes both.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import psycopg
from argon2 import PasswordHasher
from sqlalchemy.engine import make_url

from cli.bench.server import worker_environment
from engine.commands.api_keys import add_api_key
from engine.commands.deploy import deploy
from engine.commands.outcome import SYSTEM, ApiKeyAdded, Deployed
from engine.commands.people import add_person
from engine.commands.start import start_instance
from engine.db.migrate import migrate
from engine.db.session import connect, plain_url

PAGES = ("/inbox", "/operations", "/operations/jobs", "/start", "/operations/workers")
CASES = 200  # of which the pages tell
TOPIC, KEY = "bench", "bench_polls"
WAIT = 45_000  # milliseconds
MODEL = f"""<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:camunda="http://camunda.org/schema/1.0/bpmn"
 targetNamespace="bench"><process id="{KEY}" isExecutable="true"><startEvent id="start"/>
 <sequenceFlow id="a" sourceRef="start" targetRef="work"/>
 <serviceTask id="work" name="Work" camunda:type="external" camunda:topic="{TOPIC}"/>
 <sequenceFlow id="b" sourceRef="work" targetRef="end"/><endEvent id="end"/></process></definitions>""".encode()


@dataclass(frozen=True, slots=True)
class Window:
    """One window: so many pages were answered; half of them, and all but a twentieth, within so many milliseconds."""

    waiting: int
    pages: int
    p50_ms: float
    p95_ms: float


@dataclass(frozen=True, slots=True)
class Figures:
    """`ratio`: of the p95 beside who waits to the p95 alone, over all windows of each kind. `threads`: of the process, with all waiting."""

    waiters: int
    ratio: float
    alone_p95_ms: float
    beside_p95_ms: float
    windows: tuple[Window, ...]
    threads: int
    connections: int
    tasks_done: int


def bench_polls(server: str, *, waiters: int, seconds: float, rounds: int, readers: int) -> Figures:
    """A database is made on `server`, and dropped."""
    with _database(server) as url, connect(url, application_name="baton-bench") as conn:
        password = secrets.token_urlsafe(16)
        key = _furnish(conn, password)
        with _web(url, waiters) as (site, process):
            return _measure(conn, site, process, key, password, waiters=waiters, seconds=seconds, rounds=rounds, readers=readers)


def _measure(
    conn: psycopg.Connection, site: str, process: int, key: str, password: str, *, waiters: int, seconds: float, rounds: int, readers: int
) -> Figures:
    people = [_signed_in(site, password) for _ in range(readers)]
    _read(people, 2.0)  # what is loaded and planned at the first look of all
    alone, beside, windows, threads, connections, done = [], [], [], 0, 0, 0
    for _ in range(rounds):
        took = _read(people, seconds)
        alone += took
        windows.append(_window(0, took))
        with Crowd(site, key, waiters) as crowd:
            crowd.wait_until_all_wait()
            threads, connections = _threads(process), _connections(conn)
            took = _read(people, seconds, meanwhile=lambda: start_instance(conn, KEY, actor=SYSTEM, variables={}))
        done += crowd.done
        beside += took
        windows.append(_window(waiters, took))
    first, second = _percentile(alone, 0.95), _percentile(beside, 0.95)
    return Figures(waiters, second / first, first, second, tuple(windows), threads, connections, done)


# ---- who looks at pages


def _read(people: list[httpx.Client], seconds: float, meanwhile: Callable[[], object] | None = None) -> list[float]:
    """Seconds that each page took, of several people who look at one after another."""
    took: list[float] = []
    ends = time.monotonic() + seconds

    def look(person: httpx.Client) -> None:
        while time.monotonic() < ends:
            for page in PAGES:
                began = time.monotonic()
                person.get(page).raise_for_status()
                took.append(time.monotonic() - began)

    threads = [threading.Thread(target=look, args=(person,)) for person in people]
    for thread in threads:
        thread.start()
    while meanwhile is not None and time.monotonic() < ends - 1:
        time.sleep(1)
        meanwhile()
    for thread in threads:
        thread.join()
    return took


def _signed_in(site: str, password: str) -> httpx.Client:
    person = httpx.Client(base_url=site, timeout=60, trust_env=False)
    token = re.search(r'name="csrf_token" value="([^"]+)"', person.get("/login").text)
    assert token is not None, "expected a form at /login"
    person.post("/login", data={"username": "olga", "password": password, "csrf_token": token[1]})
    person.get("/inbox").raise_for_status()
    return person


def _window(waiting: int, took: list[float]) -> Window:
    return Window(waiting, len(took), _percentile(took, 0.5), _percentile(took, 0.95))


def _percentile(took: list[float], part: float) -> float:
    """In milliseconds, the nearest rank."""
    return sorted(took)[max(0, math.ceil(len(took) * part) - 1)] * 1000


# ---- who waits


class Crowd:
    """Programs that wait for external tasks, each on a connection of its own, and complete what they are given."""

    def __init__(self, site: str, key: str, many: int) -> None:
        self.host, _, self.port = site.removeprefix("http://").partition(":")
        self.site, self.key, self.many, self.done = site, key, many, 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._wait()), daemon=True)

    def __enter__(self) -> Crowd:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def wait_until_all_wait(self) -> None:
        ends = time.monotonic() + 60
        while _waiting(self.site) < self.many:
            if time.monotonic() > ends:
                raise RuntimeError(f"expected {self.many} to wait within a minute, found {_waiting(self.site)}")
            time.sleep(0.1)

    async def _wait(self) -> None:
        programs = [asyncio.create_task(self._program(f"program-{number}")) for number in range(self.many)]
        while not self._stopping.is_set():
            await asyncio.sleep(0.1)
        for program in programs:
            program.cancel()
        await asyncio.gather(*programs, return_exceptions=True)

    async def _program(self, name: str) -> None:
        reader, writer = await asyncio.open_connection(self.host, int(self.port))
        try:
            while True:
                topics = [{"topicName": TOPIC, "lockDuration": 60_000}]
                fetch = {"workerId": name, "maxTasks": 1, "asyncResponseTimeout": WAIT, "topics": topics}
                for task in json.loads(await self._ask(reader, writer, "fetchAndLock", fetch)):
                    await self._ask(reader, writer, f"{task['id']}/complete", {"workerId": name})
                    self.done += 1
        finally:
            writer.close()

    async def _ask(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, body: object) -> bytes:
        sent = json.dumps(body).encode()
        head = (
            f"POST /engine-rest/external-task/{path} HTTP/1.1\r\nHost: {self.host}\r\nAuthorization: Bearer {self.key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(sent)}\r\n\r\n"
        )
        writer.write(head.encode() + sent)
        answer = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        status = int(answer.split(" ", 2)[1])
        if status not in (200, 204):
            raise RuntimeError(f"{path}: expected 200 or 204, found {status}")
        length = re.search(r"content-length: (\d+)", answer)
        return await reader.readexactly(int(length[1])) if length else b""


def _waiting(site: str) -> int:
    told = httpx.get(f"{site}/metrics", timeout=60, trust_env=False).text
    found = re.search(r"^baton_web_long_polls (\d+)", told, re.MULTILINE)
    return int(found[1]) if found else 0


# ---- what they meet


def _furnish(conn: psycopg.Connection, password: str) -> str:
    """An operator with a password and a key, and some cases for the pages. Returns the key."""
    add_person(conn, "olga", actor=SYSTEM, display_name="Olga", role="operator", password_hash=PasswordHasher().hash(password))
    made = add_api_key(conn, "olga", actor=SYSTEM, name="bench")
    files = [("polls.bpmn", MODEL), ("leave.bpmn", (Path(__file__).parents[1] / "samples" / "leave-request.bpmn").read_bytes())]
    deployed = deploy(conn, files, actor=SYSTEM)
    if not isinstance(made, ApiKeyAdded) or not isinstance(deployed, Deployed):
        raise RuntimeError(f"expected a key and a deployment, found {made!r} and {deployed!r}")
    key = next(each.key for each in deployed.definitions if each.key != KEY)
    for _ in range(CASES):
        start_instance(conn, key, actor=SYSTEM, variables={})
    return made.token


def _threads(process: int) -> int:
    return len(list(Path(f"/proc/{process}/task").iterdir()))


def _connections(conn: psycopg.Connection) -> int:
    row = conn.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'baton-web'"
    ).fetchone()
    return int(row[0]) if row else 0


@contextmanager
def _web(url: str, waiters: int) -> Iterator[tuple[str, int]]:
    """(address, process id of gunicorn's only worker)."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        listen = f"127.0.0.1:{found.getsockname()[1]}"
    told = {"BATON_LISTEN": listen, "BATON_WEB_PROCESSES": "1", "BATON_LONG_POLLS": str(2 * waiters + 2)}
    with tempfile.TemporaryFile() as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "cli.main", "web"], env=worker_environment(url, handlers="", **told), stdout=log, stderr=log
        )
        try:
            _until_ready(f"http://{listen}", server)
            children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
            yield f"http://{listen}", int(children[0])
        finally:
            server.terminate()
            server.wait(60)


def _until_ready(site: str, server: subprocess.Popen[bytes]) -> None:
    ends = time.monotonic() + 60
    while time.monotonic() < ends and server.poll() is None:
        try:
            if httpx.get(f"{site}/health/ready", timeout=5, trust_env=False).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.2)
    raise RuntimeError("baton web: expected it to be ready within a minute, found that it is not")


@contextmanager
def _database(server: str) -> Iterator[str]:
    name = f"baton_bench_polls_{os.getpid()}"
    with psycopg.connect(plain_url(server), autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
        try:
            url = make_url(plain_url(server)).set(database=name).render_as_string(hide_password=False)
            migrate(url)
            yield url
        finally:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)")
