"""Our workers and web servers, each a process on a link of its own, so that faults can pick one of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from abc import ABC, abstractmethod
from pathlib import Path

import httpx

from tests.cli.processes import HERE, clean_environment, free_port
from tests.faults.storm.proxy import Link
from tests.worker.processes import eventually

LEASE_SECONDS = 4.0
RECOVERY_SECONDS = 3.0
WORKER = {
    "BATON_HANDLERS": "tests.faults.storm.handlers",
    "BATON_ALLOWED_NETWORKS": "127.0.0.1/32",
    "BATON_LEASE_SECONDS": f"{LEASE_SECONDS:g}",
    "BATON_RECOVERY_SECONDS": f"{RECOVERY_SECONDS:g}",
    "BATON_HEARTBEAT_SECONDS": "1",
    "BATON_POLL_SECONDS": "0.2",
    "BATON_HANDLER_PROCESSES": "2",
    "BATON_WORKER_SLOTS": "2",
    "BATON_DELIVERY_SLOTS": "2",
    "BATON_HTTP_SECONDS": "5",
    "BATON_UPKEEP_SECONDS": "5",
    "BATON_DRAIN_SECONDS": "3",
}
WEB = {
    "BATON_WEB_PROCESSES": "1",
    "BATON_WEB_THREADS": "12",
    "BATON_POOL_SIZE": "6",
    "BATON_SECRET_KEY": "a secret of the storm that all of its web servers share",
}
GUNICORN = ("-m", "gunicorn", "--no-control-socket", "--config", "python:webapp.gunicorn", "tests.faults.storm.entry:application()")


class Process(ABC):
    """One of ours. It is started again under the same name, with the same link and log."""

    def __init__(self, name: str, link: Link, url: str, folder: Path, environment: dict[str, str]) -> None:
        self.name, self.link, self.log = name, link, folder / f"{name}.log"
        self._environment = clean_environment(DATABASE_URL=url, **environment)
        self._process: subprocess.Popen[bytes] | None = None
        self.stopped = False

    @abstractmethod
    def command(self) -> list[str]:
        """What is started."""

    def start(self, failpoints: str = "") -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command(),
                cwd=HERE,
                env={**self._environment, "BATON_FAILPOINTS": failpoints},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # a group: what it forked dies and stops with it
            )

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """SIGKILL to it and all that it forked."""
        if self._process is None:
            return
        self._signal(signal.SIGKILL)
        self._process.wait()
        self.stopped = False

    def stop(self) -> None:
        if self.alive:
            self._signal(signal.SIGSTOP)
            self.stopped = True

    def go_on(self) -> None:
        self._signal(signal.SIGCONT)
        self.stopped = False

    def terminate(self) -> None:
        """SIGTERM, as at a deployment; a process that does not end is an error."""
        if self._process is not None and self.alive:
            self._process.terminate()
            self._process.wait(90)

    def text(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def _signal(self, number: int) -> None:
        assert self._process is not None
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            return


class Worker(Process):
    def command(self) -> list[str]:
        return [sys.executable, "-m", "tests.faults.storm.entry", "worker"]


class Web(Process):
    def __init__(self, name: str, link: Link, url: str, folder: Path, environment: dict[str, str]) -> None:
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        super().__init__(name, link, url, folder, {**environment, "BATON_LISTEN": f"127.0.0.1:{self.port}"})

    def command(self) -> list[str]:
        return [sys.executable, *GUNICORN]

    def wait_until_ready(self, *, seconds: float = 90) -> None:
        def ready() -> bool:
            assert self.alive, f"{self.name} ended\n{self.text()[-2000:]}"
            try:
                return httpx.get(f"{self.address}/health/ready", timeout=5, trust_env=False).status_code == 200
            except httpx.TransportError:
                return False

        eventually(ready, f"{self.name} to answer", seconds=seconds)
