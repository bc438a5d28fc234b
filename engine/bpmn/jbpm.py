"""Times as jBPM writes them beside ISO 8601, in files that declare its namespace: `500ms`, `1d2h`, `delay###period`."""

from __future__ import annotations

import re
from decimal import Decimal

from engine.bpmn import names
from engine.bpmn.names import JBPM, Element

SECONDS = {"d": Decimal(86_400), "h": Decimal(3_600), "m": Decimal(60), "s": Decimal(1), "ms": Decimal("0.001")}
_SPAN = re.compile(r"(?:\d{1,9}(?:ms|d|h|m|s))+")
_PART = re.compile(r"(\d+)(ms|d|h|m|s)")


def time(given: Element) -> str | None:
    """The text of a timeDuration or timeCycle in ISO 8601; None if it is none of jBPM's, or its first wait is another."""
    if JBPM not in given.nsmap.values():
        return None
    waits = names.text(given).strip().split("###")
    if len(waits) > 2 or not all(_SPAN.fullmatch(wait) for wait in waits) or len(set(waits)) > 1:
        return None
    seconds = sum((int(number) * SECONDS[unit] for number, unit in _PART.findall(waits[0])), Decimal(0))
    span = f"PT{seconds.normalize():f}S"
    return f"R/{span}" if names.local(given) == "timeCycle" else span
