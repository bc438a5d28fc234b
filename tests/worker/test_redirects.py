"""S68: redirects are followed where the rules say so, and each hop is a call like the first."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network
from typing import Any

import httpx
import pytest
from standardwebhooks import Webhook

from engine.config import Settings
from engine.db.outbox import Destination
from engine.webhooks import new_salt, signing_secret
from worker.calling import Delivered, Failed
from worker.outbox import send
from worker.outward import Answer, Rules, TargetRefused, TooManyRedirects, fetch

HERE_TOO = Rules((ip_network("127.0.0.1/32"),), (80, 443), 3.0, 10_000, redirects=2)
KEY = "the secret key of these tests, long enough"
SETTINGS = Settings(allowed_networks=(ip_network("127.0.0.1/32"),), http_seconds=3.0, secret_key=KEY)


class Host(ThreadingHTTPServer):
    """Answers each path as `answers` says, (status, location), else with 200; keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Asked)
        self.answers: dict[str, tuple[int, str]] = {}
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}{path}"


class Asked(BaseHTTPRequestHandler):
    server: Host

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.requests.append((self.command, self.path, headers, body))
        status, location = self.server.answers.get(self.path, (200, ""))
        self.send_response(status)
        if location:
            self.send_header("Location", location)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_PUT = do_POST

    def log_message(self, *args: Any) -> None:
        """Silence."""


@pytest.fixture
def first() -> Iterator[Host]:
    yield from _host()


@pytest.fixture
def other() -> Iterator[Host]:
    yield from _host()


def _host() -> Iterator[Host]:
    made = Host()
    yield made
    made.shutdown()
    made.server_close()


def post(url: str, rules: Rules = HERE_TOO, **headers: str) -> Answer:
    return fetch("POST", url, headers={"Content-Type": "application/json", **headers}, body=b"{}", rules=rules, key="d-1")


@pytest.mark.parametrize("inward", [
    "http://169.254.169.254/", "http://10.0.0.1/", "http://2130706434/", "http://[::ffff:10.0.0.1]/", "http://[::a00:1]/", "http://0x7f000002/",
])  # fmt: skip
def test_S68_every_hop_of_a_redirect_is_checked_where_its_connection_is_made(first: Host, inward: str) -> None:
    first.answers["/"] = (302, inward)
    with pytest.raises(TargetRefused, match="not a public address"):
        post(first.url("/"))
    first.answers |= {"/": (307, "/second"), "/second": (307, inward)}
    with pytest.raises(TargetRefused, match="not a public address"):
        post(first.url("/"))


@pytest.mark.parametrize("location", ["file:///etc/passwd", "ftp://shop.example/"])
def test_a_redirect_leads_to_http_or_https_or_nowhere_else(first: Host, location: str) -> None:
    first.answers["/"] = (302, location)
    with pytest.raises(TargetRefused):
        post(first.url("/"))
    assert len(first.requests) == 1


def test_a_redirect_does_not_lead_from_https_to_http() -> None:
    from worker.outward import _Hop, _redirected

    hop = _Hop("POST", httpx.URL("https://shop.example/a"), {}, b"")
    with pytest.raises(TargetRefused, match="from https:// to http://"):
        _redirected(hop, 307, "http://shop.example/a")
    assert str(_redirected(hop, 307, "/b").url) == "https://shop.example/b"
    assert str(_redirected(hop, 307, "https://ada:secret@evil.example/").url) == "https://evil.example/"


def test_S68_another_host_gets_no_credentials_no_signature_and_no_header_of_the_model(first: Host, other: Host) -> None:
    """Another port is another host. What goes on at the first host keeps its headers."""
    first.answers |= {"/hooks": (307, "/hooks/moved"), "/hooks/moved": (308, other.url("/away"))}
    salt = new_salt()
    to = Destination("shop", first.url("/hooks"), redirects=2, salts=(salt,))
    given = {"Authorization": "Bearer 1", "Cookie": "a=b", "X-Api-Key": "2", "Content-Type": "application/json"}
    assert isinstance(send("http", "d-1", {"headers": given, "body": {"a": 1}}, SETTINGS, to), Delivered)
    for _, _, headers, body in first.requests:
        assert headers["authorization"] == "Bearer 1"
        assert headers["webhook-id"] == headers["idempotency-key"] == "d-1"
        assert Webhook(signing_secret(KEY, salt)).verify(body, headers) == {"a": 1}
    [(method, _, headers, body)] = other.requests
    assert (method, json.loads(body), headers["idempotency-key"]) == ("POST", {"a": 1}, "d-1")
    ours = {"host", "content-type", "content-length", "connection", "accept", "accept-encoding", "user-agent", "idempotency-key"}
    assert set(headers) <= ours


@pytest.mark.parametrize(("status", "method", "body"), [
    (301, "PUT", b"{}"), (302, "PUT", b"{}"), (307, "PUT", b"{}"), (308, "PUT", b"{}"), (303, "GET", b""),
])  # fmt: skip
def test_S68_a_redirect_repeats_the_request_and_303_asks_with_get(first: Host, status: int, method: str, body: bytes) -> None:
    first.answers["/"] = (status, "/second")
    headers = {"Content-Type": "application/json", "webhook-signature": "v1,of the body"}
    assert fetch("PUT", first.url("/"), headers=headers, body=b"{}", rules=HERE_TOO, key="d-1").status == 200
    asked, _, sent, received = first.requests[-1]
    assert (asked, received) == (method, body)
    assert ("webhook-signature" in sent, "content-type" in sent) == ((False, False) if status == 303 else (True, True))


def test_S68_no_more_redirects_are_followed_than_the_rules_allow_and_one_deadline_is_for_all(first: Host) -> None:
    first.answers |= {"/1": (302, "/2"), "/2": (302, "/3"), "/3": (302, "/4")}
    assert post(first.url("/2")).status == 200
    with pytest.raises(TooManyRedirects):
        post(first.url("/1"))
    assert post(first.url("/1"), replace(HERE_TOO, redirects=0)).status == 302, "not followed is an answer"
    with pytest.raises(httpx.HTTPError):
        post(first.url("/2"), replace(HERE_TOO, seconds=1e-9))
    failed = send("http", "d-1", {"url": first.url("/1")}, SETTINGS, Destination("x", first.url("/1"), redirects=1))
    assert failed == Failed("expected at most 1 redirects, found another", final=True)


# ---- signatures


def test_each_secret_that_is_valid_signs_and_what_a_model_says_of_it_does_not_count(first: Host) -> None:
    salts = (new_salt(), new_salt())
    to = Destination("shop", first.url("/hooks"), salts=salts)
    request = {"url": "/orders", "headers": {"Webhook-Id": "forged", "webhook-signature": "v1,forged"}, "body": {"größe": "10 €"}}
    assert isinstance(send("http", "d-1", request, SETTINGS, to), Delivered)
    [(_, path, headers, body)] = first.requests
    assert (path, headers["webhook-id"]) == ("/hooks/orders", "d-1")
    assert len(headers["webhook-signature"].split(" ")) == 2
    for salt in salts:
        assert Webhook(signing_secret(KEY, salt)).verify(body, headers) == {"größe": "10 €"}


@pytest.mark.parametrize(("request_", "to", "settings", "error"), [
    ({"url": "https://evil.example/"}, True, SETTINGS, "which does not cover https://evil.example/"),
    ({"url": "/orders"}, True, replace(SETTINGS, secret_key=None), "BATON_SECRET_KEY is not set"),
    ({"url": "/orders", "destination": "shop"}, False, SETTINGS, "no destination is registered as 'shop'"),
])  # fmt: skip
def test_what_cannot_be_signed_for_its_destination_is_not_sent(
    first: Host, request_: Any, to: bool, settings: Settings, error: str
) -> None:
    outcome = send("http", "d-1", request_, settings, Destination("shop", first.url("/hooks")) if to else None)
    assert isinstance(outcome, Failed)
    assert error in outcome.error
    assert first.requests == []
