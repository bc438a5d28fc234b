"""Compensation (10.7, 13.5.5): what was completed is undone, last first, by handlers that see the data of each execution.

A throw event takes the executions that it names, or all that are visible to it, into a scope of its own, which its token
owns: a scope that is *compensating* (counters {compensating}). Such a scope undoes what lies in it, one after the other, the
last completed first, and ends when nothing is left. While one is undone, a token stands for it there:
- at its compensation boundary event, owning a scope with the variables of the execution, in which the handler runs; what it
  writes goes where it would without them (counters {undoes});
- or, for a subprocess without one, at the subprocess, owning a scope that is what the subprocess was when it completed. Its
  compensation event subprocess runs in it; without that, this scope is compensating in turn (default compensation).

Each execution is spent when its handler begins: it is compensated once, whatever happens besides.

A transaction that is cancelled (10.3.5, 13.3.4) is turned back: what runs in it is withdrawn, and its scope is compensating,
with the data that is there. So are the subprocesses in it that were running, because what they had completed is undone first.
When nothing is left, its token goes on at the cancel boundary event.
"""

from __future__ import annotations

from typing import Any

from engine.bpmn.definition import CompensateConfig, Node, Undo
from engine.core.data import declare
from engine.core.effects import InvariantBroken
from engine.core.event_subprocesses import listen, start_of
from engine.core.executions import spend, take
from engine.core.registry import COMPENSATING, Behaviour, register
from engine.core.run import Run
from engine.core.snapshot import Continued, NeedsWholeInstance
from engine.core.state import Execution, Scope, Token


class Compensating(Behaviour):
    """What a token does that stands in a compensating scope for what is undone there."""

    holds_scope = True

    def scope_emptied(self, run: Run, owner: Token, node: Node) -> None:
        """It is undone: the next one is."""
        self._record_end(run, owner, node, {})
        run.discard(owner)
        _go_on(run, owner.scope)

    def withdrawn(self, run: Run, token: Token, node: Node) -> None:
        self._record_end(run, token, node, {"cancelled": True})

    def continued(self, run: Run, token: Token, node: Node, trigger: Continued) -> None:
        """A looped activity whose transaction is being cancelled begins no further instances."""
        run.record(token.scope, "job_completed", node.id, {**trigger.detail, "kind": "continue"})

    def _record_end(self, run: Run, token: Token, node: Node, data: dict[str, Any]) -> None:
        ended = token.ended
        if ended is not None and "cancelled" in ended.counters:  # it was running when its transaction was cancelled
            if not is_detached(token):
                run.record(token.scope, "element_left", node.id, {"cancelled": True})
        elif token.scope.counters["compensating"] == "handler":  # a compensation event subprocess, which was entered
            run.record(token.scope, "element_left", node.id, data)
        else:
            run.record(token.scope, "compensation_done", _undone_by(token, node), data)


register(COMPENSATING, Compensating())


def _undone_by(token: Token, node: Node) -> str:
    """The activity for which a token stands in a compensating scope."""
    return getattr(node.config, "attached_to", None) or node.id


# ---- thrown


def compensate(run: Run, token: Token, node: Node, config: CompensateConfig) -> bool:
    """Throw compensation. Whether the token waits at its event until all is undone.

    One that does not wait leaves that to a second token, which keeps the scope open until then.
    """
    chosen = _visible(run, token.scope, config.activity)
    told = {"activity": config.activity, "executions": len(chosen), "waits": config.waits}
    run.record(token.scope, "compensation_thrown", node.id, told)
    if not chosen:
        return False
    holder = token if config.waits else run.spawn(token.scope, node.id)
    scope = run.add_scope(token.scope, holder, node.id)
    _compensating(scope, "all", **({} if config.waits else {"detached": True}))
    for execution in chosen:
        take(execution, scope)
    _go_on(run, scope)
    return config.waits


def is_detached(token: Token) -> bool:
    """Whether nothing but compensation that nobody waits for is left of this token."""
    scope = token.inner or token.ended
    return scope is not None and "detached" in scope.counters


def _visible(run: Run, scope: Scope, activity: str | None) -> list[Execution]:
    """10.5.5: those of the scope in which the event stands, and, out of an event subprocess, those of the scope around it."""
    found: list[Execution] = []
    around: Scope | None = scope
    while around is not None:
        if around.stored and not run.snapshot.whole:
            raise NeedsWholeInstance(f"scope {around.id} of {around.element_id or 'the process'}: what completed in it was not loaded")
        found += [each for each in around.executions if activity in (None, each.element_id)]
        inner = around.definition.nodes.get(around.element_id or "")
        around = around.parent if inner is not None and inner.kind == "event_subprocess" else None
    return sorted(found, key=lambda execution: execution.number)


def _compensating(scope: Scope, how: str, **more: Any) -> None:
    """`how`: all (what lies in it is undone), or handler (its compensation event subprocess does that).

    It does not count iterations any more, if it did.
    """
    scope.count(compensating=how, **more)


# ---- undone, one after the other


def _go_on(run: Run, scope: Scope) -> None:
    """The next one of a compensating scope is undone when nothing else moves."""
    run.turns.append(lambda: _next(run, scope))


def _next(run: Run, scope: Scope) -> None:
    run.turns.popleft()
    if not scope.alive or scope.tokens or scope.unseen or any(child.alive for child in scope.children):
        return  # withdrawn meanwhile, or somebody is still at work, seen or not, and comes back here when it is done
    if scope.stored and not run.snapshot.whole and not run.executions.first_look(scope):
        raise NeedsWholeInstance(f"scope {scope.id} of {scope.element_id}: what is left to compensate was not loaded")
    left = scope.executions if scope.counters["compensating"] == "all" else ()
    if left:
        _undo(run, scope, max(left, key=lambda execution: execution.number))
    elif scope.owner is None:  # an instance of a looped activity
        assert scope.parent is not None  # it lies in the body of that
        if scope.parent.stored and not run.snapshot.whole:  # a body that is compensating does not count its instances
            raise NeedsWholeInstance(f"scope {scope.id} of {scope.element_id}: whether others beside it are being undone was not loaded")
        scope.alive = False
        _go_on(run, scope.parent)
    else:
        run.finish(scope)


def _undo(run: Run, scope: Scope, execution: Execution) -> None:
    definition = scope.definition
    undo: Undo = definition.compensable[execution.element_id]
    spend(execution)
    run.record(scope, "compensation_begun", execution.element_id, {"handler": undo.handler})
    token = run.spawn(scope, undo.boundary or execution.element_id)
    inner = run.add_scope(scope, token, token.element_id)
    if execution.variables:
        run.assign_here(inner, execution.variables, execution.element_id)
    if undo.boundary is not None:
        inner.count(undoes=execution.element_id)
        handler = run.spawn(inner, undo.handler or "")
        handler.flow_id = undo.boundary  # what has no flow is not entered again by a retry
        run.enter(handler, definition.nodes[handler.element_id])
        return
    for within in list(execution.executions):
        take(within, inner)
    if undo.handler is None:
        _compensating(inner, "all")
        _go_on(run, inner)
        return
    _compensating(inner, "handler")
    _begin_event_subprocess(run, inner, undo.handler)


def _begin_event_subprocess(run: Run, scope: Scope, key: str) -> None:
    """13.5.5: the compensation event subprocess runs in what its parent was when it completed."""
    token = run.spawn(scope, key)
    run.record(scope, "element_entered", key)
    inner = run.add_scope(scope, token, key)
    declare(run, inner, scope.definition.nodes[key])
    listen(run, inner)
    run.begin_at(inner, start_of(scope.definition, key).id)


# ---- a cancelled transaction


def cancel(run: Run, token: Token, node: Node) -> None:
    """A cancel end event was reached (10.5.3): the transaction around it is turned back, if it is not already."""
    scope: Scope | None = token.scope
    while scope is not None and not _is_transaction(scope):
        scope = scope.parent
    if scope is None:
        raise InvariantBroken(f"token {token.id} at {node.id}: expected a transaction around it, found none")
    if scope.stored and not run.snapshot.whole:
        raise NeedsWholeInstance(f"transaction {scope.element_id}: what it is to undo was not loaded")
    if not scope.is_compensating:
        run.record(scope, "transaction_cancelled", scope.element_id, {"thrown_by": node.id})
        _turn_back(run, scope)


def _is_transaction(scope: Scope) -> bool:
    node = scope.definition.nodes.get(scope.element_id or "")
    return node is not None and node.kind == "transaction"


def _turn_back(run: Run, scope: Scope) -> None:
    """Withdraw what runs in a scope; undo what was completed in it, and in what was running there.

    Compensation that is under way goes on. A called process is withdrawn: what it has done is its own.
    """
    for token in list(scope.tokens):
        inner = _inside(token)
        if inner is not None and inner.is_compensating:
            inner.count(**{**inner.counters, "cancelled": True})
        elif inner is not None and _has_completed(inner):
            _turn_back(run, inner)
        else:
            run.withdraw(token)
    for child in scope.children:
        if child.alive and _has_completed(child):
            _turn_back(run, child)
        elif child.alive:
            run.withdraw_all(child)
            child.alive = False
    _compensating(scope, "all", cancelled=True)
    _go_on(run, scope)


def _has_completed(scope: Scope) -> bool:
    """Whether something in a running scope is to be undone, or is being undone."""
    inside = [_inside(token) for token in scope.tokens] + [child for child in scope.children if child.alive]
    return bool(scope.executions) or scope.is_compensating or any(_has_completed(each) for each in inside if each is not None)


def _inside(token: Token) -> Scope | None:
    """The scope that a token owns in its own process."""
    return None if token.inner is None or token.inner.parent is None else token.inner


def is_turning_back(run: Run, token: Token) -> bool:
    """Whether the activity at which a token rests is being turned back: then its boundary events occur no more."""
    if token.scope.is_compensating:
        return True
    if token.node.kind != "transaction":
        return False
    if token.inner is None and not run.snapshot.whole:
        raise NeedsWholeInstance(f"token {token.id} at {token.element_id}: whether its transaction is being cancelled was not loaded")
    return token.inner is not None and token.inner.is_compensating
