"""One client's process: started on its topics, killed, and heard."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psutil

from tests.clients.house import USER, House
from tests.clients.packages import MADE, Package

POLL_MS = 20_000
LOCK_MS = 4_000  # of the tasks whose lock is extended
HOLD_SECONDS = 5.0


class Client:
    """A process of the package's driver. Its worker id is its own."""

    def __init__(self, house: House, package: Package, number: int, ways: Sequence[str]) -> None:
        self.house, self.package = house, package
        self.worker = f"{package.key}-{number}"
        self._told = house.folder / f"{self.worker}.told"
        self.log = house.folder / f"{self.worker}.log"
        script = {
            "url": house.url,
            "user": USER,
            "password": house.password,
            "token": house.token,
            "worker": self.worker,
            "topics": {way: package.topic(way) for way in ways},
            "told": str(self._told),
            "modules": str(MADE / "node" / "node_modules"),
            "poll_ms": POLL_MS,
            "lock_ms": LOCK_MS,
            "hold_seconds": HOLD_SECONDS,
        }
        with self.log.open("wb") as out:
            self._process = subprocess.Popen(package.command(json.dumps(script)), cwd=house.folder, stdout=out, stderr=out)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def check_alive(self) -> None:
        if self._process.poll() is not None:
            tail = self.log.read_text(errors="replace")[-3000:]
            raise RuntimeError(f"{self.worker} ended by itself with {self._process.returncode}:\n{tail}\n{self.told()[-3:]}")

    def told(self) -> list[dict[str, Any]]:
        if not self._told.exists():
            return []
        return [json.loads(line) for line in self._told.read_text(encoding="utf-8").splitlines()]

    def wait_until_it_waits(self) -> None:
        """It is connected and no poll of it has ended for a second: one is open. One that asks again and again has only to have asked."""
        end = time.monotonic() + 60
        polls, since = self._polls(), time.monotonic()
        while time.monotonic() < end:
            self.check_alive()
            if (found := self._polls()) != polls:
                polls, since = found, time.monotonic()
            if not self.package.waits and polls:
                return
            if self.package.waits and self._is_connected() and time.monotonic() - since >= 1.0:
                return
            time.sleep(0.05)
        raise TimeoutError(f"{self.worker}: expected a poll that stays open, found {polls} ended and the last of them just now")

    def _polls(self) -> int:
        """How many questions for work have been answered, whoever asked: one client runs at a time."""
        asked = " /engine-rest/external-task/fetchAndLock " if self.package.waits else " /engine-rest/external-task "
        return sum(asked in line for line in self.house.access.read_text(encoding="utf-8").splitlines())

    def _is_connected(self) -> bool:
        found = psutil.Process(self._process.pid).net_connections(kind="tcp")
        return any(each.status == "ESTABLISHED" and each.raddr and each.raddr.port == self.house.port for each in found)


@contextmanager
def client(house: House, package: Package, number: int, ways: Sequence[str]) -> Iterator[Client]:
    started = Client(house, package, number, ways)
    try:
        yield started
    finally:
        started.kill()
