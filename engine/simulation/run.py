"""What a test says: `process("order.bpmn").start(amount=5).task("approve").complete(ok=True)`.

Everything speaks of the house underneath; a name is an element's id or name, or that of a handler or topic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from engine.bpmn.definition import none_start
from engine.core.effects import NewExternalTask, NewIncident, NewJob, NewTask
from engine.simulation.case import Case
from engine.simulation.finding import find, of
from engine.simulation.house import House
from engine.simulation.trace import Happened
from engine.simulation.works import Handler, NotPossible


class Model:
    """Deployed files. The first process in them that people can start is the one that `start` means."""

    def __init__(self, house: House) -> None:
        self.house = house

    def start(self, business_key: str | None = None, /, *, process: str | None = None, **variables: Any) -> Run:
        """`process`: the key of another process of the files."""
        return Run(self.house, self.house.start(process or self.key, variables, business_key=business_key))

    @property
    def key(self) -> str:
        """Of the process that `start` means."""
        for key, process in self.house.processes.items():
            if none_start(process.definition) is not None and not process.definition.called_only:
                return key
        raise NotPossible(f"expected a process that people can start, found {', '.join(self.house.processes)}, which events start")

    def handler(self, name: str, function: Handler | None = None, /, **result: Any) -> Model:
        """Every job of this handler, or external task of this topic, is done by `function`, or returns `result`, from now on."""
        self.house.handlers[name] = function or (lambda _: result)
        self.house.settle()
        return self

    def message(self, name: str, /, *, key: Any = "", kept: float = 0, **variables: Any) -> None:
        """`kept`: seconds that it waits for somebody."""
        self.house.publish(name, key, variables, seconds=kept)

    def signal(self, name: str, /, **variables: Any) -> None:
        self.house.signal(name, variables)

    def advance(self, by: str) -> None:
        """By a duration such as PT1H, or to a moment."""
        self.house.advance(by)

    @property
    def now(self) -> datetime:
        return self.house.now

    @property
    def runs(self) -> list[Run]:
        """Every case so far, those too that messages, signals and timers started."""
        return [Run(self.house, case) for case in self.house.cases]


class Run:
    """One case: a process instance and all that it called."""

    def __init__(self, house: House, case: Case) -> None:
        self.house, self.case = house, case

    # ---- what happens

    def task(self, name: str, number: int = 1) -> Task:
        """The oldest open user task of this name, or the `number`-th."""
        return Task(self, *self._one("task", name, number))

    def job(self, name: str, number: int = 1) -> Job:
        """The oldest job or external task that waits for a worker at this element, or for this handler or topic."""
        return Job(self, *self._one("job", name, number))

    def message(self, name: str, /, *, key: Any = None, **variables: Any) -> Run:
        """`key`: the business key, unless it is given."""
        self.house.publish(name, self.case.business_key or "" if key is None else key, variables)
        return self

    def signal(self, name: str, /, **variables: Any) -> Run:
        self.house.signal(name, variables)
        return self

    def advance(self, by: str) -> Run:
        """By a duration such as PT1H, or to a moment. What is due on the way happens when it is due."""
        self.house.advance(by)
        return self

    def retry(self, name: str) -> Run:
        """What rests beside an incident tries again."""
        self.house.retry(*self._one("incident", name, 1))
        return self

    def cancel(self, reason: str = "") -> Run:
        self.house.cancel(self.case, reason)
        return self

    def _one(self, what: str, name: str, number: int) -> tuple[Case, Any]:
        return find(self.house, what, name, case=self.case, number=number)

    # ---- what there is

    @property
    def status(self) -> str:
        """running | completed | cancelled."""
        return self.case.ended or "running"

    @property
    def completed(self) -> bool:
        return self.case.ended == "completed"

    @property
    def variables(self) -> Mapping[str, Any]:
        """Those of the process; of a case that has ended, what they were last. A number with a fraction is a Decimal."""
        return self.house.variables(self.case)

    @property
    def tasks(self) -> list[str]:
        """Ids of the elements with an open user task, oldest first."""
        return [leaf.element_id for _, leaf in of(self.house, "task", self.case)]

    @property
    def jobs(self) -> list[str]:
        """Ids of the elements at which a worker is waited for."""
        return [leaf.element_id for _, leaf in of(self.house, "job", self.case)]

    @property
    def waiting(self) -> list[str]:
        """Ids of all elements at which something is waited for: a person, a worker, a time, a message, a signal."""
        return [leaf.element_id for case, leaf in self.house.open() if case is self.case]

    @property
    def incidents(self) -> dict[str, str]:
        """Element -> what is wrong there."""
        found = of(self.house, "incident", self.case)
        return {leaf.element_id: leaf.message if isinstance(leaf, NewIncident) else self.case.failed[leaf.id] for _, leaf in found}

    @property
    def trace(self) -> list[str]:
        """What happened, in order: `task_created approve`."""
        return [str(each) for each in self.events]

    @property
    def path(self) -> list[str]:
        """Ids of the elements that were entered, in order."""
        return [each.element_id for each in self.events if each.kind == "element_entered" and each.element_id]

    @property
    def events(self) -> list[Happened]:
        """What happened in the case and in what it called, in order, with times and data."""
        mine = {self.house.number_of(key) for key in (self.case.instance_id, *self.case.called)}
        return [each for each in self.house.trace if each.instance in mine]

    def __repr__(self) -> str:
        return f"<Run of {self.case.definition.key}: {self.status}, waiting at {', '.join(self.waiting) or 'nothing'}>"


class Task:
    """An open user task."""

    def __init__(self, run: Run, case: Case, task: NewTask) -> None:
        self.run, self._case, self._task = run, case, task
        self.id, self.name, self.about = task.element_id, task.name, task.about
        self.assignee, self.candidate_users, self.candidate_groups = task.assignee, task.candidate_users, task.candidate_groups
        self.priority, self.due_at, self.follow_up_at = task.priority, task.due_at, task.follow_up_at

    def complete(self, **variables: Any) -> Run:
        self.run.house.complete(self._case, self._task, variables)
        return self.run

    @property
    def variables(self) -> Mapping[str, Any]:
        """What a form of the task would see."""
        return self._case.seen_by(self._task)


class Job:
    """A job of a handler, or an external task."""

    def __init__(self, run: Run, case: Case, work: NewJob | NewExternalTask) -> None:
        self.run, self._case, self._work = run, case, work
        self.id, self.topic = work.element_id, work.topic

    def returns(self, **variables: Any) -> Run:
        self.run.house.returns(self._case, self._work, variables)
        return self.run

    def throws(self, code: str, message: str = "", **variables: Any) -> Run:
        """A BPMN error, which the model may catch."""
        self.run.house.throws(self._case, self._work, code, message, variables)
        return self.run

    def fails(self, error: str = "the handler failed") -> Run:
        """The last attempt failed: an incident."""
        self.run.house.fails(self._case, self._work, error)
        return self.run

    def does(self, function: Callable[[Mapping[str, Any]], Mapping[str, Any] | None]) -> Run:
        """It returns what `function` makes of what a handler sees."""
        return self.returns(**(function(self.sees) or {}))

    @property
    def sees(self) -> Mapping[str, Any]:
        """The variables and the inputs that a handler gets."""
        return self._case.seen_by(self._work)
