"""The house: deployed processes, their cases, a clock that the author moves.

A simulation is one hand doing one thing after the other. It has no leases, workers, retries, people's claims or races.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from engine.bpmn.definition import Problem, none_start
from engine.bpmn.reader import read_files
from engine.bpmn.times import DurationTimer, TimerError, parse_moment, parse_timer
from engine.core.effects import NewExternalTask, NewIncident, NewJob, NewTask
from engine.core.known import Decidable
from engine.core.reading import as_text
from engine.core.snapshot import Cancelled, Completed, Retried
from engine.core.timers import due
from engine.dmn.reader import is_decision_file, read_decisions
from engine.expressions import ExpressionError
from engine.forms.reader import is_form_file, read_forms
from engine.simulation.case import Case
from engine.simulation.errands import Thrown
from engine.simulation.starts import Deployed, events_of, starts_of
from engine.simulation.works import NotPossible, Works, accepted, kind_of, listed

MOST_MOMENTS = 2_000  # at which something is due, on the way of one step of the clock


class NotDeployed(Exception):
    """The models have problems, as a deployment would find them."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(f"{p.file}:{p.line}: {p.element_id or ''}: {p.what}; expected {p.why}" for p in problems))


class House(Works):
    """What an author, the people and the workers of a process do. Every step raises NotPossible if it cannot be done now."""

    # ---- what an author does

    def deploy(self, *files: tuple[str, bytes]) -> list[Deployed]:
        """Processes, and the decisions that they call. Raises NotDeployed."""
        result = read_files([file for file in files if not is_decision_file(file[0]) and not is_form_file(file[0])])
        tables = read_decisions([file for file in files if is_decision_file(file[0])])
        forms = read_forms([file for file in files if is_form_file(file[0])])  # for its problems: nobody looks at a page here
        if problems := (*result.problems, *tables.problems, *forms.problems):
            raise NotDeployed(problems)
        for _, graph in tables.graphs:
            members = {key: (self._new_id(), 1) for key in graph.decisions}
            self.decisions.update({key: Decidable(key, graph, members) for key in graph.decisions})
        new = [Deployed(self._new_id(), file, definition) for file, definition in result.definitions]
        for process in new:
            self.processes[process.definition.key] = process
            try:
                self.starts += starts_of(process)
                for element_id, timer in events_of(process.definition, "timer"):
                    self._schedule(process, element_id, due(timer, timer.expression.evaluate({}), self.now))
            except ExpressionError as error:
                why = "a start event that can be judged when it is deployed"
                raise NotDeployed([Problem(None, process.definition.line, str(error), why, process.file)]) from error
        return new

    def start(self, key: str, variables: Mapping[str, Any], *, business_key: str | None = None) -> Case:
        """Raises NotPossible."""
        process = self.processes.get(key)
        if process is None:
            raise NotPossible(f"expected one of the processes {listed(self.processes)}, found {key!r}")
        start = none_start(process.definition)
        if start is None or process.definition.called_only:
            raise NotPossible(f"expected a process that people can start, found {key}, which only an event or a call starts")
        case = self._begin(process, start, "none", accepted(variables), business_key, self.person)
        self.settle()
        return case

    def complete(self, case: Case, task: NewTask, variables: Mapping[str, Any]) -> None:
        self._happen(case, Completed(task.token_id, accepted(variables), "task_completed"), task)
        self.settle()

    def returns(self, case: Case, work: NewJob | NewExternalTask, variables: Mapping[str, Any]) -> None:
        """What a handler, or the worker of an external task, returned."""
        self._return(case, work, variables)
        self.settle()

    def throws(self, case: Case, work: NewJob | NewExternalTask, code: str, message: str = "", variables: Mapping[str, Any] = {}) -> None:
        """A BPMN error of a handler."""
        self._throw(case, work, code, message, variables)
        self.settle()

    def fails(self, case: Case, work: NewJob | NewExternalTask, error: str) -> None:
        """The last attempt failed: an incident."""
        self._fail(case, work, error, "failed")
        self.settle()

    def publish(self, name: str, key: Any, variables: Mapping[str, Any], *, seconds: float = 0) -> str:
        """correlated | stored. Raises NotPossible if nobody waits, and it is not to be kept."""
        thrown = Thrown(name, accepted(variables), key=as_text(key), seconds=seconds)
        outcome = self._correlate(thrown, self.person)
        if outcome == "dropped":
            waiting = sorted(f"{each.message_name} ({each.correlation_key})" for _, each in self._subscriptions("catch"))
            raise NotPossible(f"expected somebody who waits for {name} with the key {thrown.key!r}, found {listed(waiting)}")
        self.settle()
        return outcome

    def signal(self, name: str, variables: Mapping[str, Any]) -> None:
        self._throw_signal(name, accepted(variables), self._waiting_for(name), ())
        self.settle()

    def retry(self, case: Case, leaf: NewIncident | NewJob | NewExternalTask) -> None:
        """What rests beside an incident tries again."""
        if isinstance(leaf, NewIncident):
            self._happen(case, Retried(leaf.token_id))
        else:
            del case.failed[leaf.id]
            self._tell(case, [self._event(case, leaf, f"{kind_of(leaf)}_retried", {}), self._event(case, leaf, "incident_resolved", {})])
        self.settle()

    def cancel(self, case: Case, reason: str = "") -> None:
        if case.ended:
            raise NotPossible(f"expected a running case, found it {case.ended}")
        self._happen(case, Cancelled(reason))
        self.settle()

    def advance(self, by: str) -> None:
        """`by`: a duration such as PT1H, or a moment such as 2026-12-24T18:00:00Z. What is due on the way happens when it is due."""
        target = _moment(by, self.now)
        if target < self.now:
            raise NotPossible(f"expected a time after {self.now.isoformat()}, found {target.isoformat()}: the clock does not go back")
        for _ in range(MOST_MOMENTS):
            following = min((when for when, _ in self._upcoming() if when <= target), default=None)
            if following is None:
                self.now = target
                return
            self.now = max(self.now, following)
            self.settle()
        raise NotPossible(f"expected at most {MOST_MOMENTS:,} moments at which something is due until {target.isoformat()}, found more")


def _moment(text: str, now: datetime) -> datetime:
    try:
        if not text.startswith("P"):
            return parse_moment(text)
        timer = parse_timer("duration", text)
    except TimerError as error:
        raise NotPossible(str(error)) from error
    assert isinstance(timer, DurationTimer), "a text that begins with P is a duration"
    return timer.after(now)
