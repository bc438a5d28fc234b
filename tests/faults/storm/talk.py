"""How the driver talks to the web servers: as a client that asks again under the same request id until it is answered."""

from __future__ import annotations

import random
import re
import threading
import time
from collections.abc import Sequence
from typing import Any

import httpx

from tests.faults.storm.journal import Journal

TOKEN = re.compile(r'name="csrf_token" value="([^"]+)"')
PRESS = re.compile(r'name="request_id" value="([^"]+)"')
ASK_AGAIN = (502, 503, 504)
LONGEST = 150.0  # seconds until somebody who gets no answer gives up, which the checker reports


class GivenUp(Exception):
    """Nobody answered for LONGEST seconds."""


class Talker:
    """Somebody with a cookie jar or an API key. Every question goes to some web server; who does not answer is left for another."""

    def __init__(self, name: str, servers: Sequence[str], journal: Journal, *, seed: str, key: str | None = None) -> None:
        self.name, self.journal = name, journal
        self.chance = random.Random(f"{seed} {name}")
        self._servers = servers
        self._made = threading.Event()
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        # Half-open lines are part of the storm: whoever waits for an answer does so for seconds, not for ever.
        self._client = httpx.Client(timeout=httpx.Timeout(6.0, connect=2.0), trust_env=False, follow_redirects=False, headers=headers)
        self.unanswered = 0

    # ---- with a journal: what changes something

    def change(self, what: str, path: str, about: dict[str, Any], *, request: str | None = None, **sent: Any) -> tuple[int, dict[str, Any]]:
        """Ask until there is an answer. `request`: its id, made unless given; sent as Idempotency-Key unless a form carries it."""
        request = request or f"{self.name}-{self.chance.getrandbits(48):x}"
        number = self.journal.asking(self.name, what, request, about)
        if "data" not in sent:
            sent["headers"] = {"Idempotency-Key": request}
        answer = self._until_answered("POST", path, number=number, **sent)
        body = answer.json() if "json" in answer.headers.get("content-type", "") else {}
        if answer.status_code >= 500 or answer.status_code == 400:
            body = {"text": answer.text[:300], **body}
        self.journal.answered(number, answer.status_code, body)
        return answer.status_code, body

    # ---- without: what only looks

    def get(self, path: str, **query: Any) -> httpx.Response:
        return self._until_answered("GET", path, params=query or None)

    def items(self, path: str, **query: Any) -> list[dict[str, Any]]:
        answer = self.get(path, **query)
        assert answer.status_code == 200, f"GET {path}: expected 200, found {answer.status_code} {answer.text[:300]}"
        found: list[dict[str, Any]] = answer.json()["items"]
        return found

    def sign_in(self, password: str) -> None:
        token = TOKEN.search(self.get("/login").text)
        assert token is not None
        form = {"username": self.name, "password": password, "csrf_token": token[1]}
        answer = self._until_answered("POST", "/login", data=form)
        assert answer.status_code == 303, f"{self.name}: expected to be signed in, found {answer.status_code}"

    # ---- one question, again and again

    def _until_answered(self, method: str, path: str, *, number: int | None = None, **sent: Any) -> httpx.Response:
        end = time.monotonic() + LONGEST
        pause = 0.05
        while True:
            server = self.chance.choice(self._servers)
            try:
                if number is not None:
                    self.journal.sending(number)
                answer = self._client.request(method, server + path, **sent)
                if answer.status_code not in ASK_AGAIN:
                    return answer
            except httpx.TransportError:
                pass
            self.unanswered += 1
            if time.monotonic() > end:
                raise GivenUp(f"{self.name}: no answer to {method} {path} within {LONGEST:g} s")
            time.sleep(pause)
            pause = min(pause * 2, 1.0)
