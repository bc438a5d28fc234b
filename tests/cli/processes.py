"""`baton …` in processes of its own, and a person who signs in without a browser."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

HERE = Path(__file__).parents[2]
OURS = ("BATON_", "DATABASE_URL", "PYTHONPATH")


def clean_environment(**more: str) -> dict[str, str]:
    """This environment without any configuration of ours, and with `more`."""
    return {name: value for name, value in os.environ.items() if not name.startswith(OURS)} | more


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def until(true: Callable[[], object], what: str, *, seconds: float = 60) -> None:
    """Ask again and again; an AssertionError that names `what` if it does not become true."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.05)


class Up:
    """A `baton up` in a process of its own."""

    def __init__(self, home: Path, **environment: str) -> None:
        self.home = home
        self.log = home.parent / f"{home.name}-{time.monotonic_ns()}.log"
        told = clean_environment(BATON_HOME=str(home), BATON_SAMPLE_PASSWORD="a sample secret") | environment
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "cli.main", "up"], cwd=HERE, env=told, stdout=log, stderr=log, start_new_session=True
            )

    def said(self) -> str:
        return self.log.read_text()

    def wait_until_running(self, *, seconds: float = 120) -> None:
        until(lambda: "Baton is running" in self.said() or self.process.poll() is not None, "baton up runs", seconds=seconds)
        assert self.process.poll() is None, self.said()

    @property
    def url(self) -> str:
        found = re.search(r"Baton is running at (\S+)", self.said())
        assert found, self.said()
        return found[1]

    def stop(self, number: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(timeout=60)


@contextmanager
def running_up(home: Path, **environment: str) -> Iterator[Up]:
    up = Up(home, **environment)
    try:
        up.wait_until_running()
        yield up
    finally:
        if up.process.poll() is None:
            up.stop()


class Person(httpx.Client):
    """Somebody who is signed in."""

    def __init__(self, url: str, username: str, password: str) -> None:
        super().__init__(base_url=url, timeout=20, trust_env=False, follow_redirects=False)
        token = self.token_in(self.get("/login").text)
        answer = self.post("/login", data={"username": username, "password": password, "csrf_token": token})
        assert answer.status_code == 303, (answer.status_code, answer.text[:500])

    @staticmethod
    def token_in(page: str) -> str:
        found = re.search(r'name="csrf_token" value="([^"]+)"', page)
        assert found, "the page holds no CSRF token"
        return found[1]

    def press(self, page: str, action: str, **fields: str) -> httpx.Response:
        """Post `action` with the token of `page`."""
        return self.post(
            action, data={"csrf_token": self.token_in(self.get(page).text), "request_id": f"test-{time.monotonic_ns()}", **fields}
        )
