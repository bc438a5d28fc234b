"""Whether a worker lives, and whether it can work, for whoever runs it: two addresses of a small HTTP server (BATON_WORKER_LISTEN).

/health/live    200 while the process answers; says nothing about the database, so an outage of it restarts no worker
/health/ready   200 if an acquisition has succeeded lately, else 503; 503 while it drains
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any

from engine.config import Address, ConfigurationError

READY, UNAVAILABLE, DRAINING = "ready", "unavailable", "draining"
MOST_AT_ONCE = 32  # whoever asks by more connections at a time is hung up on: a thread each must not become many


class Health:
    """Listens from `start` until the process ends. `state`: what it is asked for each time."""

    def __init__(self, listen: Address, state: Callable[[], str]) -> None:
        self._listen, self._state = listen, state

    def start(self) -> None:
        """Raises ConfigurationError where nothing can listen there."""
        state = self._state

        class Answer(BaseHTTPRequestHandler):
            timeout = 5  # seconds for a request to arrive
            server_version, sys_version = "baton", ""

            def do_GET(self) -> None:
                match self.path.partition("?")[0]:
                    case "/health/live":
                        self._say(200, "live")
                    case "/health/ready":
                        said = state()
                        self._say(200 if said == READY else 503, said)
                    case _:
                        self._say(404, "not found")

            def _say(self, status: int, text: str) -> None:
                body = json.dumps({"status": text}).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *values: Any) -> None:
                """Probes come every few seconds: what they find is logged where it happens."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            address_family = socket.AF_INET6 if ":" in self._listen.host else socket.AF_INET
            free = threading.Semaphore(MOST_AT_ONCE)

            def server_bind(self) -> None:
                TCPServer.server_bind(self)  # HTTPServer asks for its own name besides, which may take as long as a resolver does

            def verify_request(self, *values: Any) -> bool:
                return self.free.acquire(blocking=False)

            def process_request_thread(self, *values: Any) -> None:
                try:
                    super().process_request_thread(*values)
                finally:
                    self.free.release()

            def handle_error(self, *values: Any) -> None:
                """Whoever asked has hung up."""

        try:
            server = Server((self._listen.host, self._listen.port), Answer)
        except OSError as problem:
            raise ConfigurationError(f"BATON_WORKER_LISTEN: expected an address to listen on, found {self._listen}: {problem}") from problem
        threading.Thread(target=server.serve_forever, name="health", daemon=True).start()
