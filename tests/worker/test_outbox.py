"""One delivery, sent: what the other side gets, and what is made of its answer."""

from __future__ import annotations

import json
import smtplib
import threading
from collections.abc import Iterator
from email import message_from_bytes
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network
from typing import Any

import pytest

from engine.config import Settings
from worker import mail
from worker.calling import Delivered, Failed
from worker.outbox import send

SETTINGS = Settings(allowed_networks=(ip_network("127.0.0.1"),), http_seconds=3.0)


class Shop(ThreadingHTTPServer):
    """Answers with `status` and `extra` headers; keeps every request."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Shopkeeper)
        self.status, self.extra, self.requests = 200, {}, []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/orders"


class Shopkeeper(BaseHTTPRequestHandler):
    server: Shop

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        self.server.requests.append((self.path, dict(self.headers), body))
        self.send_response(self.server.status)
        for name, value in self.server.extra.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(b'{"ok": true}')

    do_PUT = do_POST

    def log_message(self, *args: Any) -> None:
        """Silence: the test output is for pytest."""


@pytest.fixture
def shop() -> Iterator[Shop]:
    made = Shop()
    yield made
    made.shutdown()
    made.server_close()


def test_R7_every_attempt_carries_the_delivery_id(shop):
    request = {"method": "put", "url": shop.url, "headers": {"X-Order": 7, "baton-delivery-id": "forged"}, "body": {"amount": 10.5}}
    assert all(isinstance(send("http", "d-1", request, SETTINGS), Delivered) for _ in range(2))
    for _, headers, body in shop.requests:
        assert headers["Idempotency-Key"] == headers["Baton-Delivery-Id"] == "d-1"
        assert headers["X-Order"] == "7"
        assert headers["Content-Type"] == "application/json"
        assert json.loads(body) == {"amount": 10.5}


def test_what_was_answered_is_kept_in_part(shop):
    outcome = send("http", "d-1", {"url": shop.url, "body": "text"}, SETTINGS)
    assert isinstance(outcome, Delivered)
    assert outcome.response["status"] == 200
    assert outcome.response["body"] == '{"ok": true}'


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (503, Failed("answered 503", retry_in=7.0)),
        (429, Failed("answered 429", retry_in=7.0)),
        (400, Failed("answered 400", final=True)),
        (404, Failed("answered 404", final=True)),
        (302, Failed("answered 302: redirects are not followed", final=True)),
    ],
)
def test_an_answer_outside_2xx_fails_and_shows_nothing_of_its_body(shop, status, expected):
    shop.status, shop.extra = status, {"Retry-After": "7", "Location": "http://169.254.169.254/"}
    assert send("http", "d-1", {"url": shop.url, "body": {}}, SETTINGS) == expected
    assert len(shop.requests) == 1


def test_S68_a_refused_target_is_a_failure_with_a_reason(shop):
    outcome = send("http", "d-1", {"url": shop.url}, Settings())
    assert outcome == Failed("127.0.0.1: 127.0.0.1 is not a public address, and no allowed network holds it")
    assert shop.requests == []


@pytest.mark.parametrize("request_", [{}, {"url": "nonsense"}, {"url": "http://127.0.0.1/", "headers": {"X": "a\r\nb"}}, {"url": 7}])
def test_a_request_that_cannot_be_sent_is_final(request_):
    outcome = send("http", "d-1", request_, SETTINGS)
    assert isinstance(outcome, Failed)
    assert outcome.final


def test_nobody_listening_is_worth_another_try():
    outcome = send("http", "d-1", {"url": "http://127.0.0.1:9/"}, SETTINGS)
    assert isinstance(outcome, Failed)
    assert outcome.error.startswith("ConnectError")
    assert not outcome.final


# ---- mail


class Mailbox:
    """Stands where smtplib's client stands; keeps what was handed over, or refuses."""

    refusal: Exception | None = None
    sent: list[Any] = []

    def __init__(self, host: str, port: int, timeout: float) -> None:
        self.where = (host, port, timeout)

    def __enter__(self) -> Mailbox:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def send_message(self, message: Any) -> dict[str, Any]:
        if self.refusal:
            raise self.refusal
        self.sent.append(message_from_bytes(message.as_bytes()))
        return {}


@pytest.fixture
def mailbox(monkeypatch) -> type[Mailbox]:
    Mailbox.refusal, Mailbox.sent = None, []
    monkeypatch.setattr(mail, "Smtp", Mailbox)
    return Mailbox


MAIL = Settings.from_env({"BATON_MAIL_SERVER": "127.0.0.1:2525", "BATON_MAIL_FROM": "baton@shop.test"})


def test_R7_a_mail_has_the_same_message_id_at_every_attempt(mailbox):
    request = {"to": ["ada@shop.test", "bo@shop.test"], "subject": "Ordered: 7 chairs", "text": "Grüße"}
    for _ in range(2):
        assert send("mail", "d-1", request, MAIL) == Delivered({"message_id": "<d-1@shop.test>"})
    first, second = mailbox.sent
    assert first["Message-ID"] == second["Message-ID"] == "<d-1@shop.test>"
    assert first["To"] == "ada@shop.test, bo@shop.test"
    assert first.get_payload(decode=True).decode() == "Grüße\n"


def test_line_ends_do_not_get_into_headers(mailbox):
    outcome = send("mail", "d-1", {"to": "ada@shop.test", "subject": "x\r\nBcc: all@shop.test"}, MAIL)
    assert isinstance(outcome, Failed)
    assert outcome.final
    assert mailbox.sent == []


@pytest.mark.parametrize(("code", "final"), [(451, False), (550, True)])
def test_a_mail_server_that_says_later_is_asked_again_one_that_says_no_is_not(mailbox, code, final):
    mailbox.refusal = smtplib.SMTPDataError(code, b"not now")
    assert send("mail", "d-1", {"to": "ada@shop.test"}, MAIL) == Failed(f"the mail server answered {code} not now", final=final)


def test_without_a_mail_server_a_mail_fails_and_says_why():
    assert send("mail", "d-1", {"to": "ada@shop.test"}, SETTINGS) == Failed("no mail server: BATON_MAIL_SERVER is not set")
