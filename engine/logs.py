"""How this product logs: one line an outcome, `event key=value …`, and never a storm of equal lines."""

from __future__ import annotations

import logging
import re
import sys
import threading
import time
from typing import Any, TextIO
from uuid import UUID

PLAIN = re.compile(r"[^\s\"=]+")
LONGEST = 400


def line(event: str, **values: Any) -> str:
    """`event a=1 b="two words"`; None is left out, long values are cut, line ends never survive."""
    parts = [event]
    parts += [f"{name}={_value(value)}" for name, value in values.items() if value is not None]
    return " ".join(parts)


def set_up(level: str) -> None:
    """Send every logger's lines to standard error, with a time, the level and the logger's name."""
    logging.basicConfig(level=level.upper(), handlers=[_Lines(sys.stderr)], force=True)
    # What no line shows need not be found out for each.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None  # as logging's own notes on speed say


class _Lines(logging.StreamHandler[TextIO]):
    """Writes a record as a line: a worker writes one for each item that ends."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._second, self._text = -1, ""

    def format(self, record: logging.LogRecord) -> str:
        second = int(record.created)
        if second != self._second:
            self._text, self._second = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second)), second
        text = f"{self._text}.{int(record.msecs):03d}Z {record.levelname} {record.name} {record.getMessage()}"
        if record.exc_info:
            text += "\n" + _TRACES.formatException(record.exc_info)
        return text


_TRACES = logging.Formatter()


class Seldom:
    """Lets one line in `seconds` through for each key, and says how many it kept back."""

    def __init__(self, logger: logging.Logger, *, seconds: float = 10.0) -> None:
        self.logger, self.seconds = logger, seconds
        self._lock = threading.Lock()
        self._next: dict[str, float] = {}
        self._kept_back: dict[str, int] = {}

    def warning(self, event: str, **values: Any) -> None:
        """Log `event` unless a line of that name was let through lately."""
        with self._lock:
            now = time.monotonic()
            if now < self._next.get(event, 0.0):
                self._kept_back[event] = self._kept_back.get(event, 0) + 1
                return
            self._next[event] = now + self.seconds
            kept_back = self._kept_back.pop(event, None)
        self.logger.warning(line(event, **values, lines_kept_back=kept_back))


def _value(value: Any) -> str:
    if isinstance(value, (UUID, int)):
        return ("true" if value else "false") if isinstance(value, bool) else str(value)
    if isinstance(value, float):
        return f"{value:.3f}"
    text = str(value)
    if len(text) > LONGEST:
        text = text[: LONGEST - 1] + "…"
    if PLAIN.fullmatch(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'
