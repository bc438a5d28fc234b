"""HTTP to the outside, on somebody else's say-so: the URL comes from a model or a variable.

Every connection is checked where it is made: the name is resolved, the address checked, and that very address
connected to, so that no second resolution can slip another one in. Public addresses on the usual ports only, besides
the networks that BATON_ALLOWED_NETWORKS names. Redirects are followed only where the rules say so, each hop checked as
the first. One deadline covers the whole exchange with all its hops, one limit the answer. No proxy from the environment
is used: it would connect on our behalf, unchecked.
"""

from __future__ import annotations

import re
import socket
import ssl
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from functools import cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from queue import Empty, SimpleQueue
from typing import Any

import httpcore
import httpx

from engine.config import Network, Settings

NAT64 = IPv6Network("64:ff9b::/96")
LONGEST_RETRY_AFTER = 86_400.0
V4_COMPATIBLE = IPv6Network("::/96")
REDIRECTS = frozenset({301, 302, 303, 307, 308})
TO_ANOTHER_HOST = frozenset({"content-type", "accept", "user-agent", "idempotency-key", "accept-encoding"})
ABOUT_THE_BODY = frozenset({"content-type", "content-encoding", "content-language", "webhook-id", "webhook-timestamp", "webhook-signature"})
OURS = frozenset({"host", "content-length", "transfer-encoding", "connection", "accept-encoding", "idempotency-key"})


class TargetRefused(Exception):
    """The target is not one that Baton calls. Retrying changes nothing unless names or settings do."""


class AnswerTooLarge(Exception):
    """The answer is longer than the rules allow; the rest was not read."""


class TooManyRedirects(Exception):
    """One more than the rules allow."""


@dataclass(frozen=True, slots=True)
class Rules:
    networks: tuple[Network, ...]
    ports: tuple[int, ...]
    seconds: float
    max_bytes: int
    redirects: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")

    @property
    def retry_after(self) -> float | None:
        """What the answer asks for, in seconds from its own date; None if it asks for nothing."""
        return _seconds(self.headers.get("retry-after", ""), self.headers.get("date", ""))


def rules_of(settings: Settings) -> Rules:
    return Rules(settings.allowed_networks, settings.allowed_ports, settings.http_seconds, settings.http_max_bytes)


def fetch(method: str, url: str, *, headers: Mapping[str, str], body: bytes | None, rules: Rules, key: str) -> Answer:
    """Do one exchange, with the redirects that the rules allow. `key` travels as Idempotency-Key at every attempt.

    Raises TargetRefused, AnswerTooLarge, TooManyRedirects, ValueError (no usable URL or header), httpx.HTTPError (incl. timeouts).
    """
    target = _target(url)
    sent = {name: value for name, value in headers.items() if name.lower() not in OURS}
    sent |= {"Idempotency-Key": key, "Accept-Encoding": "identity"}
    sent.setdefault("User-Agent", "Baton")
    for name, value in sent.items():
        if any(sign in name + value for sign in "\r\n\0"):
            raise ValueError(f"header {name!r}: expected one line, found {value!r}")
    deadline = time.monotonic() + rules.seconds
    hop = _Hop(method, target, sent, body)
    for _ in range(rules.redirects):
        answer = _exchange(hop, rules, deadline)
        if answer.status not in REDIRECTS or "location" not in answer.headers:
            return answer
        hop = _redirected(hop, answer.status, answer.headers["location"])
    answer = _exchange(hop, rules, deadline)
    if rules.redirects and answer.status in REDIRECTS:
        raise TooManyRedirects(f"expected at most {rules.redirects} redirects, found another")
    return answer


@dataclass(frozen=True, slots=True)
class _Hop:
    method: str
    url: httpx.URL
    headers: Mapping[str, str]
    body: bytes | None


def _exchange(hop: _Hop, rules: Rules, deadline: float) -> Answer:
    """One request and its answer. The body of a redirect is nothing that anybody reads."""
    with (
        httpx.Client(transport=_Transport(rules, deadline), timeout=rules.seconds, follow_redirects=False, trust_env=False) as client,
        client.stream(hop.method, hop.url, headers=hop.headers, content=hop.body) as response,
    ):
        body = b"" if response.status_code in REDIRECTS else _read(response, rules, deadline)
        return Answer(response.status_code, dict(response.headers), body)


def _redirected(hop: _Hop, status: int, location: str) -> _Hop:
    """The next hop (RFC 9110, 15.4): 303 asks with GET and without a body, the others repeat the request as it was.

    Another host, port or scheme gets no credentials, no signature and nothing else that was meant for the first.
    """
    try:
        target = _target(str(hop.url.join(location)))
    except (httpx.InvalidURL, ValueError) as problem:
        raise TargetRefused(f"a redirect leads nowhere: {problem}") from None
    if hop.url.scheme == "https" and target.scheme != "https":
        raise TargetRefused("a redirect leads from https:// to http://")
    if status == 303 and hop.method != "HEAD":
        kept = {name: value for name, value in hop.headers.items() if name.lower() not in ABOUT_THE_BODY}
        hop = _Hop("GET", hop.url, kept, None)
    if _origin(target) == _origin(hop.url):
        return replace(hop, url=target)
    kept = {name: value for name, value in hop.headers.items() if name.lower() in TO_ANOTHER_HOST}
    return replace(hop, url=target.copy_with(username="", password=""), headers=kept)


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def without_secrets(url: str) -> str:
    """The URL as messages may show it: no user, no password, no query."""
    return re.sub(r"//[^/@]*@", "//", url.partition("?")[0].partition("#")[0])


def _target(url: str) -> httpx.URL:
    shown = without_secrets(url)
    try:
        target = httpx.URL(url)
    except httpx.InvalidURL as problem:
        raise ValueError(f"url: expected http:// or https://, found {shown!r} ({problem})") from None
    if target.scheme not in ("http", "https") or not target.host:
        raise ValueError(f"url: expected http:// or https:// and a host, found {shown!r}")
    return target


def _read(response: httpx.Response, rules: Rules, deadline: float) -> bytes:
    parts, size = [], 0
    for part in response.iter_raw():
        size += len(part)
        if size > rules.max_bytes:
            raise AnswerTooLarge(f"expected an answer of at most {rules.max_bytes} bytes, found more")
        if time.monotonic() > deadline:
            raise httpx.ReadTimeout(f"the answer was not complete after {rules.seconds:g} s")
        parts.append(part)
    return b"".join(parts)


def _seconds(retry_after: str, date: str) -> float | None:
    if retry_after.isascii() and retry_after.strip().isdigit():  # "²" is a digit, and no number
        return min(float(retry_after), LONGEST_RETRY_AFTER)
    try:
        wait = (parsedate_to_datetime(retry_after) - parsedate_to_datetime(date)).total_seconds()
    except (ValueError, TypeError):
        return None
    return min(max(wait, 0.0), LONGEST_RETRY_AFTER)


# ---- the check, where connections are made


def check_address(address: str, port: int, rules: Rules) -> None:
    """Raise TargetRefused unless this very address and port may be connected to."""
    found = ip_address(address.split("%")[0])
    inner = _inner(found)
    if any(each in network for each in (found, inner) for network in rules.networks if each.version == network.version):
        return
    if not (found.is_global and inner.is_global) or inner.is_multicast or found.is_multicast:
        raise TargetRefused(f"{address} is not a public address, and no allowed network holds it")
    if port not in rules.ports:
        raise TargetRefused(f"port {port} is not allowed; expected one of {', '.join(map(str, rules.ports))}")


def _inner(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """The IPv4 address that an IPv6 one stands for, or itself."""
    if isinstance(address, IPv4Address):
        return address
    if address in NAT64 or (address in V4_COMPATIBLE and int(address) > 1):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else address)


def _resolved(host: str, port: int, seconds: float) -> list[Any]:
    """What socket.getaddrinfo says, within `seconds`: it knows no deadline, so a thread of its own waits for it to the end."""
    answers: SimpleQueue[list[Any] | OSError | UnicodeError] = SimpleQueue()

    def ask() -> None:
        try:
            answers.put(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as problem:
            answers.put(problem)

    threading.Thread(target=ask, name="resolve", daemon=True).start()
    try:
        found = answers.get(timeout=seconds)
    except Empty:
        raise httpcore.ConnectTimeout(f"{host}: no address after {seconds:g} s") from None
    if isinstance(found, Exception):
        raise found
    return found


class _Backend(httpcore.NetworkBackend):
    """Resolves, checks and connects; what it returns keeps to the one deadline."""

    def __init__(self, rules: Rules, deadline: float) -> None:
        self._rules, self._deadline = rules, deadline
        self._inner = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        try:
            found = _resolved(host, port, self._left(timeout, httpcore.ConnectTimeout))
        except (OSError, UnicodeError) as problem:
            raise httpcore.ConnectError(f"{host}: {problem}") from problem
        refusal: TargetRefused | None = None
        failure: Exception | None = None
        for address in dict.fromkeys(str(each[4][0]) for each in found):
            try:
                check_address(address, port, self._rules)
                stream = self._inner.connect_tcp(address, port, self._left(timeout, httpcore.ConnectTimeout), local_address, socket_options)
            except TargetRefused as problem:
                refusal = TargetRefused(f"{host}: {problem}")
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as problem:
                failure = problem
            else:
                return _Stream(stream, self._left)
        raise failure or refusal or httpcore.ConnectError(f"{host}: no address")

    def connect_unix_socket(self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None) -> Any:
        raise TargetRefused("local sockets are not called")

    def _left(self, timeout: float | None, expired: type[Exception]) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise expired(f"not done after {self._rules.seconds:g} s")
        return left if timeout is None else min(left, timeout)


class _Stream(httpcore.NetworkStream):
    """A connection whose every read and write ends at the deadline: a drip of bytes cannot hold a worker."""

    def __init__(self, stream: httpcore.NetworkStream, left: Any) -> None:
        self._stream, self._left = stream, left

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._left(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._left(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None) -> Any:
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, self._left(timeout, httpcore.ConnectTimeout)), self._left)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


@cache
def _tls() -> ssl.SSLContext:
    # Loading the certificates takes tens of milliseconds: once a process.
    return httpx.create_ssl_context(trust_env=False)


class _Transport(httpx.HTTPTransport):
    """httpx with our way of connecting. Its pool is replaced, which a test watches: httpx has no argument for it."""

    def __init__(self, rules: Rules, deadline: float) -> None:
        super().__init__(verify=_tls(), trust_env=False)
        self._pool = httpcore.ConnectionPool(ssl_context=_tls(), max_connections=1, network_backend=_Backend(rules, deadline))
