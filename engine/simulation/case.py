"""One case in dictionaries: effects are laid onto its rows as the database would lay them, cascades included.

It owns rows and snapshots. What happens, and when, is the house's; what follows from it is the core's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from engine.bpmn.definition import ProcessDefinition
from engine.core.advance import advance
from engine.core.effects import (
    Effects,
    Event,
    InvariantBroken,
    NewDelivery,
    NewExternalTask,
    NewIncident,
    NewInstance,
    NewJob,
    NewSubscription,
    NewTask,
    NewThrow,
)
from engine.core.elements.user_task import INPUTS
from engine.core.known import Call, Called, Decidable, DecisionCall, Known, NeedsDecision, NeedsDefinition, NotCallable, NotDecidable
from engine.core.reading import brought
from engine.core.snapshot import (
    ExecutionState,
    InstanceState,
    OpenSignal,
    OpenTask,
    ScopeState,
    Snapshot,
    Started,
    TokenState,
    Trigger,
)
from engine.core.values import Variable, native
from engine.simulation.executions import keep_executions

Leaf = NewTask | NewJob | NewExternalTask | NewSubscription | NewIncident


class Case:
    """One case: its root instance and all that it called.

    `find` says what a call means, `decide` what the call of a decision does; `new_id` gives keys in rising order.
    """

    def __init__(
        self,
        definition_id: UUID,
        definition: ProcessDefinition,
        *,
        instance_id: UUID,
        new_id: Callable[[], UUID],
        find: Callable[[Call], Called | NotCallable],
        decide: Callable[[DecisionCall], Decidable | NotDecidable],
        business_key: str | None = None,
        started_by: str | None = None,
    ) -> None:
        self.definition, self.instance_id = definition, instance_id
        self.make_id, self.find, self.decide_by = new_id, find, decide
        self.business_key, self.started_by = business_key, started_by
        self.definitions = {definition_id: definition}
        self.instances = {instance_id: InstanceState(instance_id, definition_id, business_key, started_by)}
        self.called: dict[UUID, NewInstance] = {}  # every one that ever was, as it is now
        self.tokens: dict[UUID, TokenState] = {}
        self.scopes: dict[UUID, ScopeState] = {}
        self.leaves: dict[UUID, Leaf] = {}
        self.due: dict[UUID, datetime] = {}  # when each job and external task is due
        self.failed: dict[UUID, str] = {}  # jobs and external tasks that rest beside an incident, and why
        self.executions: dict[UUID, ExecutionState] = {}
        self.deliveries: list[NewDelivery] = []
        self.throws: list[NewThrow] = []
        self.revision = 0  # as the database counts: a start is none
        self.ended: str | None = None
        self.final_variables: Mapping[str, Variable] = {}

    # ---- what there is

    def instance_of(self, token_id: UUID | None) -> UUID:
        """The instance that a token belongs to; the root's, for none."""
        token = self.tokens.get(token_id) if token_id is not None else None
        return (self.scopes[token.scope_id].instance_id if token else None) or self.instance_id

    def visible(self, token_id: UUID) -> dict[str, Any]:
        """The variables that an expression at the token sees, as Python values."""
        found: dict[str, Variable] = {}
        instance, scope = self.instance_of(token_id), self.scopes.get(self.tokens[token_id].scope_id)
        while scope is not None and scope.instance_id == instance:
            found = {**scope.variables, **found}
            scope = self._around(scope)
        return {name: native(variable) for name, variable in found.items()}

    def seen_by(self, leaf: NewTask | NewJob | NewExternalTask) -> dict[str, Any]:
        """What a form or a handler sees: its inputs, over the variables."""
        holder = (self.tokens[leaf.token_id].memory or {}) if isinstance(leaf, NewTask) else leaf.payload
        inputs = brought(holder.get(INPUTS, {}))
        return self.visible(leaf.token_id) | {name: native(variable) for name, variable in inputs.items()}

    def process_variables(self) -> Mapping[str, Variable]:
        """Those of the root's process scope; of a case that has ended, what they were last."""
        if self.ended:
            return self.final_variables
        return next((scope.variables for scope in self.scopes.values() if self._is_root(scope)), {})

    def _is_root(self, scope: ScopeState) -> bool:
        return scope.instance_id == self.instance_id and scope.parent_id is None and scope.token_id is None

    def _around(self, scope: ScopeState) -> ScopeState | None:
        outer = scope.parent_id or (self.tokens[scope.token_id].scope_id if scope.token_id else None)
        return self.scopes.get(outer) if outer else None

    # ---- one step

    def step(self, trigger: Trigger, leaf: Leaf | None, now: datetime, because: Event | None = None) -> list[Event]:
        """The triggering row goes, the core decides, rows change. What happened, in order.

        Raises NoHandlerForError and CannotContinue as the core does, and then nothing has changed.
        """
        instance = self.instance_of(getattr(trigger, "token_id", None))
        effects = self._decide(trigger, leaf, now)
        effects.check()
        if leaf is not None:
            self._end(leaf)
        self.lay(effects, instance, now)
        self.revision += not isinstance(trigger, Started)
        told = [*([because] if because is not None else []), *effects.history]
        return [replace(event, instance_id=event.instance_id or instance) for event in told]

    def _decide(self, trigger: Trigger, leaf: Leaf | None, now: datetime) -> Effects:
        return self.ask(self.snapshot(self.instance_of(getattr(trigger, "token_id", None)), trigger, leaf), trigger, now)

    def snapshot(self, instance_id: UUID, trigger: Trigger, leaf: Leaf | None) -> Snapshot:
        """The whole case, as the instance's command would load it. The row that triggered is no other leaf, and no open signal."""
        stored = self.leaves.values()
        return Snapshot(
            **self.identity(instance_id),
            scopes=self.scopes,
            tokens=self.tokens,
            tasks=tuple(OpenTask(task.id, task.token_id, task.element_id) for task in stored if isinstance(task, NewTask)),
            signals=tuple(
                OpenSignal(each.id, each.token_id, each.element_id, each.message_name)
                for each in stored
                if isinstance(each, NewSubscription) and each.kind == "signal" and each is not leaf
            ),
            executions=tuple(self.executions.values()),
            others=tuple(each for each in self.instances.values() if each.id != instance_id),
            whole=True,
            other_leaves=self.other_leaves(trigger, leaf),
        )

    def identity(self, instance_id: UUID) -> dict[str, Any]:
        """What a snapshot says of its instance."""
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

    def other_leaves(self, trigger: Trigger, leaf: Leaf | None) -> bool:
        token_id = getattr(trigger, "token_id", None)
        return any(each.token_id == token_id and each is not leaf for each in self.leaves.values())

    def ask(self, snapshot: Snapshot, trigger: Trigger, now: datetime) -> Effects:
        """Ask the core. What is called is found one call after the other, as a command finds it."""
        calls: dict[Call, Called | NotCallable] = {}
        decisions: dict[DecisionCall, Decidable | NotDecidable] = {}
        while True:
            definition, known = self.definitions[snapshot.definition_id], Known(self.definitions, calls, decisions)
            try:
                return advance(definition, snapshot, trigger, now=now, new_id=self.make_id, known=known)
            except NeedsDecision as asked:
                decisions.update({call: self.decide_by(call) for call in asked.calls})
            except NeedsDefinition as needed:
                if needed.call in calls:
                    raise InvariantBroken(f"{needed.call} was answered already") from needed
                calls[needed.call] = found = self.find(needed.call)
                if isinstance(found, Called):
                    self.definitions[found.id] = found.definition

    # ---- rows

    def lay(self, effects: Effects, instance_id: UUID, now: datetime) -> None:
        """Deletes with their cascades, then moves, then inserts, as the constraints of the tables have it."""
        self._lay_instances(effects)
        for task_id in effects.cancelled_tasks:
            del self.leaves[task_id]
        for key in effects.gone_subscriptions:
            _must(self.leaves.pop(key).token_id not in effects.gone_tokens, f"subscription {key} goes by cascade, and is named")
        for token_id in (*effects.resolved_incidents_of, *(incident.token_id for incident in effects.incidents)):
            self._delete_leaves(token_id, NewIncident)
        for token_id in effects.gone_tokens:
            self._delete_token(token_id)
        for scope_id in effects.gone_scopes:
            self._delete_scope(scope_id)
        self._lay_tokens(effects)
        self._lay_scopes(effects, instance_id)
        self._lay_leaves(effects, instance_id, now)
        keep_executions(self.executions, effects)
        self.deliveries += effects.deliveries
        self.throws += effects.throws
        if effects.ended:
            self.ended, self.final_variables = effects.ended, effects.final_variables or {}
        self.check()

    def _lay_instances(self, effects: Effects) -> None:
        beginning = {each.id for each in effects.new_instances}
        for called in effects.new_instances:
            _must(called.parent_id in self.instances or called.parent_id in beginning, f"instance {called.id} was called by nobody")
            self.called[called.id] = called
            if called.status == "running":
                self.instances[called.id] = InstanceState(called.id, called.definition_id, called.business_key, called.started_by)
        for over in effects.ended_instances:
            del self.instances[over.id]
            self.called[over.id] = replace(self.called[over.id], status=over.status, final_variables=over.final_variables)

    def _lay_tokens(self, effects: Effects) -> None:
        for moved in effects.moved_tokens:
            before = self.tokens[moved.id]
            _must(before.memory is None, f"token {moved.id} remembers something, and moves")
            self.tokens[moved.id] = TokenState(moved.id, before.scope_id, moved.element_id, moved.flow_id, moved.status, moved.memory)
        for new in effects.new_tokens:
            _must(new.id not in self.tokens, f"token {new.id} is there already")
            self.tokens[new.id] = TokenState(new.id, new.scope_id, new.element_id, new.flow_id, new.status, new.memory)
        for token_id, memory in effects.memories.items():
            self.tokens[token_id] = replace(self.tokens[token_id], memory=memory)

    def _lay_scopes(self, effects: Effects, instance_id: UUID) -> None:
        for opened in effects.new_scopes:
            home = effects.homes[opened.id].instance_id if opened.id in effects.homes else instance_id
            self.scopes[opened.id] = ScopeState(opened.id, opened.parent_id, opened.element_id, opened.token_id, {}, opened.counters, home)
        for opened in effects.new_scopes:
            _must(opened.path[-1] == opened.id and len(opened.path) == self._depth(opened.id), f"scope {opened.id} lies elsewhere")
        for scope_id, counters in effects.counters.items():
            self.scopes[scope_id] = replace(self.scopes[scope_id], counters=counters)
        for (scope_id, name), variable in effects.variables.items():
            scope = self.scopes[scope_id]
            self.scopes[scope_id] = replace(scope, variables={**scope.variables, name: variable})

    def _depth(self, scope_id: UUID) -> int:
        around = self._around(self.scopes[scope_id])
        return 1 + (self._depth(around.id) if around is not None else 0)

    def _lay_leaves(self, effects: Effects, instance_id: UUID, now: datetime) -> None:
        new: Iterable[Leaf] = (*effects.tasks, *effects.jobs, *effects.external_tasks, *effects.subscriptions, *effects.incidents)
        for leaf in new:
            _must(leaf.token_id in self.tokens, f"{leaf} hangs off a token that is not there")
            home = effects.homes[leaf.token_id].instance_id if leaf.token_id in effects.homes else instance_id
            _must(home == self.instance_of(leaf.token_id), f"{leaf} is said to be of another instance")
            self.leaves[leaf.id] = leaf
        for job in effects.jobs:
            self.due[job.id] = job.due_at or now + timedelta(seconds=job.due_in_seconds or 0)
        self.due |= {task.id: now for task in effects.external_tasks}

    def _end(self, leaf: Leaf) -> None:
        del self.leaves[leaf.id]
        self.failed.pop(leaf.id, None)
        self.due.pop(leaf.id, None)

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
                _must(not isinstance(leaf, NewTask), f"task {leaf.element_id} lost its token without being cancelled by name")
                self._end(leaf)

    def check(self) -> None:
        """What must hold between two steps. Raises InvariantBroken."""
        running = {key for key, called in self.called.items() if called.status == "running"}
        if self.ended:
            _must(not running, "a called instance outlived its case")
            _must(not (self.tokens or self.scopes or self.leaves or self.executions), "an ended case has rows left")
            return
        _must(set(self.instances) == {scope.instance_id for scope in self.scopes.values()}, "an instance without a scope, or the reverse")
        _must(set(self.instances) - {self.instance_id} == running, "a called instance that is over, or one that is not there")
        for row in self.executions.values():
            lies = row.scope_id in self.scopes if row.scope_id is not None else row.within_id in self.executions
            _must(lies, f"the execution of {row.element_id} lies nowhere")
        holding = {leaf.token_id for leaf in self.leaves.values()} | {scope.token_id for scope in self.scopes.values()}
        for token in self.tokens.values():
            _must(token.scope_id in self.scopes, f"the token at {token.element_id} lies in no scope")
            waits = token.status == "joining" or token.memory or token.id in holding
            _must(bool(waits), f"token at {token.element_id} waits for nothing")


def _must(holds: bool, otherwise: str) -> None:
    if not holds:
        raise InvariantBroken(otherwise)
