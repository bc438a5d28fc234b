"""Retry policies as models write them: `R3/PT5M`, `PT1M,PT5M,PT30M`, or a number of attempts."""

from __future__ import annotations

import re
from dataclasses import dataclass

from engine.bpmn.times import DurationTimer, TimerError, parse_timer

MAX_ATTEMPTS = 100
_CYCLE = re.compile(r"R(\d{1,4})/(\S+)")


@dataclass(frozen=True, slots=True)
class Retry:
    """`attempts` in all, the first one included; `waits` in seconds, the last one repeated. Empty: the engine's back-off."""

    text: str | None
    attempts: int
    waits: tuple[float, ...] = ()

    def wait_after(self, attempt: int) -> float | None:
        """Seconds to wait after the attempt of that number (from 1) failed; None leaves it to the engine."""
        return self.waits[min(attempt, len(self.waits)) - 1] if self.waits else None


def parse_retry(text: str) -> Retry:
    """Raises TimerError. `R3/PT5M`: three attempts, five minutes apart. A list: one attempt more than it has waits."""
    stripped = "".join(text.split())
    if stripped.isdecimal():
        return Retry(None, _attempts(int(stripped[:6]), text))
    if cycle := _CYCLE.fullmatch(stripped):
        return Retry(stripped, _attempts(int(cycle[1]), text), (_seconds(cycle[2]),))
    waits = tuple(_seconds(part) for part in stripped.split(","))
    return Retry(stripped, _attempts(len(waits) + 1, text), waits)


def _attempts(number: int, text: str) -> int:
    if not 1 <= number <= MAX_ATTEMPTS:
        raise TimerError(f"expected 1 to {MAX_ATTEMPTS} attempts, found {number} in {text.strip()[:60]!r}")
    return number


def _seconds(text: str) -> float:
    timer = parse_timer("duration", text)
    seconds = timer.seconds if isinstance(timer, DurationTimer) else None
    if seconds is None:
        raise TimerError(f"expected a duration in days, hours, minutes or seconds, found {text[:60]!r}")
    return seconds
