"""What a client says that it did, one JSON line each, for the join with what the rows say. Runs in the clients' environment."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any


class Script:
    """What a driver is to do: where the server is, who it is, and its topic for each way."""

    def __init__(self) -> None:
        given = json.loads(sys.argv[1])
        self.url: str = given["url"]
        self.user: str = given["user"]
        self.password: str = given["password"]
        self.token: str = given["token"]
        self.worker: str = given["worker"]
        self.topics: dict[str, str] = given["topics"]
        self.poll_ms: int = given["poll_ms"]
        self.lock_ms: int = given["lock_ms"]  # of the topic whose locks are extended
        self.hold_seconds: float = given["hold_seconds"]  # longer than that lock
        self._told = Path(given["told"])
        self._lock = threading.Lock()

    def way_of(self, topic: str) -> str:
        return next(way for way, name in self.topics.items() if name == topic)

    def tell(self, did: str, task: str | None, **more: Any) -> None:
        """`did`: took, completed, failed, error, extended, unlocked; refused for what the server would not have."""
        line = json.dumps({"did": did, "task": task, **more}, ensure_ascii=False)
        with self._lock, self._told.open("a", encoding="utf-8") as out:
            out.write(line + "\n")


def answer(variables: dict[str, Any]) -> dict[str, Any]:
    """What a task is completed with: every kind of value once there and back."""
    number = variables["number"]
    assert isinstance(number, int) and not isinstance(number, bool), f"number: expected an int, found {number!r}"
    return {"square": number * number, "said": variables["text"] + "!", "half": number / 2, "not_flag": not variables["flag"]}
