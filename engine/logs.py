"""How this product logs: one line an outcome, `event key=value …`, and never a storm of equal lines."""

from __future__ import annotations

import logging
import re
import sys
import threading
import time
from typing import Any

PLAIN = re.compile(r"[^\s\"=]+")
LONGEST = 400


def line(event: str, **values: Any) -> str:
    """`event a=1 b="two words"`; None is left out, long values are cut, line ends never survive."""
    parts = [event]
    parts += [f"{name}={_value(value)}" for name, value in values.items() if value is not None]
    return " ".join(parts)


def set_up(level: str) -> None:
    """Send every logger's lines to standard error, with a time, the level and the logger's name."""
    handler = logging.StreamHandler(sys.stderr)
    formatter = logging.Formatter("%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s %(message)s", "%Y-%m-%dT%H:%M:%S")
    formatter.converter = time.gmtime
    handler.setFormatter(formatter)
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


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
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return f"{value:.3f}"
    text = str(value)
    if len(text) > LONGEST:
        text = text[: LONGEST - 1] + "…"
    if PLAIN.fullmatch(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'
