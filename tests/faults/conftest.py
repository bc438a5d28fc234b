"""One load for each fault test: receiver, driver and watch around whatever the test does to its workers."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engine.db.session import connect
from tests.faults.checker import problems, recovered
from tests.faults.load import Driver, Receiver, Watch
from tests.worker.processes import WorkerProcess, eventually

RECOVERY_SECONDS = 1.5
SLACK_SECONDS = 1.0  # for a machine that has other things to do
# The faults are repeated so often: 1 in the usual run, more for a long one.
ROUNDS = int(os.environ.get("BATON_FAULT_ROUNDS", "1"))

WORKER = {
    "recovery_seconds": str(RECOVERY_SECONDS),
    "allowed_networks": "127.0.0.1/32",
    "handler_processes": "3",
    "worker_slots": "3",
}


class Load:
    """What a fault test works with."""

    def __init__(self, url: Callable[[], str], folder: Path) -> None:
        self.url, self.folder = url, folder
        self.receiver = Receiver(folder)
        self.driver = Driver(url, self.receiver)
        self.watch = Watch(url, recovery_seconds=RECOVERY_SECONDS)
        self.workers: list[WorkerProcess] = []

    def worker(self, name: str, **settings: str) -> WorkerProcess:
        """Start another worker; it is killed at the end of the test at the latest."""
        process = WorkerProcess(self.url(), self.folder / f"{name}.log", **{**WORKER, **settings})
        self.workers.append(process)
        return process

    def goes_on(self, cases: int = 3) -> None:
        """Wait until so many further cases have come to their person's task and been completed."""
        so_far = self.driver.finished()
        eventually(lambda: self.driver.finished() >= so_far + cases, f"{cases} further cases to finish", seconds=60)

    def settle(self, *, some_recovered: bool = True) -> None:
        """End the load, wait until every case has completed, and check everything."""
        self.driver.stop_starting()
        self.driver.join()
        with connect(self.url()) as conn:
            open_work = (
                "SELECT (SELECT count(*) FROM process_instance WHERE status = 'running') + (SELECT count(*) FROM job)"
                " + (SELECT count(*) FROM delivery WHERE status <> 'completed')"
            )
            eventually(lambda: conn.execute(open_work).fetchone() == (0,), "every case and delivery to complete", seconds=90)
            wrong = problems(conn, self.driver, self.receiver)
            assert not wrong, "\n".join(wrong[:20])
            assert not some_recovered or recovered(conn), "no lease was ever taken back: the fault did not happen"
        worst = self.watch.stop()
        assert self.watch.looks > 10
        assert worst <= 2 * RECOVERY_SECONDS + SLACK_SECONDS, f"a lease stayed {worst:.1f} s past its expiry"
        for process in self.workers:
            assert "deadlock detected" not in process.text(), f"a deadlock in {process.log.name}"
            assert "Traceback" not in process.text(), f"an unexpected exception in {process.log.name}"

    def stop(self) -> None:
        for process in self.workers:
            process.kill()
        self.receiver.stop()


@contextmanager
def loaded(url: Callable[[], str], folder: Path) -> Iterator[Load]:
    load = Load(url, folder)
    try:
        load.worker("steady").ready()  # lives all the time, so that there is always one that recovers
        load.driver.start()
        load.watch.start()
        yield load
    except BaseException:
        for process in load.workers:
            print(f"---- {process.log.name}\n{process.text()[-3000:]}")
        raise
    finally:
        load.stop()


@pytest.fixture
def load(database_url: str, tmp_path: Path) -> Iterator[Load]:
    with loaded(lambda: database_url, tmp_path) as made:
        yield made


def wait_until_stopped(process: WorkerProcess, *, seconds: float = 60.0) -> None:
    """Wait until the process has stopped itself (SIGSTOP)."""

    def stopped() -> bool:
        state = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        assert state != "Z", f"{process.log.name}: expected it to stop, and it ended\n{process.text()}"
        return state == "T"

    eventually(stopped, f"{process.log.name} to stop itself", seconds=seconds)


def rest(seconds: float) -> None:
    """Let the load run on for a while. Nothing is staged by it."""
    time.sleep(seconds)
