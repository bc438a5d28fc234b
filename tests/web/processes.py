"""Real `baton web` processes for tests: gunicorn with as many children as asked for, watched, stopped, killed."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType

import httpx

from tests.cli.processes import HERE, clean_environment, free_port, until

SECRET = "of these tests alone " * 2


class WebProcess:
    """One `baton web`. Settings by their variables. `tree`, `python`: of another release than this."""

    def __init__(self, database_url: str, log: Path, *, tree: Path = HERE, python: str = sys.executable, **settings: str) -> None:
        port = free_port()
        self.url, self.log = f"http://127.0.0.1:{port}", log
        told = {"DATABASE_URL": database_url, "BATON_LISTEN": f"127.0.0.1:{port}", "BATON_SECRET_KEY": SECRET, "BATON_WEB_PROCESSES": "1"}
        told |= {f"BATON_{name.upper()}": value for name, value in settings.items()}
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                [python, "-m", "cli.main", "web"], cwd=tree, env=clean_environment(**told), stdout=out, stderr=out
            )

    def __enter__(self) -> WebProcess:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.kill()
        if error is not None:
            print(f"---- {self.log.name}\n{self.text()[-5000:]}")

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def status(self, path: str) -> int:
        """Of a GET; 0 while nothing listens."""
        try:
            return httpx.get(f"{self.url}{path}", trust_env=False, timeout=10).status_code
        except httpx.TransportError:
            return 0

    def ready(self) -> WebProcess:
        until(lambda: self.process.poll() is not None or self.status("/health/ready") == 200, f"{self.log.name}: baton web is ready")
        assert self.process.poll() is None, self.text()
        return self

    def terminate(self, *, seconds: float = 40.0) -> int:
        """SIGTERM, and its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def kill(self) -> None:
        """Its children end with it: they notice that their parent is gone."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()
