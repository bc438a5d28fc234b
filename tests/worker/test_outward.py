"""S68: HTTP to the outside is checked where connections are made, bounded in time and size, and never redirected."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from ipaddress import ip_network

import httpx
import pytest

from worker.outward import AnswerTooLarge, Rules, TargetRefused, check_address, fetch, without_secrets

PUBLIC_ONLY = Rules((), (80, 443), 2.0, 10_000)
HERE_TOO = Rules((ip_network("127.0.0.0/8"),), (80, 443), 2.0, 10_000)

Talk = Callable[[socket.socket], None]


class Server:
    """A TCP server that says what a test tells it to, and keeps what it heard."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.heard: list[bytes] = []
        self.talk: Talk = answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            with connection, suppress(OSError):  # the caller hangs up, which is what some tests want
                self.heard.append(connection.recv(65536))
                self.talk(connection)


def answering(answer: bytes) -> Talk:
    return lambda connection: connection.sendall(answer)


def for_ever(first: bytes, drip: bytes) -> Talk:
    def talk(connection: socket.socket) -> None:
        connection.sendall(first)
        while True:
            connection.sendall(drip)
            time.sleep(0.05)

    return talk


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.socket.close()


def get(url: str, rules: Rules = HERE_TOO):
    return fetch("GET", url, headers={}, body=None, rules=rules, key="delivery-1")


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1%eth0",
        "fd00::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::7f00:1",
        "2002:7f00:1::1",
    ],
)
def test_S68_an_address_that_is_not_public_is_refused_in_every_disguise(address):
    with pytest.raises(TargetRefused, match="is not a public address"):
        check_address(address, 443, PUBLIC_ONLY)


def test_S68_public_addresses_may_be_reached_on_the_usual_ports_only():
    for address in ("93.184.216.34", "2606:2800:220:1::1", "64:ff9b::5db8:d822"):
        check_address(address, 443, PUBLIC_ONLY)
    with pytest.raises(TargetRefused, match="port 22 is not allowed"):
        check_address("93.184.216.34", 22, PUBLIC_ONLY)


def test_S68_an_allowed_network_may_be_reached_on_any_port():
    rules = Rules((ip_network("10.1.0.0/16"),), (443,), 1.0, 10)
    check_address("10.1.2.3", 22, rules)
    check_address("::ffff:10.1.2.3", 22, rules)
    with pytest.raises(TargetRefused):
        check_address("10.2.2.3", 443, rules)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]"])
def test_S68_the_check_sees_the_address_that_a_name_or_number_stands_for(server, host):
    with pytest.raises(TargetRefused):
        get(f"http://{host}:{server.port}/", PUBLIC_ONLY)
    assert server.heard == []


def test_S68_the_very_address_that_was_checked_is_connected_to(server, monkeypatch):
    """A second resolution, answering otherwise, must not happen."""
    asked = []

    def resolve(host, port, *args, **kwargs):
        asked.append(host)
        address = "127.0.0.1" if len(asked) == 1 else "169.254.169.254"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    real = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *a, **k: resolve(host, *a, **k) if host == "shop.test" else real(host, *a, **k))
    assert get(f"http://shop.test:{server.port}/").status == 200
    assert asked == ["shop.test"]
    assert f"Host: shop.test:{server.port}".encode().lower() in server.heard[0].lower()


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://example.org/", "gopher://x", "//example.org/", "", "http://"])
def test_S68_only_http_and_https_are_called(url):
    with pytest.raises(ValueError, match="url: expected http:// or https://"):
        get(url)


def test_messages_show_neither_password_nor_query():
    assert without_secrets("https://me:hunter2@shop.test/a?token=hunter2#x") == "https://shop.test/a"
    with pytest.raises(ValueError, match="url:") as caught:
        get("ftp://me:hunter2@shop.test/?token=hunter2")
    assert "hunter2" not in str(caught.value)


def test_S68_a_redirect_is_an_answer_and_not_followed(server):
    server.talk = answering(b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n")
    assert get(f"http://127.0.0.1:{server.port}/").status == 302
    assert len(server.heard) == 1


def test_S68_an_answer_without_end_is_cut_at_the_size_limit(server):
    server.talk = for_ever(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 20_000)
    with pytest.raises(AnswerTooLarge, match="at most 10000 bytes"):
        get(f"http://127.0.0.1:{server.port}/")


@pytest.mark.parametrize("first", [b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nX-Slow: "], ids=["body", "headers"])
def test_S68_a_drip_of_bytes_ends_at_the_deadline(server, first):
    server.talk = for_ever(first, b"x")
    begun = time.monotonic()
    with pytest.raises(httpx.TimeoutException):
        get(f"http://127.0.0.1:{server.port}/")
    assert time.monotonic() - begun < 4


def test_S68_a_name_that_nobody_resolves_ends_at_the_deadline(monkeypatch):
    answered = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: answered.wait(30))
    begun = time.monotonic()
    with pytest.raises(httpx.ConnectTimeout, match=r"shop\.test: no address"):
        get("http://shop.test/")
    assert time.monotonic() - begun < 4
    answered.set()


def test_a_proxy_of_the_environment_is_not_used(server, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://192.0.2.1:3128")
    monkeypatch.setenv("http_proxy", "http://192.0.2.1:3128")
    assert get(f"http://127.0.0.1:{server.port}/").text == "ok"


def test_R7_the_key_is_ours_whatever_the_model_says(server):
    given = {"idempotency-key": "mine", "Content-Length": "9999", "Host": "elsewhere", "X-Order": "7"}
    fetch("POST", f"http://127.0.0.1:{server.port}/", headers=given, body=b"{}", rules=HERE_TOO, key="delivery-1")
    heard = server.heard[0].decode().lower()
    assert "idempotency-key: delivery-1" in heard
    assert "mine" not in heard
    assert "elsewhere" not in heard
    assert "9999" not in heard
    assert "x-order: 7" in heard


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (b"Retry-After: 7\r\n", 7.0),
        (b"Retry-After: 99999999\r\n", 86_400.0),
        (b"Retry-After: Sun, 29 Nov 2026 10:01:00 GMT\r\nDate: Sun, 29 Nov 2026 10:00:00 GMT\r\n", 60.0),
        (b"Retry-After: Sun, 29 Nov 2026 09:59:00 GMT\r\nDate: Sun, 29 Nov 2026 10:00:00 GMT\r\n", 0.0),
        (b"Retry-After: Sun, 29 Nov 2036 10:00:00 GMT\r\nDate: Sun, 29 Nov 2026 10:00:00 GMT\r\n", 86_400.0),
        (b"Retry-After: Sun, 29 Nov 2026 10:01:00 GMT\r\n", None),  # from when, it does not say
        (b"Retry-After: " + b"9" * 400 + b"\r\n", 86_400.0),
        (b"Retry-After: 0\r\n", 0.0),
        (b"Retry-After: -5\r\n", None),
        (b"Retry-After: 1.5\r\n", None),  # RFC 9110, 10.2.3: whole seconds
        (b"Retry-After: 7, 9\r\n", None),
        (b"Retry-After: soon\r\n", None),
        (b"Retry-After: \xb2\r\n", None),
        (b"", None),
    ],
)
def test_retry_after_is_read_in_both_its_forms(server, headers, expected):
    server.talk = answering(b"HTTP/1.1 503 Busy\r\n" + headers + b"Content-Length: 0\r\n\r\n")
    assert get(f"http://127.0.0.1:{server.port}/").retry_after == expected
