"""What the driver sent and what it was answered: a line before each request is sent, and one after each answer.

The checker reads the file and nothing of the driver's memory.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any


@dataclass(slots=True)
class Ask:
    """One request under one id, however often it was sent. `status` None: never answered."""

    number: int
    who: str
    what: str  # start | claim | unclaim | complete | acquire | finish | fail | renew | publish | retry | suspend | resume
    request: str
    about: dict[str, Any]
    sent: list[float] = field(default_factory=list)
    status: int | None = None
    body: dict[str, Any] = field(default_factory=dict)
    answered: float = 0.0

    @property
    def done(self) -> bool:
        """Answered with success."""
        return self.status is not None and 200 <= self.status < 400


class Journal:
    """Appends; any thread may write."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("a", encoding="utf-8")
        self._lock = threading.Lock()
        self._numbers = count(1)

    def asking(self, who: str, what: str, request: str, about: dict[str, Any]) -> int:
        """A new request, about to be sent for the first time; its number."""
        number = next(self._numbers)
        self._write({"number": number, "who": who, "what": what, "request": request, "about": about})
        return number

    def sending(self, number: int) -> None:
        self._write({"number": number, "sent": time.monotonic()})

    def answered(self, number: int, status: int, body: dict[str, Any]) -> None:
        self._write({"number": number, "status": status, "body": body, "answered": time.monotonic()})

    def _write(self, line: dict[str, Any]) -> None:
        with self._lock:
            self._file.write(json.dumps(line) + "\n")
            self._file.flush()


def read(path: Path) -> list[Ask]:
    """Everything that was asked, in the order in which it was first sent."""
    asks: dict[int, Ask] = {}
    for line in _lines(path):
        number = line.pop("number")
        if "what" in line:
            asks[number] = Ask(number, **line)
        elif "sent" in line:
            asks[number].sent.append(line["sent"])
        else:
            ask = asks[number]
            ask.status, ask.body, ask.answered = line["status"], line["body"], line["answered"]
    return list(asks.values())


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for text in path.read_text(encoding="utf-8").split("\n")[:-1]:  # what has no end yet is being written
        yield json.loads(text)
