"""When a timer job is due: `engine.bpmn.times` reads and counts, here it becomes what a job carries (10.5.5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from engine.bpmn.definition import TimerConfig
from engine.bpmn.times import CycleTimer, DateTimer, DurationTimer, Occurrence, first, following, parse_timer


@dataclass(frozen=True, slots=True)
class Due:
    """When a timer job is due: at an instant, or this long after the database writes it. `payload` makes a cycle go on."""

    at: datetime | None
    in_seconds: float | None
    payload: Mapping[str, Any]


def due(timer: TimerConfig, value: Any, now: datetime) -> Due | None:
    """The first time that a timer is due whose expression has this value; None if a finite cycle is over already."""
    parsed = parse_timer(timer.type, value, zone=timer.zone)
    if isinstance(parsed, DurationTimer) and parsed.seconds is not None:
        return Due(None, parsed.seconds, {})
    occurrence = first(parsed, now=now)  # days and months are those of the timer's zone, across changes of its clocks
    if isinstance(parsed, DateTimer | DurationTimer):
        return None if occurrence is None else Due(occurrence.due_at, None, {})
    return _cycle(value, occurrence)


def due_again(timer: TimerConfig, payload: Mapping[str, Any], was_due: datetime | None, now: datetime) -> Due | None:
    """The next occurrence of a cycle whose job carried `payload` and was due at `was_due`; None when there is none."""
    text = payload.get("cycle")
    if text is None:
        return None
    previous = Occurrence.from_payload(payload, was_due or now)
    return _cycle(text, following(parse_timer(timer.type, text, zone=timer.zone), previous, now=now))


def is_counted(timer: TimerConfig, payload: Mapping[str, Any]) -> bool:
    """Whether the job that carried `payload` is one of a cycle with a count, such as R4/PT1S."""
    text = payload.get("cycle")
    parsed = parse_timer(timer.type, text, zone=timer.zone) if text is not None else None
    return isinstance(parsed, CycleTimer) and parsed.repetitions is not None


def _cycle(text: str, occurrence: Occurrence | None) -> Due | None:
    """The text travels with the job: a cycle that an expression gave goes on as it began."""
    return None if occurrence is None else Due(occurrence.due_at, None, {"cycle": text, **occurrence.payload()})
