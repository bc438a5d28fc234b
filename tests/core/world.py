"""A test device: rows in dictionaries, effects laid onto them as the database would, cascades included.

It makes the snapshots too, narrow ones first, so that every pure test also proves what a narrow snapshot must show.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import UTC, datetime
from itertools import count
from typing import Any
from uuid import UUID

from engine.bpmn.definition import ProcessDefinition
from engine.core.advance import advance
from engine.core.effects import Effects, NewExternalTask, NewIncident, NewInstance, NewJob, NewSubscription, NewTask
from engine.core.known import Call, Called, Known, NeedsDefinition, NotCallable
from engine.core.snapshot import (
    Cancelled,
    Completed,
    Continued,
    ErrorThrown,
    EventOccurred,
    ExecutionState,
    InstanceState,
    NeedsWholeInstance,
    OpenSignal,
    OpenTask,
    Retried,
    ScopeState,
    Snapshot,
    Started,
    TokenState,
    Trigger,
)
from engine.core.values import Later, NeedsVariables, Variable, native, typed

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
Leaf = NewTask | NewJob | NewExternalTask | NewSubscription | NewIncident


class World:
    """One case of `definition` and the verbs that tests use on it. Elements are named by their ids.

    `library`: the processes that it may call, by key; a test may change it.
    """

    def __init__(
        self,
        definition: ProcessDefinition,
        *,
        business_key: str | None = None,
        started_by: str | None = "ada",
        library: dict[str, ProcessDefinition] | None = None,
    ) -> None:
        self.definition = definition
        self.library = library if library is not None else {}
        self.business_key, self.started_by = business_key, started_by
        self.now = NOW
        self.numbers = count(1)
        self.instance_id = self.new_id()
        self.definitions = {UUID(int=0): definition}
        self.instances = {self.instance_id: InstanceState(self.instance_id, UUID(int=0), business_key, started_by)}
        self.called: dict[UUID, NewInstance] = {}  # every one that ever was, as it is now
        self.tokens: dict[UUID, TokenState] = {}
        self.scopes: dict[UUID, ScopeState] = {}
        self.leaves: dict[UUID, Leaf] = {}
        self.executions: dict[UUID, ExecutionState] = {}
        self.deliveries: list[Any] = []
        self.throws: list[Any] = []
        self.revision = 0  # as the database counts: a start is none
        self.ended: str | None = None
        self.final: dict[str, Any] = {}
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

    def new(self, *kinds: str) -> list[str]:
        """What the last trigger made happen, as `kind element`, all or only the given kinds."""
        return [_told(event) for event in self.last.history if not kinds or event.kind in kinds]

    # ---- the engine's part

    def happen(self, trigger: Trigger, leaf: Leaf | None = None) -> World:
        """One command: the triggering row goes, the core decides on a narrow snapshot or else on the whole, rows change."""
        if leaf is not None:
            del self.leaves[leaf.id]
        instance = self._instance_of(trigger)
        self.last = effects = self.decide(trigger, leaf)
        effects.check()
        self.apply(effects, instance)
        self.revision += not isinstance(trigger, Started)
        return self

    def decide(self, trigger: Trigger, leaf: Leaf | None = None) -> Effects:
        """A narrow snapshot first. Where it suffices, it must lead to the very effects that the whole leads to."""
        others = self._others(trigger, leaf)
        stored = [*self.leaves.values(), *([leaf] if leaf is not None else [])]  # the command ends the one that triggers
        tasks = tuple(OpenTask(task.id, task.token_id, task.element_id) for task in stored if isinstance(task, NewTask))
        signals = tuple(
            OpenSignal(each.id, each.token_id, each.element_id, each.message_name)
            for each in self.leaves.values()
            if isinstance(each, NewSubscription) and each.kind == "signal"
        )
        instance = self._instance_of(trigger)
        rest = tuple(each for each in self.instances.values() if each.id != instance)
        seen = {"scopes": self.scopes, "tokens": self.tokens, "tasks": tasks, "signals": signals, "others": rest}
        whole = Snapshot(**self._ids(instance), **seen, executions=tuple(self.executions.values()), whole=True, **others)
        first_id = next(self.numbers)
        self.numbers = count(first_id)
        narrow = self.narrow(trigger, leaf)
        try:
            effects = self._advance_leanly(narrow, trigger, first_id)
        except NeedsWholeInstance:
            self.asked_whole += 1
            self.numbers = count(first_id)
            return self._advance(whole, trigger)
        after = next(self.numbers)
        self.numbers = count(first_id)
        assert _rows(self._advance(whole, trigger)) == _rows(effects)
        self.numbers = count(after)
        return effects

    def narrow(self, trigger: Trigger, leaf: Leaf | None = None) -> Snapshot:
        """As the contract says: the chain of scopes, its owners, the trigger's token, quiet tokens, crowded scopes."""
        token = self.tokens.get(getattr(trigger, "token_id", None))  # type: ignore[arg-type]
        chain: dict[UUID, ScopeState] = {}
        tokens = {token.id: token} if token else {}
        scope = self.scopes.get(token.scope_id) if token else None
        if isinstance(trigger, Continued):
            scope = next(each for each in self.scopes.values() if each.token_id == trigger.token_id)
        while scope is not None:
            chain[scope.id] = scope
            if scope.token_id is not None:
                tokens[scope.token_id] = self.tokens[scope.token_id]
            outer = scope.parent_id or (self.tokens[scope.token_id].scope_id if scope.token_id else None)
            scope = self.scopes.get(outer) if outer else None
        quiet = ("joining", "listening")
        tokens |= {each.id: each for each in self.tokens.values() if each.status in quiet and each.scope_id in chain}
        crowded = frozenset(each.scope_id for each in self.tokens.values() if each.id not in tokens) & frozenset(chain)
        instance = self._instance_of(trigger)
        callers = {each.instance_id for each in chain.values()} - {instance}
        others = tuple(each for each in self.instances.values() if each.id in callers)
        leaves = self._others(trigger, leaf)
        return Snapshot(
            **self._ids(instance),
            scopes=chain,
            tokens=tokens,
            crowded=crowded,
            others=others,
            executions=self._undone_next(chain),
            **leaves,
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
            return self._advance(replace(narrow, scopes=scopes), trigger)
        except NeedsVariables:
            self.asked_more += 1
            self.numbers = count(first_id)
            return self._advance(narrow, trigger)

    def _advance(self, snapshot: Snapshot, trigger: Trigger) -> Effects:
        """What is called is found one call after the other, as a command finds it."""
        first_id, calls = next(self.numbers), dict[Call, Called | NotCallable]()
        while True:
            self.numbers = count(first_id)
            known = Known(self.definitions, calls)
            definition = self.definitions[snapshot.definition_id]
            try:
                return advance(definition, snapshot, trigger, now=self.now, new_id=self.new_id, known=known)
            except NeedsDefinition as needed:
                assert needed.call not in calls, f"{needed.call} was answered already"
                calls[needed.call] = self._find(needed.call)

    def _find(self, call: Call) -> Called | NotCallable:
        found = self.library.get(call.key)
        if found is None:
            return NotCallable(f"no process {call.key}")
        for key, known in self.definitions.items():
            if known is found:
                return Called(key, known)
        self.definitions[UUID(int=1_000_000 + len(self.definitions))] = found
        return self._find(call)

    def _instance_of(self, trigger: Trigger) -> UUID:
        token = self.tokens.get(getattr(trigger, "token_id", None))  # type: ignore[arg-type]
        instance = self.scopes[token.scope_id].instance_id if token else None
        return instance or self.instance_id

    def _ids(self, instance_id: UUID) -> dict[str, Any]:
        instance = self.instances[instance_id]
        return {
            "tenant_id": "",
            "instance_id": instance_id,
            "root_id": self.instance_id,
            "definition_id": instance.definition_id,
            "business_key": instance.business_key,
            "started_by": instance.started_by,
            "revision": self.revision,
        }

    def _others(self, trigger: Trigger, leaf: Leaf | None) -> dict[str, Any]:
        token_id = getattr(trigger, "token_id", None)
        return {"other_leaves": any(each.token_id == token_id and each is not leaf for each in self.leaves.values())}

    def apply(self, effects: Effects, instance_id: UUID) -> None:
        """Deletes with their cascades, then moves, then inserts. A task that loses its token without being named is an error."""
        homes = {key: home.instance_id for key, home in effects.homes.items()}
        self._apply_instances(effects)
        for task_id in effects.cancelled_tasks:
            del self.leaves[task_id]
        for subscription in effects.gone_subscriptions:
            assert self.leaves.pop(subscription).token_id not in effects.gone_tokens, "it goes by cascade"
        for token_id in (*effects.resolved_incidents_of, *(incident.token_id for incident in effects.incidents)):
            self._delete_leaves(token_id, NewIncident)
        for token_id in effects.gone_tokens:
            self._delete_token(token_id)
        for scope_id in effects.gone_scopes:
            self._delete_scope(scope_id)
        for moved in effects.moved_tokens:
            before = self.tokens[moved.id]
            assert before.memory is None, "a row that remembers does not move"
            self.tokens[moved.id] = TokenState(moved.id, before.scope_id, moved.element_id, moved.flow_id, moved.status, moved.memory)
        for new in effects.new_tokens:
            assert new.id not in self.tokens
            self.tokens[new.id] = TokenState(new.id, new.scope_id, new.element_id, new.flow_id, new.status, new.memory)
        for token_id, memory in effects.memories.items():
            self.tokens[token_id] = replace(self.tokens[token_id], memory=memory)
        for opened in effects.new_scopes:
            home = homes.get(opened.id, instance_id)
            self.scopes[opened.id] = ScopeState(opened.id, opened.parent_id, opened.element_id, opened.token_id, {}, opened.counters, home)
        assert all(opened.path[-1] == opened.id and len(opened.path) == self._depth(opened.id) for opened in effects.new_scopes)
        for scope_id, counters in effects.counters.items():
            self.scopes[scope_id] = replace(self.scopes[scope_id], counters=counters)
        for (scope_id, name), variable in effects.variables.items():
            scope = self.scopes[scope_id]
            self.scopes[scope_id] = replace(scope, variables={**scope.variables, name: variable})
        for leaf in (*effects.tasks, *effects.jobs, *effects.external_tasks, *effects.subscriptions, *effects.incidents):
            assert leaf.token_id in self.tokens, f"{leaf} hangs off a token that is not there"
            assert homes.get(leaf.token_id, instance_id) == self.scopes[self.tokens[leaf.token_id].scope_id].instance_id
            self.leaves[leaf.id] = leaf
        self._keep_executions(effects)
        self.deliveries += effects.deliveries
        self.throws += effects.throws
        self._keep(effects)
        self.check()

    def _keep(self, effects: Effects) -> None:
        self.events += effects.history
        self.happened += [_told(event) for event in effects.history]
        if effects.ended:
            self.ended = effects.ended
            self.final = {name: native(variable) for name, variable in (effects.final_variables or {}).items()}

    def _keep_executions(self, effects: Effects) -> None:
        """Inserts and moves, then deletes with their cascades, as the constraints of the table have it."""
        rows = self.executions
        lie_in = {scope: {row.id for row in rows.values() if row.scope_id == scope} for scope in (row.scope_id for row in rows.values())}
        named = [{moved.id for moved in effects.moved_executions}]
        named += [lie_in.get(each.from_scope, set()) for each in effects.handed_over]
        named += [set(effects.gone_executions).union(*(lie_in.get(scope, set()) for scope in effects.forgotten_scopes))]
        assert sum(map(len, named)) == len(set().union(*named)), "effects name an execution twice"
        for handed in effects.handed_over:
            for row in [row for row in rows.values() if row.scope_id == handed.from_scope]:
                rows[row.id] = replace(row, scope_id=handed.scope_id, within_id=handed.within_id)
        for moved in effects.moved_executions:
            rows[moved.id] = replace(rows[moved.id], scope_id=moved.scope_id, within_id=moved.within_id)
        for new in effects.new_executions:
            assert new.id not in rows
            rows[new.id] = ExecutionState(new.id, new.scope_id, new.within_id, new.element_id, new.number, new.variables)
        for gone in [*effects.gone_executions, *(row.id for row in rows.values() if row.scope_id in effects.forgotten_scopes)]:
            self._delete_execution(gone)
        if effects.forgets:
            rows.clear()

    def _delete_execution(self, execution_id: UUID) -> None:
        if self.executions.pop(execution_id, None) is not None:
            for inner in [row.id for row in self.executions.values() if row.within_id == execution_id]:
                self._delete_execution(inner)

    def _apply_instances(self, effects: Effects) -> None:
        for called in effects.new_instances:
            assert called.parent_id in self.instances or any(each.id == called.parent_id for each in effects.new_instances)
            self.called[called.id] = called
            if called.status == "running":
                self.instances[called.id] = InstanceState(called.id, called.definition_id, called.business_key, called.started_by)
        for over in effects.ended_instances:
            del self.instances[over.id]
            self.called[over.id] = replace(self.called[over.id], status=over.status, final_variables=over.final_variables)

    def _depth(self, scope_id: UUID) -> int:
        scope = self.scopes[scope_id]
        outer = scope.parent_id or (self.tokens[scope.token_id].scope_id if scope.token_id else None)
        return 1 + (self._depth(outer) if outer else 0)

    def _delete_token(self, token_id: UUID) -> None:
        del self.tokens[token_id]
        self._delete_leaves(token_id)
        for scope in [scope for scope in self.scopes.values() if scope.token_id == token_id]:
            self._delete_scope(scope.id)

    def _delete_scope(self, scope_id: UUID) -> None:
        del self.scopes[scope_id]
        for inner in [scope.id for scope in self.scopes.values() if scope.parent_id == scope_id]:
            if inner in self.scopes:
                self._delete_scope(inner)
        for token in [token.id for token in self.tokens.values() if token.scope_id == scope_id]:
            if token in self.tokens:
                self._delete_token(token)

    def _delete_leaves(self, token_id: UUID, *kinds: type[Leaf]) -> None:
        for leaf in [leaf for leaf in self.leaves.values() if leaf.token_id == token_id]:
            if not kinds or isinstance(leaf, kinds):
                assert not isinstance(leaf, NewTask), f"task {leaf.element_id} lost its token without being cancelled by name"
                del self.leaves[leaf.id]

    def check(self) -> None:
        """What must hold between two commands."""
        if self.ended:
            assert all(called.status != "running" for called in self.called.values()), "a called instance outlived its case"
            assert not (self.tokens or self.scopes or self.leaves or self.executions), "an ended instance has rows left"
            return
        assert set(self.instances) == {scope.instance_id for scope in self.scopes.values()}, "an instance without a scope, or the reverse"
        assert set(self.instances) - {self.instance_id} == {key for key, called in self.called.items() if called.status == "running"}
        for row in self.executions.values():
            where = row.scope_id in self.scopes if row.scope_id is not None else row.within_id in self.executions
            assert where, f"the execution of {row.element_id} lies nowhere"
        holding = {leaf.token_id for leaf in self.leaves.values()} | {scope.token_id for scope in self.scopes.values()}
        for token in self.tokens.values():
            assert token.scope_id in self.scopes
            assert token.status == "joining" or token.memory or token.id in holding, f"token at {token.element_id} waits for nothing"


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
