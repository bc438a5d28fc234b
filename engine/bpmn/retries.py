"""Retry policies as models write them.

    5                     five attempts, with the engine's own back-off between them
    R3/PT5M               three attempts, five minutes apart
    PT1M,PT10M,PT1H       one attempt more than there are waits
    R8/PT10S*2/PT1H       eight attempts, each wait twice the one before, an hour at most (a day, if no limit is given)
    ${policy}             one of these, when the work begins

Waits are read in SQL, when an attempt has failed; jitter comes on top of them there (F15). What grows is written as a list.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from engine.bpmn.context import Context
from engine.bpmn.names import Element
from engine.bpmn.times import DurationTimer, TimerError, parse_timer
from engine.expressions import Expression

MAX_ATTEMPTS = 100
LONGEST_GROWN = 86_400.0  # seconds, of a wait that grows without a limit of its own
EXPECTED = "R3/PT5M, a list such as PT1M,PT5M,PT30M, waits that grow such as R8/PT10S*2/PT1H, or a number of attempts"
_CYCLE = re.compile(r"R(\d{1,4})/([^\s*]+)", re.ASCII)
_GROWING = re.compile(r"R(\d{1,4})/([^/*]+)\*(\d{1,3}(?:\.\d{1,3})?)(?:/([^/*]+))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Retry:
    """`attempts` in all, the first one included; `text` as a failing item's wait is read from it in SQL, None: the engine's back-off."""

    text: str | None
    attempts: int


def policy_of(element: Element, text: str | None, who: str, default: int, context: Context) -> tuple[str | Expression | None, int]:
    """(policy, attempts) that a text of the element gives; `default`: attempts where it gives none, or an expression that will say."""
    if text is not None and ("${" in text or "#{" in text or text.strip().startswith("=")):
        return context.expression(element, text, f"the retries of {who}"), default
    retry = retry_of(element, text, who, context)
    return (None, default) if retry is None else (retry.text, retry.attempts)


def retry_of(element: Element, text: str | None, who: str, context: Context) -> Retry | None:
    """The policy that a text of the element gives, None for none; one that cannot be read is a problem. `who`: whose retries they are."""
    if text is None or not text.strip():
        return None
    try:
        return parse_retry(text)
    except TimerError as error:
        context.problem(element, f"the retries of {who} cannot be read: {error}", EXPECTED)
        return None


def parse_retry(text: str) -> Retry:
    """Raises TimerError."""
    stripped = "".join(text.split())
    if stripped.isascii() and stripped.isdigit():
        return Retry(None, _attempts(int(stripped[:6]), text))
    if growing := _GROWING.fullmatch(stripped):
        return _growing(*growing.groups(), text=text)
    if cycle := _CYCLE.fullmatch(stripped):
        _wait(cycle[2])
        if not int(cycle[1]):  # not repeated, to Camunda 7: one attempt
            return Retry(f"R1/{cycle[2]}", 1)
        return Retry(stripped, _attempts(int(cycle[1]), text))
    waits = stripped.split(",")
    for wait in waits:
        _wait(wait)
    return Retry(stripped, _attempts(len(waits) + 1, text))


def _growing(number: str, first: str, factor: str, limit: str | None, *, text: str) -> Retry:
    attempts, seconds, grows = _attempts(int(number), text), _wait(first), float(factor)
    most = LONGEST_GROWN if limit is None else _wait(limit)
    if not 1 <= grows <= 100:
        raise TimerError(f"expected waits to grow by a factor from 1 to 100, found {factor} in {text.strip()[:60]!r}")
    if most < seconds:
        raise TimerError(f"expected a longest wait of at least the first, found {limit or 'a day'} after {first}")
    waits = []
    for _ in range(max(attempts - 1, 1)):
        waits.append(f"PT{seconds:.3f}".rstrip("0").rstrip(".") + "S")
        seconds = min(seconds * grows, most)
    return Retry(",".join(waits), attempts)


def _attempts(number: int, text: str) -> int:
    if not 1 <= number <= MAX_ATTEMPTS:
        raise TimerError(f"expected 1 to {MAX_ATTEMPTS} attempts, found {number} in {text.strip()[:60]!r}")
    return number


def _wait(text: str) -> float:
    timer = parse_timer("duration", text)
    # A comma would be a decimal sign to ISO 8601, and the next wait to SQL.
    if not isinstance(timer, DurationTimer) or timer.seconds is None or "," in text:
        raise TimerError(f"expected a duration in days, hours, minutes or seconds, found {text[:60]!r}")
    return timer.seconds
