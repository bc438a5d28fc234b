"""A test device: a simulated case whose every step is decided twice, on a narrow snapshot and on the whole.

So every pure test also proves what a narrow snapshot must show.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import UTC, datetime
from itertools import count
from typing import Any
from uuid import UUID

from engine.bpmn.definition import ProcessDefinition
from engine.core.effects import Effects, NewExternalTask, NewIncident, NewJob, NewSubscription, NewTask
from engine.core.known import Call, Called, NotCallable
from engine.core.snapshot import (
    Cancelled,
    Completed,
    Continued,
    ErrorThrown,
    EventOccurred,
    ExecutionState,
    NeedsWholeInstance,
    Retried,
    ScopeState,
    Snapshot,
    Started,
    Trigger,
)
from engine.core.values import Later, NeedsVariables, Variable, native, typed
from engine.dmn.definition import DecisionGraph
from engine.simulation.case import Case, Leaf
from tests.dmn.models import decidable

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


class World(Case):
    """One case of `definition` and the verbs that tests use on it. Elements are named by their ids.

    `library`: the processes that it may call, by key; a test may change it. `tables`: the decisions, each with its file.
    """

    def __init__(
        self,
        definition: ProcessDefinition,
        *,
        business_key: str | None = None,
        started_by: str | None = "ada",
        library: dict[str, ProcessDefinition] | None = None,
        tables: Mapping[str, DecisionGraph] | None = None,
    ) -> None:
        self.library = library if library is not None else {}
        self.now = NOW
        self.numbers = count(1)
        super().__init__(
            UUID(int=0),
            definition,
            instance_id=self.new_id(),
            new_id=self.new_id,
            find=self._find,
            decide=lambda call: decidable(tables or {}, call),
            business_key=business_key,
            started_by=started_by,
        )
        self.happened: list[str] = []
        self.events: list[Any] = []
        self.last = Effects()
        self.asked_whole = 0
        self.asked_more = 0

    def new_id(self) -> UUID:
        return UUID(int=next(self.numbers))

    # ---- verbs

    def start(self, at: str = "start", what: str = "none", /, **variables: Any) -> World:
        return self.happen(Started(at, _typed(variables), what))

    def complete(self, element: str, /, **variables: Any) -> World:
        """Complete the first task, service job or external task that is open at the element."""
        return self.serve(self.leaf(element, NewTask, NewJob, NewExternalTask), variables)

    def fire(self, element: str) -> World:
        return self.serve(self.leaf(element, NewJob), {})

    def receive(self, element: str, /, **variables: Any) -> World:
        return self.serve(self.leaf(element, NewSubscription), variables)

    def serve(self, leaf: Leaf, variables: dict[str, Any]) -> World:
        """What a leaf waits for happens."""
        token, typed_variables, detail = leaf.token_id, _typed(variables), {"item_id": str(leaf.id)}
        match leaf:
            case NewTask():
                return self.happen(Completed(token, typed_variables, "task_completed", detail), leaf)
            case NewExternalTask():
                return self.happen(Completed(token, typed_variables, "external_task_completed", detail), leaf)
            case NewJob(kind="service"):
                return self.happen(Completed(token, typed_variables, "job_completed", detail), leaf)
            case NewJob(kind="continue"):
                return self.happen(Continued(token, detail), leaf)
            case NewJob():
                due = leaf.due_at or self.now
                fired = EventOccurred(token, leaf.element_id, "timer", detail=detail, occurrence=leaf.payload, due_at=due)
                return self.happen(fired, leaf)
            case NewSubscription():
                what = "signal" if leaf.kind == "signal" else "message"
                return self.happen(EventOccurred(token, leaf.element_id, what, typed_variables, detail), leaf)
        raise AssertionError(f"{leaf} cannot be served")

    def go_on(self, element: str) -> World:
        """The job that begins further iterations of a looped activity runs."""
        found = [job for job in self.leaves.values() if isinstance(job, NewJob) and (job.kind, job.element_id) == ("continue", element)]
        return self.serve(found[0], {})

    def throw(self, element: str, code: str, text: str = "", **variables: Any) -> World:
        leaf = self.leaf(element, NewJob, NewExternalTask)
        return self.happen(ErrorThrown(leaf.token_id, code, text, _typed(variables)), leaf)

    def retry(self, element: str) -> World:
        return self.happen(Retried(self.leaf(element, NewIncident).token_id))

    def cancel(self, reason: str = "") -> World:
        return self.happen(Cancelled(reason))

    # ---- what there is

    def leaf(self, element: str, *kinds: type[Leaf]) -> Leaf:
        found = [leaf for leaf in self.leaves.values() if leaf.element_id == element and isinstance(leaf, kinds or Leaf)]
        assert found, f"expected a leaf at {element}, found {self.open}"
        return found[0]

    @property
    def open(self) -> list[str]:
        """The elements that something waits at, one entry a leaf."""
        return sorted(leaf.element_id for leaf in self.leaves.values())

    @property
    def tasks(self) -> list[str]:
        return sorted(leaf.element_id for leaf in self.leaves.values() if isinstance(leaf, NewTask))

    @property
    def incidents(self) -> list[NewIncident]:
        return [leaf for leaf in self.leaves.values() if isinstance(leaf, NewIncident)]

    @property
    def variables(self) -> dict[str, Any]:
        """Those of the process scope, as Python values."""
        process = next(scope for scope in self.scopes.values() if scope.instance_id == self.instance_id)
        return {name: native(variable) for name, variable in process.variables.items()}

    @property
    def final(self) -> dict[str, Any]:
        return {name: native(variable) for name, variable in self.final_variables.items()}

    def new(self, *kinds: str) -> list[str]:
        """What the last trigger made happen, as `kind element`, all or only the given kinds."""
        return [_told(event) for event in self.last.history if not kinds or event.kind in kinds]

    # ---- the engine's part

    def happen(self, trigger: Trigger, leaf: Leaf | None = None) -> World:
        """One command."""
        self.step(trigger, leaf, self.now)
        return self

    def _decide(self, trigger: Trigger, leaf: Leaf | None, now: datetime) -> Effects:
        """A narrow snapshot first. Where it suffices, it must lead to the very effects that the whole leads to."""
        instance = self.instance_of(getattr(trigger, "token_id", None))
        whole = self.snapshot(instance, trigger, leaf)
        first_id = next(self.numbers)
        self.numbers = count(first_id)
        try:
            effects = self._advance_leanly(self.narrow(trigger, leaf), trigger, first_id)
        except NeedsWholeInstance:
            self.asked_whole += 1
            self.numbers = count(first_id)
            return self._keep(self.ask(whole, trigger, now))
        after = next(self.numbers)
        self.numbers = count(first_id)
        assert _rows(self.ask(whole, trigger, now)) == _rows(effects)
        self.numbers = count(after)
        return self._keep(effects)

    def _keep(self, effects: Effects) -> Effects:
        self.last = effects
        self.events += effects.history
        self.happened += [_told(event) for event in effects.history]
        return effects

    def narrow(self, trigger: Trigger, leaf: Leaf | None = None) -> Snapshot:
        """As the contract says: the chain of scopes, its owners, the trigger's token, quiet tokens, crowded scopes."""
        token = self.tokens.get(getattr(trigger, "token_id", None))  # type: ignore[arg-type]
        chain: dict[UUID, ScopeState] = {}
        tokens = {token.id: token} if token else {}
        scope = self.scopes.get(token.scope_id) if token else None
        if isinstance(trigger, Continued):
            scope = next((each for each in self.scopes.values() if each.token_id == trigger.token_id), scope)
        while scope is not None:
            chain[scope.id] = scope
            if scope.token_id is not None:
                tokens[scope.token_id] = self.tokens[scope.token_id]
            scope = self._around(scope)
        quiet = ("joining", "listening")
        tokens |= {each.id: each for each in self.tokens.values() if each.status in quiet and each.scope_id in chain}
        crowded = frozenset(each.scope_id for each in self.tokens.values() if each.id not in tokens) & frozenset(chain)
        instance = self.instance_of(getattr(trigger, "token_id", None))
        callers = {each.instance_id for each in chain.values()} - {instance}
        others = tuple(each for each in self.instances.values() if each.id in callers)
        return Snapshot(
            **self.identity(instance),
            scopes=chain,
            tokens=tokens,
            crowded=crowded,
            others=others,
            executions=self._undone_next(chain),
            other_leaves=self.other_leaves(trigger, leaf),
        )

    def _undone_next(self, chain: Mapping[UUID, ScopeState]) -> tuple[ExecutionState, ...]:
        """The last execution of each compensating scope, with all within it."""
        found: list[ExecutionState] = []
        for scope in chain.values():
            lie_in = [row for row in self.executions.values() if row.scope_id == scope.id and "compensating" in scope.counters]
            found += sorted(lie_in, key=lambda row: row.number)[-1:]
        for row in found:
            found += [inner for inner in self.executions.values() if inner.within_id == row.id]
        return tuple(found)

    def _advance_leanly(self, narrow: Snapshot, trigger: Trigger, first_id: int) -> Effects:
        """With lists and objects left in the database first."""
        scopes = {key: replace(scope, variables=_lean(scope.variables)) for key, scope in narrow.scopes.items()}
        try:
            return self.ask(replace(narrow, scopes=scopes), trigger, self.now)
        except NeedsVariables:
            self.asked_more += 1
            self.numbers = count(first_id)
            return self.ask(narrow, trigger, self.now)

    def _find(self, call: Call) -> Called | NotCallable:
        found = self.library.get(call.key)
        if found is None:
            return NotCallable(f"no process {call.key}")
        known = (key for key, definition in self.definitions.items() if definition is found)
        return Called(next(known, UUID(int=1_000_000 + len(self.definitions))), found)


def _typed(variables: dict[str, Any]) -> dict[str, Variable]:
    return {name: typed(value) for name, value in variables.items()}


def _rows(effects: Effects) -> dict[str, Any]:
    """Effects, comparable: the order of rows says nothing, that of events does; `lock_first` is a hint, not a rule."""
    rows = {each.name: getattr(effects, each.name) for each in fields(effects)}
    return {
        name: sorted(repr(each).replace("lock_first=True", "lock_first=False") for each in value)
        if isinstance(value, list) and name != "history"
        else value
        for name, value in rows.items()
    }


def _told(event: Any) -> str:
    return f"{event.kind} {event.element_id}" if event.element_id else event.kind


def _lean(variables: Mapping[str, Variable]) -> dict[str, Variable]:
    return {name: Later("json") if variable.type == "json" else variable for name, variable in variables.items()}
