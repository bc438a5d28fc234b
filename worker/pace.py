"""When a worker looks for work: at once where there was some, as soon as something was committed, else seldom.

An idle worker asks every few milliseconds whether anything was committed (`engine.db.watch`), which is a hundredth of the work
of a look. What others commit all the time, and is no work for this lane, must not make it look all the time: each look in
vain puts the next one off a little further.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

SHORTEST, LONGEST_AFTER_A_CHANGE = 0.003, 0.04


@dataclass
class Pace:
    """Of one lane; moments of a monotonic clock. `poll_seconds`: the longest pause without any sign of work; `jitter` makes another
    one of it for each look, so that workers which began in step do not stay so (F16).
    """

    poll_seconds: float
    jitter: Callable[[float], float] = float
    looked_at: float = float("-inf")
    pause: float = 0.0  # after which a change is a reason to look
    changed: bool = True  # since the last look
    due: list[float] = field(default_factory=list)  # when something becomes due without a commit, soonest first
    poll_at: float = float("-inf")  # when to look without any reason

    def wants_look(self, now: float) -> bool:
        if self.changed and now >= self.may_look_at():
            return True
        return now >= self._sure()

    def looked(self, now: float, *, found: int, asked: int) -> None:
        """`now`: before the look, so that nothing is missed that came meanwhile."""
        self.looked_at, self.poll_at = now, now + self.jitter(self.poll_seconds)
        while self.due and self.due[0] <= now:
            del self.due[0]
        self.changed = found == asked  # then there may be more, else there was no more
        if found:
            self.pause = 0.0 if self.changed else SHORTEST
        else:
            self.pause = min(max(self.pause * 2, SHORTEST), LONGEST_AFTER_A_CHANGE)

    def next_look(self) -> float:
        """The moment at which `wants_look` says so by itself, if nothing changes until then."""
        return min(self._sure(), self.may_look_at()) if self.changed else self._sure()

    def may_look_at(self) -> float:
        """From when on a change is a reason to look: nobody need ask for one before."""
        return self.looked_at + self.pause

    def _sure(self) -> float:
        return min(self.due[0], self.poll_at) if self.due else self.poll_at
