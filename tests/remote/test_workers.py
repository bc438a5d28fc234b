"""Both workers against a real server: what they report, renew, give up, and how they stop."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from baton_client import AsyncClient, AsyncWorker, BpmnError, Client, Conflict, RetryLater, Running, Worker
from engine.commands.leases import release_by_operator
from tests.browser.conftest import Site
from tests.remote.conftest import in_a_loop
from tests.web.operations import OLGA, api_key, one
from tests.worker.processes import eventually

Conn = psycopg.Connection[Any]
Function = Callable[[Running], Any]
ROOT = Path(__file__).parents[2]


class InThreads:
    """A Worker in a thread of the test."""

    def __init__(self, url: str, key: str, function: Function, **settings: Any) -> None:
        self.worker = Worker(Client(url, key), **settings)
        self.worker("print")(function)
        self.thread = threading.Thread(target=lambda: self.worker.run(signals=False), daemon=True)

    def start(self) -> None:
        self.thread.start()

    def stop(self) -> None:
        self.worker.stop()


class InALoop:
    """An AsyncWorker in a loop of its own. The function of the test is called in a thread, so that it may wait."""

    def __init__(self, url: str, key: str, function: Function, **settings: Any) -> None:
        self.url, self.key, self.settings = url, key, settings
        self.begun = threading.Event()

        async def in_thread(task: Running) -> Any:
            return await asyncio.to_thread(function, task)

        async def run() -> None:
            self.loop = asyncio.get_running_loop()
            async with AsyncClient(url, key) as client:
                self.worker = AsyncWorker(client, **settings)
                self.worker("print")(in_thread)
                self.begun.set()
                await self.worker.run(signals=False)

        self.thread = threading.Thread(target=lambda: asyncio.run(run()), daemon=True)

    def start(self) -> None:
        self.thread.start()
        assert self.begun.wait(20)

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self.worker.stop)


Start = Callable[..., Any]


@pytest.fixture(params=[InThreads, InALoop])
def working(request: pytest.FixtureRequest, site: Site, committed_db: Conn, olga: Client) -> Start:
    """working(function): a worker that runs it for each task while the block lasts, and stops gently after it."""

    @contextmanager
    def work(function: Function, **settings: Any) -> Iterator[Any]:
        made = request.param(site.url, api_key(committed_db, "olga"), function, name="printer-1", **settings)
        made.start()
        try:
            yield made
        finally:
            made.stop()
            made.thread.join(60)
            assert not made.thread.is_alive()

    return work


def state(conn: Conn, case: Any) -> Any:
    return one(conn, "SELECT coalesce(min(element_id), '') FROM user_task WHERE instance_id = %s", case.id)


def test_what_a_function_returns_raises_and_says_is_reported(working: Start, olga: Client, committed_db: Conn) -> None:
    def print_label(task: Running) -> Any:
        task.check()
        task.log(f"copies: {task.variables['copies']}", "debug")
        task.progress(0.5, "printing")
        match task.variables["copies"]:
            case 1:
                return {"printed": True, "attempt": task.attempt, "same": task.idempotency_key == str(task.leased.id)}
            case 2:
                raise BpmnError("JAM", "tray 2", {"tray": 2})
            case 3:
                raise LookupError("no paper")
            case 4:
                raise RetryLater(3_600, "after lunch")
        return 5

    cases = [olga.start("printing", {"copies": copies}) for copies in (1, 2, 3, 4, 5)]
    with working(print_label):
        left = "SELECT count(*) FROM external_task WHERE attempts = 0 OR status = 'leased'"
        eventually(lambda: one(committed_db, left) == 0, "every attempt to end")
    assert [state(committed_db, case) for case in cases] == ["check", "repair", "", "", ""]
    assert olga.instance(cases[0].id).variables == {"copies": 1, "printed": True, "attempt": 1, "same": True}
    assert olga.instance(cases[1].id).variables == {"copies": 2, "tray": 2}
    error = "SELECT last_error FROM external_task WHERE instance_id = %s"
    assert one(committed_db, error, cases[2].id).startswith("LookupError: no paper\n\nTraceback")
    waits = "SELECT available_at - baton_clock() > interval '59 minutes' FROM external_task WHERE instance_id = %s"
    assert one(committed_db, waits, cases[3].id)
    assert "expected a dict of variables or None, found int" in one(committed_db, error, cases[4].id)
    said = committed_db.execute("SELECT text FROM attempt_line ORDER BY text").fetchall()
    assert [text for (text,) in said] == [f"copies: {n}" for n in (1, 2, 3, 4, 5)]
    assert one(committed_db, "SELECT count(*) FROM attempt_report WHERE progress = 0.5 AND doing = 'printing'") == 5


def test_a_lease_is_renewed_while_the_function_runs(working: Start, olga: Client, committed_db: Conn) -> None:
    go_on = threading.Event()
    case = olga.start("printing")
    with working(lambda task: go_on.wait(60) and None, lease_seconds=2):
        ends = "SELECT coalesce(max(lease_expires_at), 'epoch') FROM external_task WHERE lease_number = 1"
        for _ in range(3):  # each later than the one before: more than a whole lease
            before = one(committed_db, ends)
            eventually(lambda before=before: one(committed_db, ends) > before, "the lease to move on")
        go_on.set()
        eventually(lambda: state(committed_db, case) == "check", "the outcome under the first lease")


def test_a_lost_lease_stops_the_function_and_its_outcome_is_not_reported(working: Start, olga: Client, committed_db: Conn) -> None:
    seen: list[Any] = []
    again = threading.Event()

    def print_label(task: Running) -> Any:
        if task.attempt == 2:
            again.wait(60)
            return {"by": 2}
        while not task.cancelled:
            pass
        try:
            task.check()
        except Conflict as lost:
            seen.append(lost.reason)
        return {"by": 1}

    case = olga.start("printing")
    with working(print_label, lease_seconds=2):
        taken = "SELECT count(*) FROM external_task WHERE status = 'leased' AND attempts = {}"
        eventually(lambda: one(committed_db, taken.format(1)) == 1, "the first lease")
        task = one(committed_db, "SELECT id FROM external_task")
        release_by_operator(committed_db, "external_task", task, actor=OLGA, reason="", request_id=None)
        eventually(lambda: seen, "the function to hear of it")
        eventually(lambda: one(committed_db, taken.format(2)) == 1, "the second lease")
        again.set()
        eventually(lambda: state(committed_db, case) == "check", "the outcome of the second")
    assert (seen, olga.instance(case.id).variables) == (["lease_lost"], {"by": 2})


def test_an_outcome_that_cannot_be_taken_is_a_failure_that_says_so(working: Start, olga: Client, committed_db: Conn) -> None:
    olga.start("printing")
    with working(lambda task: {"": "a variable without a name"}):
        eventually(lambda: one(committed_db, "SELECT max(last_error) FROM external_task"), "the failure")
    assert "expected names of 1 to 255 characters" in one(committed_db, "SELECT last_error FROM external_task")


def test_what_does_not_end_in_time_is_given_up_and_is_anothers_at_once(working: Start, olga: Client, committed_db: Conn) -> None:
    never = threading.Event()
    begun = threading.Event()

    def print_label(task: Running) -> None:
        begun.set()
        never.wait(120)

    olga.start("printing")
    with working(print_label, grace_seconds=0.1) as made:
        assert begun.wait(30)
        made.stop()
        eventually(lambda: one(committed_db, "SELECT status FROM external_task") == "available", "the task to be given up")
        never.set()
    row = committed_db.execute("SELECT status, attempts, last_error, available_at <= baton_clock() FROM external_task").fetchone()
    assert row == ("available", 1, "the worker was stopped while it ran this", True)


def test_one_function_for_a_topic_and_at_least_one_at_all() -> None:
    for kind in (Worker, AsyncWorker):
        worker: Any = kind(None)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="at least one topic"):
            outcome = worker.run()
            if inspect.iscoroutine(outcome):
                in_a_loop(outcome)
        worker("print")(lambda task: None)
        with pytest.raises(ValueError, match="expected one function, found two"):
            worker("print")(lambda task: None)


PROGRAM = """
import asyncio, sys, time
from pathlib import Path
from baton_client import AsyncClient, AsyncWorker, Client, Worker

url, key, folder, kind = sys.argv[1:]
folder = Path(folder)

def telling(worker):
    stop = worker.stop
    worker.stop = lambda: (stop(), (folder / "told").touch())
    return worker

if kind == "threads":
    worker = telling(Worker(Client(url, key), slots=1))
    @worker("print")
    def label(task):
        (folder / "begun").touch()
        while not (folder / "gate").exists():
            time.sleep(0.01)
    worker.run()
else:
    async def main():
        worker = telling(AsyncWorker(AsyncClient(url, key), slots=1))
        @worker("print")
        async def label(task):
            (folder / "begun").touch()
            while not (folder / "gate").exists():
                await asyncio.sleep(0.01)
        await worker.run()
    asyncio.run(main())
print("stopped")
"""


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
def test_SIGTERM_ends_a_program_when_what_runs_is_reported_and_nothing_more_is_acquired(
    site: Site, olga: Client, committed_db: Conn, tmp_path: Path, kind: str
) -> None:
    first, second = olga.start("printing"), olga.start("printing")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "client")}
    command = [sys.executable, "-c", PROGRAM, site.url, api_key(committed_db, "olga"), str(tmp_path), kind]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as program:
        eventually((tmp_path / "begun").exists, "the function to run")
        program.send_signal(signal.SIGTERM)
        eventually((tmp_path / "told").exists, "the signal to be heard")
        (tmp_path / "gate").touch()
        said, _ = program.communicate(timeout=60)
    assert (program.returncode, said) == (0, "stopped\n")
    assert {state(committed_db, first), state(committed_db, second)} == {"check", ""}
    assert committed_db.execute("SELECT status, attempts FROM external_task").fetchall() == [("available", 0)]
