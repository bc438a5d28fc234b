"""Retry policies as models write them: `R3/PT5M`, `PT1M,PT5M,PT30M`, or a number of attempts."""

from __future__ import annotations

import re
from dataclasses import dataclass

from engine.bpmn.context import Context
from engine.bpmn.names import Element
from engine.bpmn.times import DurationTimer, TimerError, parse_timer

MAX_ATTEMPTS = 100
_CYCLE = re.compile(r"R(\d{1,4})/(\S+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Retry:
    """`attempts` in all, the first one included; `text` as a failing item's wait is read from it in SQL, None: the engine's back-off."""

    text: str | None
    attempts: int


def retry_of(element: Element, text: str | None, who: str, context: Context) -> Retry | None:
    """The policy that a text of the element gives, None for none; one that cannot be read is a problem. `who`: whose retries they are."""
    if text is None or not text.strip():
        return None
    try:
        return parse_retry(text)
    except TimerError as error:
        context.problem(element, f"the retries of {who} cannot be read: {error}", "R3/PT5M, or a list such as PT1M,PT5M,PT30M")
        return None


def parse_retry(text: str) -> Retry:
    """Raises TimerError. `R3/PT5M`: three attempts, five minutes apart. A list: one attempt more than it has waits."""
    stripped = "".join(text.split())
    if stripped.isascii() and stripped.isdigit():
        return Retry(None, _attempts(int(stripped[:6]), text))
    if cycle := _CYCLE.fullmatch(stripped):
        _check_wait(cycle[2])
        if not int(cycle[1]):  # not repeated, to Camunda 7: one attempt
            return Retry(f"R1/{cycle[2]}", 1)
        return Retry(stripped, _attempts(int(cycle[1]), text))
    waits = stripped.split(",")
    for wait in waits:
        _check_wait(wait)
    return Retry(stripped, _attempts(len(waits) + 1, text))


def _attempts(number: int, text: str) -> int:
    if not 1 <= number <= MAX_ATTEMPTS:
        raise TimerError(f"expected 1 to {MAX_ATTEMPTS} attempts, found {number} in {text.strip()[:60]!r}")
    return number


def _check_wait(text: str) -> None:
    timer = parse_timer("duration", text)
    # A comma would be a decimal sign to ISO 8601, and the next wait to SQL.
    if not isinstance(timer, DurationTimer) or timer.seconds is None or "," in text:
        raise TimerError(f"expected a duration in days, hours, minutes or seconds, found {text[:60]!r}")
