"""When a timer job is due: `engine.bpmn.times` reads and counts, here it becomes what a job carries (10.5.5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

from engine.bpmn.definition import TimerConfig
from engine.bpmn.times import CycleTimer, DateTimer, DurationTimer, Occurrence, first, following, missed, parse_timer
from engine.core.effects import Firing
from engine.expressions import ExpressionError

SCHEDULE = "schedule"  # in the payload of a job: all occurrences of one schedule have it in common


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
    previous, parsed = Occurrence.from_payload(payload, was_due or now), parse_timer(timer.type, text, zone=timer.zone)
    again = _cycle(text, following(parsed, previous, now=now))
    if again is None:
        return None
    more = {SCHEDULE: payload[SCHEDULE]} if SCHEDULE in payload else {}
    if passed := missed(parsed, previous, now=now):
        more["missed"] = passed
    return Due(again.at, None, {**again.payload, **more})


def missed_by(timer: TimerConfig, payload: Mapping[str, Any], was_due: datetime | None, now: datetime) -> int:
    """How many occurrences of a cycle pass without a firing, because the one that was due at `was_due` fires only now.

    What cannot be counted is 0: the next occurrence cannot be told either, and that becomes an incident.
    """
    text = payload.get("cycle")
    if text is None:
        return 0
    try:
        return missed(parse_timer(timer.type, text, zone=timer.zone), Occurrence.from_payload(payload, was_due or now), now=now)
    except ExpressionError:
        return 0


def schedule_of(definition_id: UUID, element_id: str, payload: Mapping[str, Any]) -> UUID:
    """Which schedule the job of a start timer belongs to: it began with this version, or was taken over from one before."""
    return UUID(payload[SCHEDULE]) if SCHEDULE in payload else uuid5(definition_id, element_id)


def firing_of(payload: Mapping[str, Any], was_due: datetime | None, otherwise: Any, passed: int) -> Firing | None:
    """The record of one occurrence of a cycle in a case; None where a timer happens once and goes with its job.

    `otherwise`: the schedule of a job that an older release wrote.
    """
    schedule = payload.get(SCHEDULE) or otherwise
    if "cycle" not in payload or schedule is None or was_due is None:
        return None
    return Firing(UUID(str(schedule)), was_due, passed)


def is_counted(timer: TimerConfig, payload: Mapping[str, Any]) -> bool:
    """Whether the job that carried `payload` is one of a cycle with a count, such as R4/PT1S."""
    text = payload.get("cycle")
    parsed = parse_timer(timer.type, text, zone=timer.zone) if text is not None else None
    return isinstance(parsed, CycleTimer) and parsed.repetitions is not None


def _cycle(text: str, occurrence: Occurrence | None) -> Due | None:
    """The text travels with the job: a cycle that an expression gave goes on as it began."""
    return None if occurrence is None else Due(occurrence.due_at, None, {"cycle": text, **occurrence.payload()})
