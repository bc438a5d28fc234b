"""One external task while a worker has it: what its function sees, says, and must stop for. Shared by both workers."""

from __future__ import annotations

import random
import threading
import time
import traceback
from collections.abc import Iterator, Mapping
from typing import Any

from baton_client.calls import Call, end, renew, report
from baton_client.errors import BpmnError, LeaseLost, Refused, RetryLater
from baton_client.shapes import Ended, LeasedTask

MOST_LINES, LONGEST_LINE, LONGEST_DOING = 200, 2_000, 200
LEVELS = ("debug", "info", "warning", "error")
LONGEST_ERROR = 10_000
RESTS = ("instance_suspended", "instance_cancelling", "definition_suspended")
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 3.0  # between one look for tasks that finds none and the next


class Running:
    """A leased task, as its function gets it. Safe to use from any thread."""

    def __init__(self, leased: LeasedTask, *, lease_seconds: float, asked_at: float) -> None:
        self.leased, self.lease_seconds = leased, lease_seconds
        self.deadline = asked_at + lease_seconds
        """Until when the lease surely holds, as a moment of `time.monotonic()`: counted from before it was asked for."""
        self.renew_at = asked_at + lease_seconds / 3
        self.lost = False
        self._cancelled = threading.Event()
        self._lock = threading.Lock()
        self._progress: float | None = None
        self._doing = ""
        self._lines: list[dict[str, str]] = []
        self._said = 0
        self._was_refused = False

    # ---- what a function sees

    @property
    def variables(self) -> Mapping[str, Any]:
        return self.leased.variables

    @property
    def headers(self) -> Mapping[str, str]:
        """Texts of the model for whoever does the work."""
        return self.leased.headers

    @property
    def business_key(self) -> str | None:
        return self.leased.business_key

    @property
    def idempotency_key(self) -> str:
        """The same at every attempt: hand it on to whatever you call, because a task runs at least once."""
        return str(self.leased.id)

    @property
    def attempt(self) -> int:
        """1 for the first."""
        return self.leased.attempts

    @property
    def cancelled(self) -> bool:
        """Whether the work should stop: its lease was lost, or the worker goes down."""
        return self._cancelled.is_set()

    @property
    def seconds_left(self) -> float:
        return self.deadline - time.monotonic()

    def check(self) -> None:
        """Call this right before every effect on the outside. Raises LeaseLost when it must not happen any more."""
        if self.cancelled or self.seconds_left <= 0:
            raise LeaseLost(409, {"reason": "lease_lost", "detail": "the lease ended, or the worker was told to stop"})

    # ---- what a function says

    def log(self, text: str, level: str = "info") -> None:
        """A line for the page of this task: the first 200 of an attempt are kept."""
        if level not in LEVELS:
            raise ValueError(f"level: expected one of {', '.join(LEVELS)}, found {level!r}")
        with self._lock:
            self._said += 1
            if self._said <= MOST_LINES:
                self._lines.append({"text": _plain(text, LONGEST_LINE) or "–", "level": level})

    def progress(self, part: float, doing: str = "") -> None:
        """How far this attempt is, from 0 to 1, and what it does now. The latest counts."""
        if not 0 <= part <= 1:
            raise ValueError(f"progress: expected 0 to 1, found {part!r}")
        with self._lock:
            self._progress, self._doing = float(part), _plain(doing, LONGEST_DOING)

    # ---- for the worker

    def cancel(self, *, lost: bool) -> None:
        self.lost = self.lost or lost
        self._cancelled.set()

    def renewal(self) -> Call[Ended]:
        return renew(self.leased, self.lease_seconds)

    def renewed(self, asked_at: float) -> None:
        self.deadline, self.renew_at = asked_at + self.lease_seconds, asked_at + self.lease_seconds / 3

    def words(self) -> Call[None] | None:
        """What was said since the last time, as a call, or None."""
        with self._lock:
            if self._progress is None and not self._lines:
                return None
            call = report(self.leased, self._progress, self._doing, self._lines, None)
            self._progress, self._doing, self._lines = None, "", []
            return call

    def result(self, returned: object) -> Call[Ended]:
        """What to report for what the function returned."""
        if returned is not None and not isinstance(returned, Mapping):
            return self.failure(TypeError(f"expected a dict of variables or None, found {type(returned).__name__}"))
        return end(self.leased, "complete", None, variables=dict(returned or {}))

    def failure(self, problem: BaseException) -> Call[Ended]:
        """What to report for what it raised."""
        match problem:
            case BpmnError():
                return end(self.leased, "error", None, code=problem.code, message=problem.message, variables=problem.variables)
            case RetryLater():
                return end(self.leased, "fail", None, error=str(problem), retry_in=problem.seconds)
        text = "".join(traceback.format_exception(problem, limit=-12)).strip()
        headline = "".join(traceback.format_exception_only(problem)).strip()
        return end(self.leased, "fail", None, error=_plain(f"{headline}\n\n{text}", LONGEST_ERROR), retry_in=None)

    def refused(self, problem: Refused) -> Call[Ended]:
        """What to report where an outcome was refused. A second time: raises what refused it, and the lease is left to end.

        A case that rests takes its task back unspent; what cannot be taken (variables, say) is a failure that says so.
        """
        if self._was_refused:
            raise problem
        self._was_refused = True
        return end(self.leased, "release", None) if problem.reason in RESTS else self.failure(problem)

    def stopped(self) -> Call[Ended]:
        """The worker goes down: another takes the task at once, as its next attempt."""
        return end(self.leased, "fail", None, error="the worker was stopped while it ran this", retry_in=0.0)


def looks() -> Iterator[float]:
    """Seconds until the next look for tasks, growing while there are none, with jitter."""
    pause = FIRST_PAUSE
    while True:
        yield pause * random.uniform(0.5, 1.0)  # noqa: S311 - jitter
        pause = min(pause * 1.5, LONGEST_PAUSE)


def _plain(text: object, longest: int) -> str:
    plain = str(text).replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()
    return plain if len(plain) <= longest else plain[: longest - 1] + "…"
