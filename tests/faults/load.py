"""Load for the fault tests: a driver that starts cases and does people's work, a receiver, a watch over the leases.

The driver behaves as a client should: after a lost connection it asks again under the same request id. What it was
answered is what must be true in the end; `tests.faults.checker` joins that with what the receiver saw and the rows.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import psycopg

from engine.commands.complete_task import complete_task
from engine.commands.outcome import InstanceStarted, TaskCompleted
from engine.commands.start import start_instance
from engine.db.session import connect
from tests.cast import ADA
from tests.worker.models import HEAD, deployed, service, timer
from tests.worker.processes import eventually

T = TypeVar("T")
Connection = psycopg.Connection[Any]

KEY = "order"
PARALLEL = ("pause", "add")
LOST = (psycopg.OperationalError, psycopg.InterfaceError)


def model() -> bytes:
    """An effect by a handler; a timer and a thread side by side; a person; an effect by the outbox."""
    nodes = [
        '<startEvent id="start"/>',
        service("reserve", "http.call", {"url": "${reserve_url}", "method": "POST"}, retry="R20/PT1S"),
        '<parallelGateway id="fork"/>',
        timer("pause", "PT0.2S"),
        service("add", "test.add"),
        '<parallelGateway id="join"/>',
        '<userTask id="approve" camunda:assignee="ada"/>',
        service("notify", "http.deliver", {"url": "${notify_url}"}, retry="R20/PT1S"),
        '<endEvent id="end"/>',
    ]
    flows = "start>reserve reserve>fork fork>pause fork>add pause>join add>join join>approve approve>notify notify>end"
    for flow in flows.split():
        source, target = flow.split(">")
        nodes.append(f'<sequenceFlow id="{source}_{target}" sourceRef="{source}" targetRef="{target}"/>')
    return f'{HEAD}<process id="{KEY}" isExecutable="true">{"".join(nodes)}</process></definitions>'.encode()


class Receiver:
    """The receiver's process and what it wrote down."""

    def __init__(self, folder: Path, module: str = "tests.faults.receiver") -> None:
        self.log = folder / "effects"
        port_file = folder / "receiver.port"
        self.process = subprocess.Popen([sys.executable, "-m", module, str(port_file), str(self.log)])
        eventually(port_file.exists, "the receiver to listen")
        self.url = f"http://127.0.0.1:{port_file.read_text()}"

    def effects(self) -> list[tuple[str, str]]:
        """(idempotency key, path) of every call it got."""
        return effects(self.log)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


def effects(*logs: Path) -> list[tuple[str, str]]:
    """(idempotency key, path) of every call and every run, from the logs of receivers and handlers."""
    lines = [line for log in logs if log.exists() for line in log.read_text().splitlines()]
    return [(key, path) for key, path in (line.split(" ", 1) for line in lines)]


class Driver:
    """Starts cases one after another, a few at a time in flight, and completes ada's tasks, until told to stop."""

    def __init__(self, url: Callable[[], str], receiver: Receiver, *, in_flight: int = 12) -> None:
        self._url, self._receiver, self._in_flight = url, receiver, in_flight
        self._conn: Connection | None = None
        self._stopping = threading.Event()
        self.started: dict[str, UUID] = {}  # business key -> the instance that a start was answered with
        self.completed: dict[UUID, UUID] = {}  # task -> the instance that its completion was answered with
        self.trouble: list[str] = []
        self._thread = threading.Thread(target=self._run, name="driver", daemon=True)

    def start(self) -> None:
        with connect(self._url()) as conn:
            deployed(conn, KEY, model())
        self._thread.start()

    def stop_starting(self) -> None:
        self._stopping.set()

    def join(self) -> None:
        self._thread.join(timeout=120)
        assert not self._thread.is_alive(), f"expected the driver to end, {len(self.started)} cases started"

    def finished(self) -> int:
        return len(self.completed)

    def _run(self) -> None:
        number = 0
        try:
            while not (self._stopping.is_set() and len(self.completed) == len(self.started)):
                if not self._stopping.is_set() and len(self.started) - len(self.completed) < self._in_flight:
                    self._start(f"case-{number}", slow=number % 4 == 0)
                    number += 1
                elif not self._work():
                    time.sleep(0.05)
        except Exception as problem:
            self.trouble.append(f"{type(problem).__name__}: {problem}")
            raise
        finally:
            if self._conn is not None:
                self._conn.close()

    def _start(self, case: str, *, slow: bool) -> None:
        variables = {
            "reserve_url": f"{self._receiver.url}/reserve/{case}" + ("?wait=1.3" if slow else ""),
            "notify_url": f"{self._receiver.url}/notify/{case}",
            "a": 2,
            "b": 3,
        }
        outcome = self._ask(
            lambda conn: start_instance(conn, KEY, actor=ADA, variables=variables, business_key=case, request_id=f"start {case}")
        )
        assert isinstance(outcome, InstanceStarted), outcome
        self.started[case] = outcome.instance_id

    def _work(self) -> bool:
        """Complete what lies in ada's inbox; whether there was anything."""
        query = "SELECT id FROM user_task WHERE tenant_id = '' AND assignee = 'ada' AND status = 'claimed' ORDER BY created_at"
        tasks = self._ask(lambda conn: conn.execute(query).fetchall())
        for (task,) in tasks:
            outcome = self._ask(
                lambda conn, task=task: complete_task(conn, task, actor=ADA, variables={"approved": True}, request_id=f"complete {task}")
            )
            assert isinstance(outcome, TaskCompleted), outcome
            self.completed[task] = outcome.instance_id
        return bool(tasks)

    def _ask(self, question: Callable[[Connection], T]) -> T:
        """Ask until there is an answer, with the same request id each time."""
        end = time.monotonic() + 90
        while True:
            try:
                if self._conn is None or self._conn.closed:
                    self._conn = connect(self._url())
                return question(self._conn)
            except LOST:
                if time.monotonic() > end:
                    raise
                if self._conn is not None:
                    self._conn.close()
                time.sleep(0.1)


class Watch:
    """Looks all the time how long leases stay past their expiry. A worker must live all the while."""

    def __init__(self, url: Callable[[], str], *, recovery_seconds: float) -> None:
        self._url, self._bound = url, 2 * recovery_seconds
        self._stopping = threading.Event()
        self.worst = 0.0
        self.looks = 0
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> float:
        self._stopping.set()
        self._thread.join(30)
        return self.worst

    def _run(self) -> None:
        query = " UNION ALL ".join(
            f"SELECT extract(epoch FROM baton_now() - min(lease_expires_at))::float8 FROM {table} WHERE status = 'leased'"
            for table in ("job", "external_task", "delivery")
        )
        conn: Connection | None = None
        reachable_since = time.monotonic()
        while not self._stopping.wait(0.1):
            try:
                if conn is None or conn.closed:
                    conn = connect(self._url())
                    reachable_since = time.monotonic()
                ages = [age for (age,) in conn.execute(query).fetchall() if age is not None]
            except LOST:
                if conn is not None:
                    conn.close()
                continue
            # What expired while there was no database could not be recovered before it was back.
            reachable = time.monotonic() - reachable_since
            self.worst = max(self.worst, *(min(age, reachable) for age in ages), 0.0)
            self.looks += 1
        if conn is not None:
            conn.close()
