"""Playing a script: each step is done, or checked, in the order of its lines.

What is done goes through `Actions`, so that the same script runs on PostgreSQL, too; only a simulation checks expectations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Protocol

from engine.bpmn.times import DurationTimer, TimerError, parse_moment, parse_timer
from engine.simulation.expectations import check
from engine.simulation.finding import find
from engine.simulation.house import House
from engine.simulation.run import Model, Run
from engine.simulation.script import VERBS, Script, ScriptError, Step
from engine.simulation.works import BpmnError, Handler, NotPossible


class Actions(Protocol):
    """What a script does. Every method raises NotPossible if it cannot be done now."""

    def handler(self, name: str, function: Handler) -> None: ...
    def start(self, process: str | None, business_key: str | None, variables: Mapping[str, Any]) -> None: ...
    def complete(self, task: str, number: int, variables: Mapping[str, Any]) -> None: ...
    def returns(self, job: str, number: int, variables: Mapping[str, Any]) -> None: ...
    def throws(self, job: str, number: int, code: str, message: str, variables: Mapping[str, Any]) -> None: ...
    def fails(self, job: str, number: int, error: str) -> None: ...
    def message(self, name: str, key: str | None, seconds: float, variables: Mapping[str, Any]) -> None: ...
    def signal(self, name: str, variables: Mapping[str, Any]) -> None: ...
    def advance(self, by: str) -> None: ...
    def retry(self, element: str, number: int) -> None: ...
    def cancel(self, reason: str) -> None: ...
    def case(self, number: int) -> None: ...


class NotAsExpected(Exception):
    """An expectation that does not hold, or a step that could not be done: where, what was expected, what was found."""


class Simulated:
    """The actions in a house. The case that a step is about is the one that began last, or that `case` says."""

    def __init__(self, house: House) -> None:
        self.house, self.model = house, Model(house)
        self._chosen: int | None = None

    @property
    def run(self) -> Run:
        if not self.house.cases:
            raise NotPossible("expected a case, found none: nothing was started yet")
        return Run(self.house, self.house.cases[-1 if self._chosen is None else self._chosen])

    def handler(self, name: str, function: Handler) -> None:
        self.model.handler(name, function)

    def start(self, process: str | None, business_key: str | None, variables: Mapping[str, Any]) -> None:
        self._chosen = None
        case = self.house.start(process or self.model.key, variables, business_key=business_key)
        self._chosen = self.house.cases.index(case)

    def complete(self, task: str, number: int, variables: Mapping[str, Any]) -> None:
        self.house.complete(*self._open("task", task, number), variables)

    def returns(self, job: str, number: int, variables: Mapping[str, Any]) -> None:
        self.house.returns(*self._open("job", job, number), variables)

    def throws(self, job: str, number: int, code: str, message: str, variables: Mapping[str, Any]) -> None:
        self.house.throws(*self._open("job", job, number), code, message, variables)

    def fails(self, job: str, number: int, error: str) -> None:
        self.house.fails(*self._open("job", job, number), error)

    def message(self, name: str, key: str | None, seconds: float, variables: Mapping[str, Any]) -> None:
        """Without a key: the business key of the case, if there is one."""
        mine = self.run.case.business_key if key is None and self.house.cases else None
        self.house.publish(name, (mine or "") if key is None else key, variables, seconds=seconds)

    def signal(self, name: str, variables: Mapping[str, Any]) -> None:
        self.house.signal(name, variables)

    def advance(self, by: str) -> None:
        self.house.advance(by)

    def retry(self, element: str, number: int) -> None:
        self.house.retry(*self._open("incident", element, number))

    def cancel(self, reason: str) -> None:
        self.run.cancel(reason)

    def case(self, number: int) -> None:
        if not 1 <= number <= len(self.house.cases):
            raise NotPossible(f"expected a case from 1 to {len(self.house.cases)}, found {number}")
        self._chosen = number - 1

    def _open(self, what: str, name: str, number: int) -> tuple[Any, Any]:
        return find(self.house, what, name, number=number)


def simulate(house: House, script: Script, after: Callable[[Step], None] = lambda _: None) -> Simulated:
    """Play a script in a house, which its models are deployed in. `after`: called when a step is done.

    Raises ScriptError for a line that says nothing, NotAsExpected for one that cannot be done or does not hold.
    """
    actions = Simulated(house)
    for step in script.steps:
        house.step = step.line
        try:
            if step.verb == "expect":
                check(actions.model, lambda: actions.run, step)
            else:
                act(actions, step)
        except NotPossible as error:
            raise NotAsExpected(f"{script.name}:{step.line}: {step.text}\n  {error}") from error
        except Unclear as error:
            raise ScriptError(script.name, step.line, str(error)) from error
        after(step)
    return actions


class Unclear(Exception):
    """A step without what its verb needs."""


def act(actions: Actions, step: Step) -> None:
    """Do what a step says; `expect` and `clock` do nothing."""
    match step.verb, step.words:
        case "handler", (name, "returns"):
            actions.handler(name, lambda _: dict(step.values))
        case "handler", (name, "throws", code, *text):
            actions.handler(name, _thrower(code, " ".join(text), step.values))
        case "start", words:
            actions.start(*_start(step, list(words)), step.values)
        case "complete", (task,):
            actions.complete(task, step.number, step.values)
        case "job", (name, "returns"):
            actions.returns(name, step.number, step.values)
        case "job", (name, "throws", code, *text):
            actions.throws(name, step.number, code, " ".join(text), step.values)
        case "job", (name, "fails", *text):
            actions.fails(name, step.number, " ".join(text) or "the handler failed")
        case "message", (name, *words):
            options = _options(step, words, "key", "kept")
            actions.message(name, options.get("key"), _seconds(options.get("kept")), step.values)
        case "signal", (name,):
            actions.signal(name, step.values)
        case "advance", (by,):
            actions.advance(by)
        case "retry", (element,):
            actions.retry(element, step.number)
        case "cancel", words:
            actions.cancel(" ".join(words))
        case "case", (number,) if number.isdecimal():
            actions.case(int(number))
        case "clock", (_,):
            pass
        case _:
            raise Unclear(f"expected {VERBS[step.verb]}, found {step.text!r}")


def beginning(script: Script, otherwise: datetime) -> datetime:
    """Where the clock stands when a script begins: what its step `clock` says, which comes before all others. Raises ScriptError."""
    clocks = [step for step in script.steps if step.verb == "clock"]
    if not clocks:
        return otherwise
    if clocks[0] is not script.steps[0] or len(clocks) > 1:
        raise ScriptError(script.name, clocks[-1].line, "expected clock as the first step, found it later: advance moves the clock")
    try:
        (text,) = clocks[0].words
        return parse_moment(text)
    except (ValueError, TimerError) as error:
        raise ScriptError(script.name, clocks[0].line, f"expected {VERBS['clock']}, found {clocks[0].text!r}") from error


def _start(step: Step, words: list[str]) -> tuple[str | None, str | None]:
    process = words.pop(0) if words and words[0] != "as" else None
    return process, _options(step, words, "as").get("as")


def _options(step: Step, words: list[str], *names: str) -> dict[str, str]:
    if len(words) % 2 or any(word not in names for word in words[::2]):
        raise Unclear(f"expected {VERBS[step.verb]}, found {step.text!r}")
    return dict(zip(words[::2], words[1::2], strict=True))


def _seconds(text: str | None) -> float:
    if text is None:
        return 0
    try:
        timer = parse_timer("duration", text)
    except TimerError as error:
        raise Unclear(str(error)) from error
    return timer.seconds or 0 if isinstance(timer, DurationTimer) else 0


def _thrower(code: str, message: str, variables: Mapping[str, Any]) -> Handler:
    def throw(_: Mapping[str, Any]) -> Mapping[str, Any] | None:
        raise BpmnError(code, message, **variables)

    return throw
