"""What both clients do with a call beside sending it: the request, the answer, and when to ask again."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, TypeVar

import httpx

from baton_client.calls import Call
from baton_client.errors import BatonError, refused

T = TypeVar("T")

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 10.0
AGAIN = frozenset({429, 502, 503, 504})
"""Answers of a server, or of what stands before it, that is busy or away. Whatever was asked may be asked again under its key."""


class Busy(Exception):
    """To be asked again, no sooner than in `after` seconds."""

    def __init__(self, what: str, after: float = 0.0) -> None:
        super().__init__(what)
        self.after = after


def request_of(http: httpx.Client | httpx.AsyncClient, call: Call[Any]) -> httpx.Request:
    headers = {"Idempotency-Key": call.key} if call.key else {}
    if call.files:
        sent = [("file", (name, content, "application/xml")) for name, content in call.files]
        return http.build_request(call.method, f"/api/v1{call.path}", headers=headers, data=dict(call.body or {}), files=sent)
    return http.build_request(call.method, f"/api/v1{call.path}", headers=headers, params=call.query, json=call.body)


def answer_of(call: Call[T], response: httpx.Response) -> T:
    """What the server answered. Raises Refused for what it refuses, Busy for what is to be asked again, BatonError for nonsense."""
    if response.status_code in AGAIN:
        raise Busy(f"the server answered {response.status_code}", _seconds(response.headers.get("Retry-After", "")))
    try:
        document = response.json() if response.content else {}
    except ValueError as problem:
        raise BatonError(f"{call.method} {call.path}: expected JSON, found {response.status_code} {response.text[:200]!r}") from problem
    if response.is_client_error and isinstance(document, dict):
        raise refused(response.status_code, document)
    if not response.is_success:
        raise BatonError(f"{call.method} {call.path}: the server answered {response.status_code}")
    try:
        return call.answer(document)
    except (ValueError, KeyError, TypeError) as problem:
        raise BatonError(f"{call.method} {call.path}: the answer is not what this client reads: {problem}") from problem


def pauses(tries: int) -> Iterator[float]:
    """Seconds between one try and the next, growing, with jitter; as many as there are further tries."""
    pause = FIRST_PAUSE
    for _ in range(tries - 1):
        yield pause * random.uniform(0.5, 1.0)  # noqa: S311 - jitter
        pause = min(pause * 2, LONGEST_PAUSE)


def _seconds(retry_after: str) -> float:
    return min(float(retry_after), 60.0) if retry_after.isascii() and retry_after.isdigit() else 0.0
