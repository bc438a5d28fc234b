"""Ranges as values: `[1..10]`, `(1..10]`, `< 10` (DMN 1.3, 10.3.2.7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Range:
    """From `low` to `high`; None at an end means no bound there, and that end is open."""

    low: Any
    high: Any
    low_closed: bool = True
    high_closed: bool = True
