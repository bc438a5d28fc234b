"""What is wrong with a timer, for all that read and count them."""

from __future__ import annotations

from datetime import tzinfo

from engine.expressions import ExpressionError
from engine.zones import UnknownZone, zone_named


class TimerError(ExpressionError):
    """A text is no timer of its type, or a time is beyond the calendar, or its zone is none."""


def zone_of(name: str) -> tzinfo:
    """The zone of that name. Raises TimerError."""
    try:
        return zone_named(name)
    except UnknownZone as error:
        raise TimerError(str(error)) from error
