"""The engine's own work in a simulation: steps of cases, what they throw and open, and what is due, until everything waits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any
from uuid import UUID

from engine.bpmn.definition import event_of
from engine.core.effects import Event, NewExternalTask, NewJob, NewSubscription
from engine.core.known import Call, Called, Decidable, DecisionCall, NotCallable, NotDecidable
from engine.core.snapshot import (
    CannotContinue,
    Completed,
    Continued,
    ErrorThrown,
    EventOccurred,
    NoHandlerForError,
    Started,
    Trigger,
)
from engine.core.timers import Due, due_again
from engine.core.values import Variable, accept, native
from engine.simulation.case import Case, Leaf
from engine.simulation.errands import Errand, Stored, Thrown, thrown_by
from engine.simulation.starts import Deployed, Start, events_of
from engine.simulation.trace import Happened, told

MONDAY = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)  # where the clock stands unless the author says otherwise
MOST_STEPS = 10_000  # of the engine's own, before everything waits
ENGINE = "engine"

Handler = Callable[[Mapping[str, Any]], Mapping[str, Any] | None]


class NotPossible(Exception):
    """A step that cannot be done now: what was expected, and what was found."""


class BpmnError(Exception):
    """What a handler of a simulation raises for an error that the model knows."""

    def __init__(self, code: str, message: str = "", **variables: Any) -> None:
        super().__init__(code)
        self.code, self.message, self.variables = code, message, variables


class Works:
    """Processes, cases, and what is on its way between them.

    `person`: who starts, completes and sends. `handlers`: by name or topic, from the variables to the result.
    """

    def __init__(self, *, at: datetime = MONDAY, person: str = "author", handlers: Mapping[str, Handler] | None = None) -> None:
        self.now, self.person = at, person
        self.handlers: dict[str, Handler] = dict(handlers or {})
        self.processes: dict[str, Deployed] = {}
        self.decisions: dict[str, Decidable] = {}
        self.starts: list[Start] = []
        self.cases: list[Case] = []
        self.errands: dict[UUID, Errand] = {}
        self.messages: list[Stored] = []
        self.trace: list[Happened] = []
        self.step = 0
        self._ids = count(1)
        self._numbers: dict[UUID, int] = {}  # of instances

    # ---- what there is

    def open(self, *kinds: type[Leaf]) -> list[tuple[Case, Leaf]]:
        """What waits in any case, oldest first. Without kinds: all."""
        found = [(case, leaf) for case in self.cases for leaf in case.leaves.values() if not kinds or isinstance(leaf, kinds)]
        return sorted(found, key=lambda each: each[1].id)

    def variables(self, case: Case) -> dict[str, Any]:
        return {name: native(variable) for name, variable in case.process_variables().items()}

    # ---- the engine's own work

    def settle(self) -> None:
        """Do what is due now, the oldest first, until all that is left waits for somebody or for a later time."""
        for _ in range(MOST_STEPS):
            ready = [each for each in self._upcoming() if each[0] <= self.now]
            if not ready:
                return
            self._do(min(ready, key=lambda each: (each[0], each[1].id))[1])
        raise NotPossible(f"expected everything to wait after {MOST_STEPS:,} steps of the engine, found more to do: an endless loop")

    def _upcoming(self) -> Iterable[tuple[datetime, Errand | Leaf]]:
        """What happens without the author, each with its time."""
        yield from ((errand.due_at, errand) for errand in self.errands.values())
        for case, leaf in self.open(NewJob, NewExternalTask):
            if leaf.id in case.failed:
                continue
            if (isinstance(leaf, NewJob) and leaf.kind != "service") or getattr(leaf, "topic", None) in self.handlers:
                yield case.due[leaf.id], leaf

    def _do(self, what: Errand | Leaf) -> None:
        if isinstance(what, Errand):
            del self.errands[what.id]
            self._run(what)
            return
        case = next(case for case in self.cases if what.id in case.leaves)
        match what:
            case NewJob(kind="timer"):
                fired = EventOccurred(what.token_id, what.element_id, "timer", occurrence=what.payload, due_at=case.due[what.id])
                self._happen(case, fired, what)
            case NewJob(kind="continue"):
                self._continue(case, what)
            case NewJob() | NewExternalTask():
                self._handle(case, what)

    def _continue(self, case: Case, job: NewJob) -> None:
        try:
            self._happen(case, Continued(job.token_id), job)
        except CannotContinue as error:
            self._fail(case, job, str(error), "expression")

    def _handle(self, case: Case, work: NewJob | NewExternalTask) -> None:
        """What the handler raises besides BpmnError is the author's to see."""
        try:
            result = self.handlers[work.topic](case.seen_by(work))
        except BpmnError as error:
            self._throw(case, work, error.code, error.message, error.variables)
            return
        self._return(case, work, result or {})

    def _run(self, errand: Errand) -> None:
        match errand:
            case Errand(kind="start_timer", process=Deployed() as process):
                self._start_by_timer(errand, process)
            case Errand(kind="message", thrown=Thrown() as thrown):
                self._correlate(thrown, ENGINE)
            case Errand(kind="signal", thrown=Thrown() as thrown):
                for start in thrown.starts:
                    self._send("bring", start=start, thrown=thrown)
                for case, subscription in thrown.receivers:
                    self._send("bring", case=case, subscription=subscription, thrown=thrown)
            case Errand(kind="bring", thrown=Thrown() as thrown, start=Start() as start):
                because = Event("signal_caught", start.element_id)
                self._begin(start.process, start.element_id, "signal", thrown.variables, None, ENGINE, because)
            case Errand(kind="bring", thrown=Thrown() as thrown, case=Case() as case):
                self._receive(case, errand.subscription, "signal", thrown.variables)
            case Errand(kind="deliver", case=Case() as case):
                self._deliver(case, errand.subscription)

    def _start_by_timer(self, errand: Errand, process: Deployed) -> None:
        timer = dict(events_of(process.definition, "timer"))[errand.element_id]
        following = due_again(timer, errand.payload, errand.due_at, self.now)
        because = Event("timer_fired", errand.element_id)
        self._begin(process, errand.element_id, "timer", {}, None, ENGINE, because)
        self._schedule(process, errand.element_id, following)

    def _schedule(self, process: Deployed, element_id: str, when: Due | None) -> None:
        if when is not None:
            at = when.at or _after(self.now, when.in_seconds or 0)
            self._send("start_timer", at=at, process=process, element_id=element_id, payload=when.payload)

    def _send(self, kind: str, *, at: datetime | None = None, **what: Any) -> None:
        errand = Errand(self._new_id(), kind, at or self.now, **what)
        self.errands[errand.id] = errand

    # ---- messages and signals

    def _correlate(self, thrown: Thrown, by: str) -> str:
        """An instance that waits, the oldest first, before a start event; else it is kept for its time to live."""
        for case, subscription in self._subscriptions("catch"):
            if (subscription.message_name, subscription.correlation_key) == (thrown.name, thrown.key):
                self._receive(case, subscription.id, "message", thrown.variables)
                return "correlated"
        for start in self.starts:
            if (start.what, start.name) == ("message", thrown.name):
                because = Event("message_correlated", start.element_id)
                self._begin(start.process, start.element_id, "message", thrown.variables, thrown.key or None, by, because)
                return "correlated"
        if thrown.seconds <= 0:
            return "dropped"
        self.messages.append(Stored(thrown.name, thrown.key, thrown.variables, _after(self.now, thrown.seconds)))
        return "stored"

    def _deliver(self, case: Case, key: UUID | None) -> None:
        """A stored message meets who opened a subscription to it, unless one of the two is gone by now."""
        subscription = case.leaves.get(key) if key is not None else None
        if isinstance(subscription, NewSubscription) and (message := self._stored_for(subscription)) is not None:
            self.messages.remove(message)
            self._receive(case, subscription.id, "message", message.variables)

    def _stored_for(self, subscription: NewSubscription) -> Stored | None:
        wanted = (subscription.message_name, subscription.correlation_key)
        return next((each for each in self.messages if (each.name, each.key) == wanted and each.expires_at > self.now), None)

    def _receive(self, case: Case, key: UUID | None, what: str, variables: Mapping[str, Variable]) -> None:
        leaf = case.leaves.get(key) if key is not None else None
        if isinstance(leaf, NewSubscription):
            self._happen(case, EventOccurred(leaf.token_id, leaf.element_id, what, variables), leaf)

    def _subscriptions(self, kind: str) -> list[tuple[Case, NewSubscription]]:
        return [(case, each) for case, each in self.open(NewSubscription) if isinstance(each, NewSubscription) and each.kind == kind]

    def _waiting_for(self, signal: str) -> list[tuple[Case, UUID, UUID]]:
        """Who would have a signal that is thrown now: case, subscription, instance."""
        found = self._subscriptions("signal")
        return [(case, each.id, case.instance_of(each.token_id)) for case, each in found if each.message_name == signal]

    def _throw_signal(
        self, name: str, variables: Mapping[str, Variable], waiting: Iterable[tuple[Case, UUID, UUID]], served: Iterable[str]
    ) -> None:
        receivers = tuple((case, subscription) for case, subscription, instance in waiting if str(instance) not in served)
        starts = tuple(start for start in self.starts if (start.what, start.name) == ("signal", name))
        self._send("signal", thrown=Thrown(name, variables, receivers, starts))

    # ---- steps of cases

    def _begin(
        self,
        process: Deployed,
        element_id: str,
        what: str,
        variables: Mapping[str, Variable],
        business_key: str | None,
        by: str,
        because: Event | None = None,
    ) -> Case:
        names = {"business_key": business_key, "started_by": by}
        case = Case(
            process.id, process.definition, instance_id=self._new_id(), new_id=self._new_id, find=self._find, decide=self._decide, **names
        )
        self.cases.append(case)
        if because is not None:  # what started it may be a part of an event
            event = event_of(process.definition, process.definition.nodes[element_id])
            because = replace(because, element_id=event.id)
        self._happen(case, Started(element_id, variables, what), None, because)
        return case

    def _find(self, call: Call) -> Called | NotCallable:
        found = self.processes.get(call.key)
        if found is None or call.version not in (None, 1) or call.tag not in (None, found.definition.version_tag):
            which = f" in version {call.version}" if call.version is not None else f" with the version tag {call.tag}" if call.tag else ""
            return NotCallable(f"expected the process {call.key}{which}, found none that is deployed")
        return Called(found.id, found.definition)

    def _decide(self, call: DecisionCall) -> Decidable | NotDecidable:
        found = self.decisions.get(call.key)
        there = found is not None and call.version in (None, 1) and call.tag in (None, found.graph.decisions[call.key].version_tag)
        return found if found is not None and there else NotDecidable(f"expected the decision {call.key}, found none that is deployed so")

    def _return(self, case: Case, work: NewJob | NewExternalTask, variables: Mapping[str, Any]) -> None:
        self._happen(case, Completed(work.token_id, accepted(variables), f"{kind_of(work)}_completed"), work)

    def _throw(self, case: Case, work: NewJob | NewExternalTask, code: str, message: str, variables: Mapping[str, Any]) -> None:
        try:
            self._happen(case, ErrorThrown(work.token_id, code, message, accepted(variables)), work)
        except NoHandlerForError as error:
            self._fail(case, work, str(error), "uncaught_error")

    def _fail(self, case: Case, work: NewJob | NewExternalTask, error: str, kind: str) -> None:
        case.failed[work.id] = error
        failed = self._event(case, work, f"{kind_of(work)}_failed", {"error": error})
        self._tell(case, [failed, self._event(case, work, "incident_opened", {"kind": kind, "message": error})])

    def _happen(self, case: Case, trigger: Trigger, leaf: Leaf | None = None, because: Event | None = None) -> None:
        """One step of a case, and what it leaves for the engine to do."""
        known, thrown = set(case.leaves), len(case.throws)
        waiting = {each.message_name: self._waiting_for(each.message_name) for _, each in self._subscriptions("signal")}
        self._tell(case, case.step(trigger, leaf, self.now, because))
        for each in case.throws[thrown:]:
            payload = each.payload
            if each.topic == "signal":
                receivers = waiting.get(payload["name"], [])
                self._throw_signal(payload["name"], thrown_by(payload), receivers, payload["served"])
            else:
                message = Thrown(payload["name"], thrown_by(payload), key=payload["key"], seconds=payload["seconds"])
                self._send("message", thrown=message)
        for opened in [leaf for key, leaf in case.leaves.items() if key not in known]:
            if isinstance(opened, NewSubscription) and opened.kind == "catch" and self._stored_for(opened) is not None:
                self._send("deliver", case=case, subscription=opened.id)

    # ---- telling

    def _event(self, case: Case, leaf: Leaf, kind: str, data: Mapping[str, Any]) -> Event:
        return Event(kind, leaf.element_id, data, case.instance_of(leaf.token_id))

    def _tell(self, case: Case, events: Iterable[Event]) -> None:
        for event in events:
            key = event.instance_id or case.instance_id
            number = self.number_of(key)
            definition = case.definition if key == case.instance_id else case.definitions[case.called[key].definition_id]
            node = definition.nodes.get(event.element_id or "")
            data = told(event.kind, event.data)
            self.trace.append(
                Happened(self.now, number, definition.key, event.kind, event.element_id, node.name if node else "", data, self.step)
            )

    def number_of(self, instance_id: UUID) -> int:
        """1 for the first instance of the house, and so on: what a trace calls it."""
        return self._numbers.setdefault(instance_id, len(self._numbers) + 1)

    def _new_id(self) -> UUID:
        return UUID(int=next(self._ids))


def kind_of(work: NewJob | NewExternalTask) -> str:
    return "external_task" if isinstance(work, NewExternalTask) else "job"


def accepted(variables: Mapping[str, Any]) -> dict[str, Variable]:
    accepted, problems = accept(variables)
    if problems:
        raise NotPossible("; ".join(f"{name or 'variables'}: {text}" for name, text in problems))
    return accepted


def _after(moment: datetime, seconds: float) -> datetime:
    return moment + timedelta(seconds=seconds)


def listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "nothing"
