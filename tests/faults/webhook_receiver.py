"""A receiver of webhooks that misbehaves: it writes down each id that arrives, and at the first attempt of each does what its path says.

    python -m tests.faults.webhook_receiver PORT STRANGER_PORT SECRET LOG

`/hooks/MOOD/…`: fine, dies, hangs, inward, nearby, nonsense, gigabyte, for_ever, secret, away. Each later attempt is answered 200.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from standardwebhooks import Webhook

INNER_SECRET = "what nobody outside shall read"
PATIENCE = 60.0


class Handler(BaseHTTPRequestHandler):
    log: int
    secret: str
    stranger: int
    seen: set[str]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        key = str(self.headers["webhook-id"])
        Webhook(self.secret).verify(body, dict(self.headers))  # raises, and then nothing is written down
        first = key not in self.seen
        self.seen.add(key)
        os.write(self.log, f"{key} {self.path}\n".encode())
        getattr(self, self.path.split("/")[2] if first else "fine")()

    def fine(self) -> None:
        self.answer(200)

    def dies(self) -> None:
        os._exit(1)

    def hangs(self) -> None:
        time.sleep(PATIENCE)

    def inward(self) -> None:
        self.answer(302, location="http://169.254.169.254/latest/meta-data")

    def nearby(self) -> None:
        self.answer(307, location=f"http://127.0.0.2:{self.stranger}/nearby")

    def away(self) -> None:
        self.answer(307, location=f"http://127.0.0.1:{self.stranger}/away")

    def nonsense(self) -> None:
        self.wfile.write(b"\x00\xff\r\n" * 100)

    def gigabyte(self) -> None:
        self.answer(200, size=1_000_000_000)
        for _ in range(1_000):
            self.wfile.write(b"x" * 1_000_000)

    def for_ever(self) -> None:
        self.answer(200, size=1_000_000)
        for _ in range(int(PATIENCE * 20)):
            self.wfile.write(b"x")
            time.sleep(0.05)

    def secret_answer(self) -> None:
        self.answer(500, body=INNER_SECRET.encode())

    def answer(self, status: int, *, location: str = "", size: int | None = None, body: bytes = b"") -> None:
        self.send_response(status)
        if location:
            self.send_header("Location", location)
        self.send_header("Content-Length", str(len(body) if size is None else size))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Silence: the log is the one above."""


class Stranger(BaseHTTPRequestHandler):
    """Another server, to which redirects lead. It writes down whether anything came that was meant for the first."""

    log: int

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"] or 0))
        meant = sorted(name.lower() for name in self.headers if name.lower().startswith(("webhook-", "authorization", "x-", "baton-")))
        os.write(self.log, f"{self.headers['Idempotency-Key']} stranger{self.path} {','.join(meant)}\n".encode())
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: Any) -> None:
        """Silence."""


class Server(ThreadingHTTPServer):
    request_queue_size = 128

    def handle_error(self, *args: Any) -> None:
        """A caller that has had enough hangs up; that is what these tests are about."""


class EveryAddress(Server):
    address_family = socket.AF_INET


def main(port: str, stranger: str, secret: str, log: str) -> None:
    Handler.log = Stranger.log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    Handler.secret, Handler.stranger = secret, int(stranger)
    Handler.seen = {line.split()[0] for line in Path(log).read_text().splitlines()}  # what it knew before it died
    other = EveryAddress(("", int(stranger)), Stranger)
    threading.Thread(target=other.serve_forever, daemon=True).start()
    Server(("127.0.0.1", int(port)), Handler).serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
