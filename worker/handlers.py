"""What the author of a handler uses: `@handler`, `Context`, `BpmnError`, `RetryLater`.

    from worker.handlers import BpmnError, Context, handler

    @handler("credit.check")
    def credit_check(context: Context) -> dict[str, object]:
        if context.variables["amount"] > 10_000:
            raise BpmnError("TOO_HIGH", "the limit is 10,000")
        return {"credit": "good"}

A handler runs in a child process that never sees the engine's database, at least once for each job: give
`context.idempotency_key` to whatever you call. What it returns becomes variables; a BpmnError takes the path that the
model draws for it; any other exception is a failure, retried with growing pauses until the attempts are spent.
`inline=True` runs it in a thread of the worker instead, without a process: only for work that ends within a second or
two and computes little, because nothing can kill a thread and a busy one starves the worker's renewals.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

from engine.config import ConfigurationError

Function = Callable[["Context"], Mapping[str, Any] | None]

SHIPPED = ("worker.shipped",)


class BpmnError(Exception):
    """An error that the model knows: it is caught by a boundary event with this code, or becomes an incident."""

    def __init__(self, code: str, message: str = "", variables: Mapping[str, Any] | None = None) -> None:
        super().__init__(f"{code}: {message}" if message else code)
        self.code, self.message, self.variables = code, message, dict(variables or {})


class RetryLater(Exception):
    """This attempt failed; try again in so many seconds. The attempt counts."""

    def __init__(self, seconds: float, message: str = "") -> None:
        super().__init__(message or f"to be tried again in {seconds:g} s")
        self.seconds = seconds


class GiveUp(Exception):
    """No further attempt makes sense: an incident at once."""


class LeaseLost(Exception):
    """The lease ran out or belongs to another worker: no further effect may happen here."""


class LeaseView(Protocol):
    """What a handler may see of its lease: a moment of `time.monotonic()`, and whether it was told to stop."""

    @property
    def deadline(self) -> float: ...

    @property
    def cancelled(self) -> bool: ...


class ReporterView(Protocol):
    """Where a handler's words go."""

    def log(self, text: str, level: str = "info") -> None: ...

    def progress(self, part: float, doing: str = "") -> None: ...


@dataclass(frozen=True, slots=True)
class Context:
    """One job as its handler sees it. Values have their Python types; a number with a fraction is a Decimal."""

    variables: Mapping[str, Any]
    inputs: Mapping[str, Any]
    idempotency_key: str  # the job's id: the same at every attempt
    attempt: int  # 1 for the first
    max_attempts: int
    business_key: str | None
    element_id: str
    instance_id: str
    lease: LeaseView
    settings: Any  # engine.config.Settings, without its secrets
    reporter: ReporterView
    headers: Mapping[str, str] = field(default_factory=dict)  # texts of the model: zeebe:taskHeaders, camunda:properties

    @property
    def cancelled(self) -> bool:
        """Whether the work should stop: its lease was lost, or the worker is going down."""
        return self.lease.cancelled

    @property
    def seconds_left(self) -> float:
        """How long the lease still holds. The worker renews it while the handler runs."""
        return self.lease.deadline - time.monotonic()

    def log(self, text: str, level: str = "info") -> None:
        """Say something that stands on the page of this job a moment later: the first 200 lines, each up to 2,000 characters.

        `level`: debug, info, warning or error; ValueError for another. What was said within half a second before a crash may be missing.
        """
        self.reporter.log(text, level)

    def progress(self, part: float, doing: str = "") -> None:
        """Say how far this attempt is, from 0 to 1, and what it does. The latest counts. Raises ValueError outside of that."""
        self.reporter.progress(part, doing)

    def check(self) -> None:
        """Call this right before every effect on the outside. Raises LeaseLost when it must not happen any more."""
        if self.cancelled:
            raise LeaseLost("the worker told this handler to stop")
        if self.seconds_left <= 0:
            raise LeaseLost(f"the lease ran out {-self.seconds_left:.1f} s ago and could not be renewed")


@dataclass(frozen=True, slots=True)
class Handler:
    name: str
    function: Function
    inline: bool = False
    deadline_seconds: float | None = None  # None: BATON_JOB_DEADLINE_SECONDS


_registry: dict[str, Handler] = {}


def handler(name: str, *, inline: bool = False, deadline_seconds: float | None = None) -> Callable[[Function], Function]:
    """Make a function the handler called `name`, as service tasks name it. Raises ValueError if another one is."""

    def register(function: Function) -> Function:
        known = _registry.get(name)
        if known is not None and _place(known.function) != _place(function):
            raise ValueError(f"handler {name!r}: expected one function, found {_place(known.function)} and {_place(function)}")
        _registry[name] = Handler(name, function, inline, deadline_seconds)
        return function

    return register


def load_handlers(modules: tuple[str, ...]) -> Mapping[str, Handler]:
    """Import the shipped modules and these; every handler by name. Raises ConfigurationError if one cannot be imported."""
    for module in (*SHIPPED, *modules):
        try:
            importlib.import_module(module)
        except Exception as problem:
            raise ConfigurationError(
                f"BATON_HANDLERS: expected {module} to be importable, found {type(problem).__name__}: {problem}"
            ) from problem
    return MappingProxyType(dict(_registry))


def _place(function: Function) -> str:
    return f"{function.__module__}.{getattr(function, '__qualname__', function)}"
