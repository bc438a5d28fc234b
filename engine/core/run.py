"""One advance in progress: the moves that behaviours make (enter, leave, end, fail, interrupt), and the agenda.

Depth first: a branch runs until it waits or ends, then the next one starts, in the order of the outgoing flows.
What must be seen and was not loaded raises NeedsWholeInstance; nothing here guesses.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from engine.bpmn.definition import Flow, Node, ProcessDefinition
from engine.core.effects import Effects, Event, InvariantBroken, NewIncident
from engine.core.executions import Executions, remember
from engine.core.known import NOTHING_KNOWN, Known
from engine.core.loading import load
from engine.core.quantities import gather
from engine.core.registry import BEHAVIOURS, LOOP, behaviour_at, behaviour_of
from engine.core.snapshot import NeedsWholeInstance, Snapshot
from engine.core.state import Instance, Names, Scope, Token
from engine.core.values import Variable
from engine.expressions import Expression, ExpressionError

STEP_LIMIT = 2_000
"""Flows taken in one advance. A model that needs more loops without waiting for anything."""

NOTHING: Mapping[str, Any] = {}
ENTERING: Mapping[str, Any] = {"entering": True}  # the memory of a token that failed to enter what no flow leads to: a retry enters again


class CannotGoOn(Exception):
    """A token cannot enter or leave its element. It becomes an incident; `kind` as in NewIncident."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Run:
    """The state of one advance and the moves on it."""

    def __init__(
        self,
        definition: ProcessDefinition,
        snapshot: Snapshot,
        now: datetime,
        new_id: Callable[[], UUID],
        known: Known = NOTHING_KNOWN,
    ) -> None:
        self.snapshot = snapshot
        self.known = known
        self.instance = Instance(
            snapshot.instance_id,
            snapshot.definition_id,
            definition,
            snapshot.business_key,
            snapshot.started_by,
            stored=bool(snapshot.scopes),
        )
        self.instances: dict[UUID, Instance] = {snapshot.instance_id: self.instance}
        self.now = now
        self.new_id = new_id
        self.effects = Effects()
        self.history = self.effects.history
        self.scopes: list[Scope] = []
        self.tokens: dict[UUID, Token] = {}
        self.gone: list[tuple[UUID, Scope]] = []  # rows of tokens to delete, with the scope that they lie in
        self.resolved: set[UUID] = set()
        self.received: dict[UUID, UUID] = {}  # stored subscriptions that had a signal in this step -> token, as it was
        self.agenda: list[tuple[Token, Flow]] = []
        self.turns: deque[Callable[[], None]] = deque()  # what begins when nothing else moves; each takes itself out
        self.executions = Executions(snapshot.revision, begins=not snapshot.scopes)
        self.begun = 0  # of them, in this advance
        self.changed: dict[Scope, set[str]] = {}  # names of variables, until conditional events have looked at them
        self.due: deque[tuple[Token, Node]] = deque()  # conditional events that have become true
        self.returns: list[tuple[Token, Scope]] = []  # callers, and the process scope of what they called, which is complete
        self.steps = 0
        if snapshot.scopes:
            load(self)

    # ---- reading

    @property
    def root(self) -> Instance:
        """The instance that nobody called; every snapshot reaches up to it."""
        return self.instance if len(self.instances) == 1 else next(each for each in self.instances.values() if each.caller is None)

    def token(self, token_id: UUID) -> Token:
        """A token of the snapshot."""
        token = self.tokens.get(token_id)
        if token is None:
            raise InvariantBroken(f"instance {self.snapshot.instance_id}: expected token {token_id} in the snapshot, found none")
        return token

    def names(self, scope: Scope, local: Mapping[str, Any] | None = None) -> Names:
        """What an expression sees in `scope`."""
        return Names(scope, scope.instance.engine_names(self.now), local)

    def value(self, expression: Expression, scope: Scope) -> Any:
        """The value of an expression in a scope."""
        return expression.evaluate(self.names(scope))

    # ---- writing

    def record(self, scope: Scope, kind: str, element_id: str | None = None, data: Mapping[str, Any] = NOTHING) -> None:
        """Write one history event of what happens in `scope`."""
        instance = scope.instance
        self.history.append(Event(kind, element_id, data, None if instance is self.instance else instance.id))

    def assign(self, scope: Scope, values: Mapping[str, Variable], element_id: str) -> None:
        """Set results: each goes to the nearest scope up the chain that has the name, else to the process scope."""
        changed: dict[str, Any] = {}
        for name, variable in values.items():
            holder = scope.holder_of(name)
            if holder.variables.get(name) != variable:
                self._set(holder, name, variable, changed)
        if changed:
            self.record(scope, "variables_set", element_id, {"variables": changed})

    def assign_here(self, scope: Scope, values: Mapping[str, Variable], element_id: str | None) -> None:
        """Set variables in this very scope."""
        changed: dict[str, Any] = {}
        for name, variable in values.items():
            self._set(scope, name, variable, changed)
        if changed:
            self.record(scope, "variables_set", element_id, {"variables": changed})

    def _set(self, scope: Scope, name: str, variable: Variable, changed: dict[str, Any]) -> None:
        scope.set(name, variable)
        self.changed.setdefault(scope, set()).add(name)
        self.effects.variables[scope.id, name] = variable
        changed[name] = {"type": variable.type, "value": variable.value}

    # ---- moves

    def open_process(self, instance: Instance, caller: Token | None = None) -> Scope:
        """Open the scope of a process instance that begins, for the token that calls it."""
        scope = instance.scope = Scope(self.new_id(), instance, None, caller, None)
        if caller is not None:
            caller.inner = scope
        self.instances[instance.id] = instance
        self.scopes.append(scope)
        return scope

    def add_scope(self, parent: Scope, owner: Token | None, element_id: str | None) -> Scope:
        """Open a scope inside another: that of an activity whose token is `owner`, or an iteration, which no token owns."""
        scope = Scope(self.new_id(), parent.instance, parent, owner, element_id)
        if owner is not None:
            owner.inner = scope
        else:
            parent.children.append(scope)
        self.scopes.append(scope)
        return scope

    def spawn(self, scope: Scope, element_id: str) -> Token:
        """One more token in `scope`."""
        token = Token(self.new_id(), scope, element_id, None, "waiting", stored=False)
        scope.tokens[token] = None
        self.tokens[token.id] = token
        return token

    def begin_at(self, scope: Scope, element_id: str) -> None:
        """A new token enters the start event of a scope (13.5.1)."""
        node = scope.definition.nodes[element_id]
        behaviour_of(node).start_at(self, scope, node)

    def work(self) -> None:
        """Move tokens until every one of them waits, rests or has ended."""
        agenda, returns = self.agenda, self.returns
        while agenda or returns or self.turns or self.due:
            if returns:
                caller, scope = returns.pop()
                behaviour_of(caller.node).returned(self, caller, caller.node, scope)
                continue
            if self.due:
                token, event = self.due.popleft()
                behaviour_of(event).came_true(self, token, event)
                continue
            if not agenda:
                self.turns[0]()
                continue
            token, flow = agenda.pop()
            if not token.alive:
                continue
            self.steps += 1
            self.record(token.scope, "flow_taken", flow.id)
            token.element_id = flow.target
            token.flow_id = flow.id
            token.status = "waiting"
            self._arrive(token, token.node, again=False)

    def begin_iteration(self, scope: Scope, node: Node) -> None:
        """A token enters the activity in its own iteration."""
        self.steps += 1
        self.begun += 1
        token = self.spawn(scope, node.id)
        body = scope.parent
        token.flow_id = body.owner.flow_id if body is not None and body.owner is not None else None
        self.record(scope, "element_entered", node.id, {"loop": scope.counters["loop"]})
        self._arrive(token, node, again=True)

    def _arrive(self, token: Token, node: Node, *, again: bool) -> None:
        if self.steps > STEP_LIMIT:
            text = f"expected a task, event or end after at most {STEP_LIMIT:,} sequence flows, found a loop that never waits"
            self.fail(token, CannotGoOn("endless_loop", text), again=True)
        elif node.start_quantity == 1 or again or gather(self, token, node):
            self.enter(token, node, again=again)

    def enter(self, token: Token, node: Node, *, again: bool = False) -> None:
        """Let a token that has arrived do what its element does. What it could not finish leaves no row and no event."""
        behaviour = behaviour_at(token, node)
        if behaviour.announced and not again:
            self.record(token.scope, "element_entered", node.id)
        events, deliveries, throws = len(self.history), len(self.effects.deliveries), len(self.effects.throws)
        try:
            behaviour.enter(self, token, node)
        except (ExpressionError, CannotGoOn) as error:
            del self.history[events:], self.effects.deliveries[deliveries:], self.effects.throws[throws:]
            self.fail(token, error, again=not behaviour.listens)

    def leave(self, token: Token, *, again: bool = False) -> None:
        """The element is done: take its outgoing flows, all that apply (8.3.13); a token with none left ends (13.2.1).

        `again`: it was done before, and could not be left.
        """
        node = token.node
        if token.scope.definition.compensable and not again:
            remember(self, token, node)
        if token.scope.is_iteration:
            BEHAVIOURS[LOOP].leave_iteration(self, token, node)
            return
        try:
            if (owner := token.scope.owner) and behaviour_at(owner, owner.node).inner_left(self, owner, token):
                return
            flows = self._flows_out(token, node)
        except (ExpressionError, CannotGoOn) as error:
            token.flow_id = None  # a retry only leaves again
            self.fail(token, error)
            return
        self.record(token.scope, "element_left", node.id)
        if node.completion_quantity > 1:
            flows = [flow for flow in flows for _ in range(node.completion_quantity)]
        self.take(token, flows)

    def take(self, token: Token, flow_ids: Iterable[str]) -> None:
        """Send a token out by the given flows: by the first itself, by each other one a new token. Where it waits comes first."""
        nodes, flows = token.scope.definition.nodes, [token.scope.definition.flows[flow_id] for flow_id in flow_ids]
        if not flows:
            self.end(token)
            return
        if len(flows) > 1:  # so that a branch waits for the signal that the branch beside it throws
            flows.sort(key=lambda flow: not behaviour_of(nodes[flow.target]).only_waits)
        self.shed(token)
        token.status = "moving"
        moves = [(token, flows[0])]
        for flow in flows[1:]:
            other = self.spawn(token.scope, token.element_id)
            other.status = "moving"
            moves.append((other, flow))
        self.agenda.extend(reversed(moves))

    def absorb(self, tokens: Iterable[Token]) -> None:
        """Consume tokens that merge into another one of their scope."""
        for token in tokens:
            self._remove(token)

    def end(self, token: Token) -> None:
        """The token is consumed. The last one of a scope ends the scope."""
        self._remove(token)
        self.finish_if_done(token.scope)

    def discard(self, token: Token) -> None:
        """The token is not needed any more; its scope goes on."""
        self._remove(token)

    def finish_if_done(self, scope: Scope) -> None:
        """Finish a scope in which nothing but listeners is left."""
        done = not scope.unseen and all(token.status == "listening" for token in scope.tokens)
        if done and not (scope.owner and behaviour_at(scope.owner, scope.owner.node).goes_on(self, scope)):
            self.finish(scope)

    def finish(self, scope: Scope) -> None:
        """A scope without tokens is done: the instance completes, or the activity that owns the scope goes on.

        A caller goes on when whoever made this happen is done, so that no depth of calls makes the stack deeper.
        """
        scope.alive = False
        for listener in list(scope.tokens):
            self._remove(listener)
        owner = scope.owner
        if scope.parent is None:
            scope.instance.ended = "completed"
        if owner is None:
            return
        owner.inner = None
        if scope.parent is None:
            self.record(scope, "instance_completed")
            self.returns.append((owner, scope))
            return
        owner.ended = scope
        behaviour_at(owner, owner.node).scope_emptied(self, owner, owner.node)

    def fail(self, token: Token, error: ExpressionError | CannotGoOn, *, again: bool = False) -> None:
        """The token rests failed at its element, beside an incident, with nothing else hanging off it.

        `again`: a retry enters the element, even where no flow leads to it.
        """
        self.shed(token)
        if again and token.flow_id is None:
            token.memory = ENTERING
        token.status = "failed"
        kind = error.kind if isinstance(error, CannotGoOn) else "expression"
        incident = NewIncident(self.new_id(), token.id, token.element_id, kind, str(error))
        token.wait_for(self.effects.incidents, incident)
        data = {"item_id": str(token.id), "incident_id": str(incident.id), "kind": kind, "message": incident.message}
        self.record(token.scope, "incident_opened", token.element_id, data)

    def interrupt(self, token: Token) -> None:
        """Cancel the activity at which the token rests; the token itself stays, with nothing hanging off it."""
        self._clear(token)
        self.record(token.scope, "element_left", token.element_id, {"cancelled": True})
        self.shed(token, all_leaves=True)

    def emerge(self, token: Token, node: Node) -> None:
        """The token continues at an event that no flow leads to: a boundary event."""
        token.element_id, token.flow_id, token.status = node.id, None, "waiting"
        self.record(token.scope, "element_entered", node.id)
        self.leave(token)

    def withdraw_all(self, scope: Scope) -> None:
        """Cancel every token of a scope and of the iterations in it, and what lies under them."""
        self.see_all_of(scope)
        for token in list(scope.tokens):
            self.withdraw(token)
        for child in scope.children:
            if child.alive:
                self.withdraw_all(child)
                child.alive = False

    def withdraw_others(self, scope: Scope, survivor: Token) -> None:
        """Cancel every token of a scope, and what lies under it, except one."""
        self.see_all_of(scope)
        for token in [token for token in scope.tokens if token is not survivor]:
            self.withdraw(token)

    def shed(self, token: Token, *, all_leaves: bool = False) -> None:
        """Leave behind what hangs off the token: rows not yet written are dropped, stored ones go by cascade with its old id."""
        token.leaves.clear()
        remembered, token.memory = token.memory, None
        if not (token.settled or all_leaves):
            return
        token.settled = False
        if token.stored and (all_leaves or remembered or self._has_leaves(token)):
            self.gone.append((token.id, token.scope))
            del self.tokens[token.id]
            token.id, token.stored = self.new_id(), False
            self.tokens[token.id] = token

    # ---- helpers, in call order

    def _flows_out(self, token: Token, node: Node) -> Iterable[str]:
        outgoing, flows = node.outgoing, token.scope.definition.flows
        if len(outgoing) == 1 and (flows[outgoing[0]].condition is None or outgoing[0] == node.default):
            return outgoing
        taken = [flow for flow in outgoing if flow != node.default and self.holds(flows[flow], token.scope)]
        if node.default is not None and all(flows[flow].condition is None for flow in taken):
            return (*taken, node.default)  # flows without a condition say nothing about the default one (8.3.13)
        if outgoing and not taken:
            raise CannotGoOn("no_flow", f"{node.name or node.id}: expected a flow whose condition holds or a default flow, found neither")
        return taken

    def holds(self, flow: Flow, scope: Scope) -> bool:
        """Whether a flow may be taken. Only true and false answer a condition."""
        if flow.condition is None:
            return True
        try:
            value = self.value(flow.condition, scope)
        except ExpressionError as error:
            raise CannotGoOn("expression", f"condition {flow.condition.text} of flow {flow.id}: {error}") from error
        if value is True or value is False:
            return bool(value)
        raise CannotGoOn("expression", f"condition {flow.condition.text} of flow {flow.id}: expected true or false, found {value!r}")

    def _remove(self, token: Token) -> None:
        token.alive = False
        del token.scope.tokens[token]
        if token.stored:
            self.gone.append((token.id, token.scope))

    def _has_leaves(self, token: Token) -> bool:
        node = token.node
        return self.snapshot.other_leaves or behaviour_of(node).leaves_left(node, token.scope.definition.nodes)

    def withdraw(self, token: Token) -> None:
        """Cancel a token, and what lies under it."""
        self._clear(token)
        if token.status == "waiting":  # neither at a join, which it has not entered, nor between two elements
            behaviour_at(token, token.node).withdrawn(self, token, token.node)
        self._remove(token)

    def _clear(self, token: Token) -> None:
        """Cancel the user tasks of a token and the scope inside its activity. The rest goes by cascade."""
        for rows, row in token.leaves:
            if rows is self.effects.tasks:
                self.record(token.scope, "task_cancelled", token.element_id, {"item_id": str(row.id)})
        behaviour = behaviour_at(token, token.node)
        if token.settled and behaviour.holds_task:
            self._cancel_stored_tasks(token)
        inner = token.inner
        if inner is not None:
            self.withdraw_all(inner)
            inner.alive = False
            token.inner = None
            if inner.parent is None:
                self.cancelled(inner)
            else:
                token.ended = inner
        elif token.settled and token.status == "waiting" and behaviour.holds_scope and not self.snapshot.whole:
            raise NeedsWholeInstance(f"element {token.element_id}: its inner scope was not loaded")

    def cancelled(self, process: Scope) -> None:
        """A called instance ends with whoever called it."""
        process.instance.ended = "cancelled"
        self.record(process, "instance_cancelled")

    def _cancel_stored_tasks(self, token: Token) -> None:
        tasks = [task for task in self.snapshot.tasks if task.token_id == token.id]
        if not tasks and not self.snapshot.whole:
            raise NeedsWholeInstance(f"element {token.element_id}: its task was not loaded")
        for task in tasks:
            self.effects.cancelled_tasks.append(task.id)
            self.record(token.scope, "task_cancelled", task.element_id, {"item_id": str(task.id)})

    def see_all_of(self, scope: Scope) -> None:
        if scope.unseen:
            raise NeedsWholeInstance(f"scope {scope.id} of {scope.element_id or 'the process'}: it has tokens that were not loaded")
