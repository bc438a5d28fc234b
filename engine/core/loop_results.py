"""What instances of a multi-instance activity leave behind: results, collected in the order of the items, and events (10.3.8.2).

Results are kept as variables of a scope beside the iterations, named by their numbers. No token lies in it and no chain leads through
it, so a completion adds one and reads none; only who ends the activity reads them all. `counters` of the body: {results: its id}.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from engine.bpmn.definition import LoopEvent, MultiInstance, Node
from engine.core.escalations import escalate
from engine.core.reading import truth_of
from engine.core.run import CannotGoOn, Run
from engine.core.snapshot import NeedsWholeInstance
from engine.core.state import Scope, Token
from engine.core.throws import throw_signals
from engine.core.values import Variable, native, typed

Results = Mapping[str, Variable]


def open_for(run: Run, body: Scope, node: Node) -> None:
    """A place for the results of a new body, if it collects any."""
    if isinstance(node.loop, MultiInstance) and node.loop.output is not None:
        results = run.add_scope(body, None, node.id)
        results.count(kept=True)
        body.count(**body.counters, results=str(results.id))


def add(run: Run, iteration: Scope, node: Node) -> None:
    """Keep the result of an iteration that is done."""
    loop, body = node.loop, iteration.parent
    if not isinstance(loop, MultiInstance) or loop.result is None or body is None or "results" not in body.counters:
        return
    value, number = run.value(loop.result, iteration), str(iteration.counters["loop"])
    try:
        typed([value])  # it will lie in the list of all
        result = typed(value)
    except TypeError as error:
        raise CannotGoOn("expression", f"{node.name or node.id}: the result of an instance: {error}") from error
    run.effects.variables[UUID(body.counters["results"]), number] = result
    if (kept := _kept(body)) is not None:
        kept.set(number, result)


def of(run: Run, body: Scope, node: Node) -> Results:
    """The variable that collects, with the results of all in the order of their items; null for those that did not complete."""
    loop = node.loop
    if not isinstance(loop, MultiInstance) or loop.output is None or "results" not in body.counters:
        return {}
    kept = _kept(body)
    if kept is None:
        raise NeedsWholeInstance(f"element {node.id}: its results were not loaded")
    found = [kept.variables.get(str(number)) for number in range(body.counters["total"])]
    return {loop.output: typed([native(result) if result is not None else None for result in found])}


def none(node: Node) -> Results:
    """The same where there is no instance."""
    output = node.loop.output if isinstance(node.loop, MultiInstance) else None
    return {output: Variable("json", [])} if output is not None else {}


def throw(run: Run, token: Token, node: Node, attributes: Mapping[str, Any]) -> None:
    """An iteration is about to complete: throw what `behavior` says. The token is dead afterwards if that interrupted the activity."""
    throws = node.loop.throws if isinstance(node.loop, MultiInstance) else ()
    due = [each for each in throws if _is_due(run, token, node, each, attributes)]
    if due:
        run.shed(token)  # its work is done: an event that interrupts has nothing of it to cancel
    throw_signals(run, token, node, [each.signal for each in due if each.signal is not None])
    for code in (each.escalation for each in due if each.escalation is not None):
        if token.alive:
            escalate(run, token, node, code)


def _is_due(run: Run, token: Token, node: Node, event: LoopEvent, attributes: Mapping[str, Any]) -> bool:
    if event.condition is not None:
        what = f"{node.name or node.id}: the condition of its complexBehaviorDefinition"
        return truth_of(event.condition, run.names(token.scope, attributes), what)
    return not event.first or attributes["numberOfCompletedInstances"] == 1


def _kept(body: Scope) -> Scope | None:
    return next((scope for scope in body.children if "kept" in scope.counters), None)
