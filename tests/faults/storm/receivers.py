"""The outside world: an HTTP server in a process of its own that writes down every call, then answers.

    python -m tests.faults.storm.receivers PORT_FILE LOG

Each fifth path is refused at its first call (503), so that attempts follow attempts without any fault; each eighth one
keeps its caller waiting. It never forgets and never deduplicates: that is what the checker looks at.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.worker.processes import eventually


class Outside:
    """The receiver's process and what it wrote down."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "received"
        port = folder / "receiver.port"
        self._process = subprocess.Popen([sys.executable, "-m", "tests.faults.storm.receivers", str(port), str(self.log)])
        eventually(port.exists, "the receiver to listen")
        self.url = f"http://127.0.0.1:{port.read_text()}"

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


def effects(*logs: Path) -> list[tuple[str, str]]:
    """(idempotency key, path) of every call and every run, from the logs of both kinds."""
    lines = [line for log in logs if log.exists() for line in log.read_text().splitlines()]
    return [(key, path) for key, path in (line.split(" ", 1) for line in lines)]


class _Handler(BaseHTTPRequestHandler):
    log: int
    refused: set[str] = set()
    lock = threading.Lock()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"] or 0))
        # One write to a file opened for appending: lines of several threads do not mix, and a kill loses none.
        os.write(self.log, f"{self.headers['Idempotency-Key']} {self.path}\n".encode())
        mark = sum(self.path.encode())
        with self.lock:
            refuse = mark % 5 == 0 and self.path not in self.refused
            self.refused.add(self.path)
        if mark % 8 == 0:
            time.sleep(0.8)
        self.send_response(503 if refuse else 200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(b'{"done": true}')

    def log_message(self, *args: Any) -> None:
        """Silence: the log is the one above."""


class _Server(ThreadingHTTPServer):
    request_queue_size = 128

    def handle_error(self, *args: Any) -> None:
        """A caller that was killed hangs up in the middle; that is what a storm does."""


def main(port_file: str, log: str) -> None:
    _Handler.log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    server = _Server(("127.0.0.1", 0), _Handler)
    Path(port_file + ".new").write_text(str(server.server_address[1]))
    Path(port_file + ".new").rename(port_file)
    server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
