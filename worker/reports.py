"""What a handler says while it runs, at the handler's end: bounded, and handed on at once (worker/scribe.py writes it).

Reporter.log        a line; the first of an attempt are kept, the others counted
Reporter.progress   how far it is; the latest is what counts
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from engine.reports import LEVELS, LONGEST_DOING, LONGEST_LINE, MOST_LINES

PROGRESS_SECONDS = 0.2  # a handler tells how far it is no more often than that

Tell = Callable[[Mapping[str, Any]], None]

PROGRESS_SECONDS = 0.2  # a handler tells how far it is no more often than that
FLUSH_SECONDS = 0.5  # what is said is written at the latest after that
LAST_FLUSH_SECONDS = 5.0
LONGEST_PAUSE = 5.0


class Reporter:
    """Where `Context.log` and `Context.progress` go. Used by any thread of the handler, until the handler has returned."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._lines = 0
        self._told_at = float("-inf")
        self._untold: dict[str, Any] | None = None
        self._over = False

    def log(self, text: str, level: str = "info") -> None:
        if level not in LEVELS:
            raise ValueError(f"level: expected one of {', '.join(LEVELS)}, found {level!r}")
        with self._lock:
            if self._over:
                return
            self._lines += 1
            if self._lines <= MOST_LINES:
                self._tell({"log": _plain(text, LONGEST_LINE), "level": level})

    def progress(self, part: float, doing: str = "") -> None:
        if not 0 <= part <= 1:
            raise ValueError(f"progress: expected 0 to 1, found {part!r}")
        with self._lock:
            if self._over:
                return
            self._untold = {"progress": float(part), "doing": _plain(doing, LONGEST_DOING)}
            if time.monotonic() - self._told_at >= PROGRESS_SECONDS:
                self._tell_progress()

    def end(self) -> None:
        """The handler has returned: what it said last is told, and nothing more after it."""
        with self._lock:
            self._over = True
            if self._untold is not None:
                self._tell_progress()
            if self._lines > MOST_LINES:
                self._tell({"more": self._lines - MOST_LINES})

    def _tell_progress(self) -> None:
        said, self._untold = self._untold, None
        assert said is not None
        self._told_at = time.monotonic()
        self._tell(said)


def _plain(text: object, longest: int) -> str:
    """As the database takes it: no U+0000, no half of a surrogate pair, not longer than that."""
    plain = str(text).replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()
    return plain if len(plain) <= longest else plain[: longest - 1] + "…"
