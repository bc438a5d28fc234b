"""Charts as numbers for SVG: a box of 600 by 100 that the page stretches; words stand beside it in HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

WIDTH, HEIGHT = 600.0, 100.0


@dataclass(frozen=True, slots=True)
class Line:
    """One curve with its area. `top`: the value of the upper edge; `ticks`: four times, first and last included."""

    path: str
    area: str
    top: int
    total: int
    peak: int
    last: int
    ticks: tuple[datetime, ...]


@dataclass(frozen=True, slots=True)
class Bar:
    x: float
    width: float
    y: float
    height: float
    kind: str


@dataclass(frozen=True, slots=True)
class Bars:
    """Two values a slice, stacked: `b1` below, `b2` on top."""

    bars: tuple[Bar, ...]
    top: int
    below: int
    above: int
    ticks: tuple[datetime, ...]


def line(times: Sequence[datetime], values: Sequence[int]) -> Line:
    top = _round_up(max(values, default=0))
    step = WIDTH / max(len(values) - 1, 1)
    points = [f"{place * step:.1f} {HEIGHT - HEIGHT * value / top:.1f}" for place, value in enumerate(values)]
    path = "M" + " L".join(points) if points else ""
    area = f"M0 {HEIGHT:g} L{' L'.join(points)} L{WIDTH:g} {HEIGHT:g}z" if points else ""
    return Line(path, area, top, sum(values), max(values, default=0), values[-1] if values else 0, _ticks(times))


def bars(times: Sequence[datetime], below: Sequence[int], above: Sequence[int]) -> Bars:
    top = _round_up(max((one + two for one, two in zip(below, above, strict=True)), default=0))
    step = WIDTH / max(len(below), 1)
    found = []
    for place, (one, two) in enumerate(zip(below, above, strict=True)):
        x, width = round(place * step + step * 0.18, 1), round(step * 0.64, 1)
        low, high = HEIGHT * one / top, HEIGHT * two / top
        if one:
            found.append(Bar(x, width, round(HEIGHT - low, 1), round(low, 1), "b1"))
        if two:
            found.append(Bar(x, width, round(HEIGHT - low - high, 1), round(high, 1), "b2"))
    return Bars(tuple(found), top, sum(below), sum(above), _ticks(times))


def _round_up(value: int) -> int:
    """A scale that people read: 1, 2 or 5 times a power of ten; at least 2, so that the middle is a whole number."""
    if value <= 2:
        return 2
    power = int(10 ** (len(str(value)) - 1))
    return next(step * power for step in (1, 2, 4, 5, 6, 8, 10) if step * power >= value)


def _ticks(times: Sequence[datetime]) -> tuple[datetime, ...]:
    if len(times) < 4:
        return tuple(times)
    last = len(times) - 1
    return tuple(times[round(last * part / 3)] for part in range(4))
