"""Two small servers for `baton up`, so that the samples really do something: a mail sink and the sample service.

The mail sink speaks enough SMTP to take what is sent and keeps the newest mails as files. The sample service plays the
systems that a company has around its processes (bank, ledger, warehouse, carrier, accounts, calendar): every call is answered after
the delay that was set, or fails as often as was set; a repeated `Idempotency-Key` gets the first answer again and moves
nothing. Both listen on the machine itself only and serve nothing but trying out.

    POST /<system>[/…]       {…} -> {"reference": "BANK-1004", …}; 422 {"error": "over_the_limit"} above the bank's limit
    GET|PUT /settings        {"delay_seconds": 0.2, "failure_percent": 10}
    GET /calls               {"items": [{"at", "system", "key", "status", "repeated", "body"}, …]}, newest first
    GET /mails, /mails/<id>  {"items": [{"id", "at", "to", "from", "subject"}, …]}; one has its "text" too
"""

from __future__ import annotations

import json
import random
import sys
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cli.mailsink import MailBox, MailSink

BANK_LIMIT = 5000
KEPT_CALLS = 200
KEPT_ANSWERS = 20_000
MAX_BODY = 1_000_000
PREFIXES = {"bank": "BANK", "warehouse": "PICK", "shipments": "SHIP", "accounts": "ACC", "ledger": "BOOK", "calendar": "CAL"}


@dataclass(frozen=True)
class Behaviour:
    """How the sample service answers from now on."""

    delay_seconds: float = 0.2
    failure_percent: int = 0

    def changed(self, wanted: Mapping[str, Any]) -> Behaviour:
        """With what `wanted` names. Raises ValueError for what is not in range."""
        delay = float(wanted.get("delay_seconds", self.delay_seconds))
        failures = int(wanted.get("failure_percent", self.failure_percent))
        if not 0 <= delay <= 60:
            raise ValueError(f"delay_seconds: expected 0 to 60, found {delay:g}")
        if not 0 <= failures <= 100:
            raise ValueError(f"failure_percent: expected 0 to 100, found {failures}")
        return replace(self, delay_seconds=delay, failure_percent=failures)


@dataclass(frozen=True)
class Call:
    at: float
    system: str
    key: str
    status: int
    repeated: bool
    body: Any


class SampleService:
    """What the service remembers: its behaviour, the last calls, and the answer that each idempotency key got."""

    def __init__(self, *, seed: int | None = None) -> None:
        self.behaviour = Behaviour()
        self.calls: deque[Call] = deque(maxlen=KEPT_CALLS)
        self._answers: OrderedDict[str, tuple[int, dict[str, Any]]] = OrderedDict()
        self._number = 1000
        self._chance = random.Random(seed)  # noqa: S311 - it decides which sample calls fail
        self._lock = threading.Lock()

    def call(self, system: str, key: str, body: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        """Answer one call: status and body. Failures happen before anything was done, and are not remembered."""
        behaviour = self.behaviour
        time.sleep(behaviour.delay_seconds)
        with self._lock:
            repeated = bool(key) and key in self._answers
            if repeated:
                status, answer = self._answers[key]
            elif self._chance.random() * 100 < behaviour.failure_percent:
                status, answer = (
                    503,
                    {"error": "unavailable", "detail": f"{system} fails {behaviour.failure_percent} % of its calls just now"},
                )
            else:
                status, answer = self._do(system, body)
                if key:
                    self._remember(key, (status, answer))
            self.calls.appendleft(Call(time.time(), system, key, status, repeated, body))
        return status, answer

    def _do(self, system: str, body: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        amount = body.get("amount")
        if system == "bank" and isinstance(amount, int | float) and amount > BANK_LIMIT:
            return 422, {"error": "over_the_limit", "detail": f"The bank takes {BANK_LIMIT} at most."}
        self._number += 1
        return 200, {"reference": f"{PREFIXES.get(system, 'REF')}-{self._number}"}

    def _remember(self, key: str, answer: tuple[int, dict[str, Any]]) -> None:
        self._answers[key] = answer
        while len(self._answers) > KEPT_ANSWERS:
            self._answers.popitem(last=False)


class _Handler(BaseHTTPRequestHandler):
    server: DevServer
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_GET(self) -> None:
        match self.path.strip("/").split("/"):
            case ["settings"]:
                self._answer(200, asdict(self.server.service.behaviour))
            case ["calls"]:
                self._answer(200, {"items": [asdict(call) for call in list(self.server.service.calls)]})
            case ["mails"]:
                self._answer(200, {"items": [mail.summary() for mail in self.server.mails.newest()]})
            case ["mails", number]:
                mail = self.server.mails.find(number)
                self._answer(404, {"error": "no such mail"}) if mail is None else self._answer(200, mail.whole())
            case _:
                self._answer(404, {"error": "no such page"})

    def do_PUT(self) -> None:
        body = self._body()
        if self.path != "/settings" or body is None:
            self._answer(404, {"error": "expected PUT /settings with a JSON object"})
            return
        try:
            self.server.service.behaviour = self.server.service.behaviour.changed(body)
        except (TypeError, ValueError) as problem:
            self._answer(422, {"error": str(problem)})
            return
        self._answer(200, asdict(self.server.service.behaviour))

    def do_POST(self) -> None:
        body = self._body()
        if body is None:
            self._answer(422, {"error": "expected a JSON object"})
            return
        system = self.path.strip("/").split("/")[0] or "other"
        status, answer = self.server.service.call(system, self.headers.get("Idempotency-Key", ""), body)
        self._answer(status, answer)

    def _body(self) -> dict[str, Any] | None:
        """The JSON object that was sent. A page of another site cannot send this content type without being asked."""
        length = int(self.headers.get("Content-Length") or 0)
        if length > MAX_BODY or self.headers.get_content_type() != "application/json":
            self.close_connection = True
            return None
        try:
            found = json.loads(self.rfile.read(length) or b"{}")
        except ValueError:
            return None
        return found if isinstance(found, dict) else None

    def _answer(self, status: int, body: Mapping[str, Any]) -> None:
        payload = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, format: str, *args: Any) -> None:
        """Calls are shown on a page, not in the log."""


class DevServer(ThreadingHTTPServer):
    """The HTTP side: the sample service, its settings, and the mails for the page that shows them."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], service: SampleService, mails: MailBox) -> None:
        super().__init__(address, _Handler)
        self.service = service
        self.mails = mails


def serve(*, mail_port: int, http_port: int, folder: Path) -> None:
    """Serve both until the process is told to end."""
    mails = MailBox(folder)
    sink = MailSink(("127.0.0.1", mail_port), mails)
    web = DevServer(("127.0.0.1", http_port), SampleService(), mails)
    threading.Thread(target=sink.serve_forever, daemon=True).start()
    web.serve_forever()


def main(mail_port: str, http_port: str, folder: str) -> None:
    serve(mail_port=int(mail_port), http_port=int(http_port), folder=Path(folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
