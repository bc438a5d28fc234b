"""The outside world: a separate process that writes down each effect (its idempotency key and its path), then answers.

    python -m tests.faults.receiver PORT_FILE LOG

`?wait=1.5` makes it take so long. It never forgets and never deduplicates: that is what the checker looks at.
"""

from __future__ import annotations

import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit


class Handler(BaseHTTPRequestHandler):
    log: int

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"] or 0))
        target = urlsplit(self.path)
        # One write to a file opened for appending: lines of several threads do not mix, and a kill loses none.
        os.write(self.log, f"{self.headers['Idempotency-Key']} {target.path}\n".encode())
        self.send_response(self.status(target.path, target.query))
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(b'{"done": true}')

    def status(self, path: str, query: str) -> int:
        """What it answers, and how long that takes."""
        time.sleep(float(parse_qs(query).get("wait", ["0"])[0]))
        return 200

    def log_message(self, *args: Any) -> None:
        """Silence: the log is the one above."""


class Server(ThreadingHTTPServer):
    request_queue_size = 128

    def handle_error(self, *args: Any) -> None:
        """A caller that was killed hangs up in the middle; that is what these tests do."""


def main(port_file: str, log: str, *, handler: type[Handler] = Handler) -> None:
    handler.log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    server = Server(("127.0.0.1", 0), handler)
    Path(port_file + ".new").write_text(str(server.server_address[1]))
    Path(port_file + ".new").rename(port_file)
    server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
