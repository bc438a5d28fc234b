"""Activities that run several times: standard loops and multi-instance activities (10.3.8, 13.3.6, 13.3.7).

The activity's token owns a scope, its *body*, whose row counts: how many there are to be (`total`, None for a loop), how many
were begun and completed. Each *iteration* is a scope inside the body, with its own variables (the counter, the item) and one
token, which does what the activity does. So one completion concerns its iteration and the counters, whatever the number of
the others. Boundary events belong to the whole, not to an iteration. Results go where they would without the loop.

The items of a sequential collection are read again for each iteration; how many there are is decided when it begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from engine.bpmn.definition import MultiInstance, Node, StandardLoop
from engine.core.catching import arm
from engine.core.registry import LOOP, Behaviour, register
from engine.core.run import CannotGoOn, Run
from engine.core.state import Scope, Token
from engine.core.values import Variable, typed
from engine.expressions import Expression, ExpressionError

MAX_PARALLEL = 1_000
"""Instances begun in one step. A larger collection is an incident that says so, not a transaction without end."""


class Loop(Behaviour):
    """What a token of a looped activity does: it owns the body until the last iteration is done."""

    holds_scope = True

    def enter(self, run: Run, token: Token, node: Node) -> None:
        items, total = _planned(run, token.scope, node)
        for event in node.attached:
            arm(run, token, token.scope.definition.nodes[event])
        if total == 0:
            run.leave(token)
            return
        body = run.add_scope(token.scope, token, node.id)
        body.count(total=total, begun=0, completed=0)
        at_once = total if isinstance(node.loop, MultiInstance) and not node.loop.sequential and total is not None else 1
        for number in range(at_once):
            _begin(run, body, node, number, items)

    def leave_iteration(self, run: Run, token: Token, node: Node) -> None:
        """One iteration is done. What follows is decided first: where that cannot be, a retry decides again."""
        iteration, body = token.scope, token.scope.parent
        assert body is not None  # an iteration lies in a body
        counters = {**body.counters, "completed": body.counters["completed"] + 1}
        try:
            enough, items = _decide(run, iteration, node, counters)
        except (ExpressionError, CannotGoOn) as error:
            token.flow_id = None
            run.fail(token, error)
            return
        run.record(iteration, "element_left", node.id, {"loop": iteration.counters["loop"]})
        run.discard(token)
        iteration.alive = False
        body.count(**counters)
        if enough:
            run.withdraw_all(body)
            _finish(run, body)
        elif counters["begun"] == counters["completed"]:
            _begin(run, body, node, counters["begun"], items)


register(LOOP, Loop())


def _begin(run: Run, body: Scope, node: Node, number: int, items: Sequence[Variable] | None) -> None:
    """Open an iteration; its token enters the activity when all that are begun together are there."""
    iteration = run.add_scope(body, None, node.id)
    iteration.count(loop=number)
    body.count(**{**body.counters, "begun": number + 1})
    values = {_index(node): Variable("integer", number)}
    if items is not None and isinstance(node.loop, MultiInstance) and node.loop.element:
        values[node.loop.element] = items[number]
    run.assign_here(iteration, values, node.id)
    run.begin_later(iteration, node)


def _finish(run: Run, body: Scope) -> None:
    owner = body.owner
    assert owner is not None  # the token of the activity
    body.alive = False
    owner.inner = None
    run.leave(owner)


# ---- how often


def _planned(run: Run, scope: Scope, node: Node) -> tuple[Sequence[Variable] | None, int | None]:
    """The items, and how many iterations there will be; None and None for a loop, which finds out."""
    loop = node.loop
    if isinstance(loop, StandardLoop):
        before = {_index(node): 0}
        return None, 0 if loop.test_before and loop.condition is not None and not _true(run, scope, loop.condition, before, node) else None
    assert loop is not None  # only looped activities come here
    items, total = _items(run, scope, node, loop), 0
    if items is not None:
        total = len(items)
    elif loop.cardinality is not None:
        total = _number(loop.cardinality, run.value(loop.cardinality, scope), node)
    if total > MAX_PARALLEL and not loop.sequential:
        raise CannotGoOn("expression", f"{node.name or node.id}: expected at most {MAX_PARALLEL:,} instances at once, found {total:,}")
    return items, total


def _decide(run: Run, iteration: Scope, node: Node, counters: dict[str, Any]) -> tuple[bool, Sequence[Variable] | None]:
    """Whether the activity is done after this iteration, and else the items for the next one."""
    loop, completed = node.loop, counters["completed"]
    if isinstance(loop, StandardLoop):
        if loop.maximum is not None and completed >= loop.maximum:
            return True, None
        again = {_index(node): completed}
        return loop.condition is not None and not _true(run, iteration, loop.condition, again, node), None
    assert loop is not None  # only looped activities come here
    said = {
        "nrOfInstances": counters["total"],
        "nrOfActiveInstances": counters["begun"] - completed,
        "nrOfCompletedInstances": completed,
    }
    if loop.until is not None and _true(run, iteration, loop.until, said, node):
        return True, None
    if completed == counters["total"]:
        return True, None
    if not loop.sequential:
        return False, None
    body = iteration.parent
    assert body is not None and body.parent is not None  # the scope in which the activity stands
    items = _items(run, body.parent, node, loop)
    if items is not None and len(items) <= completed:
        what = f"{node.name or node.id}: expected the collection to keep its {counters['total']} items, found {len(items)}"
        raise CannotGoOn("expression", what)
    return False, items


def _items(run: Run, scope: Scope, node: Node, loop: MultiInstance) -> Sequence[Variable] | None:
    if loop.collection is None:
        return None
    value = run.value(loop.collection, scope)
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise CannotGoOn("expression", f"{node.name or node.id}: expected a list from {loop.collection.text}, found {value!r:.200}")
    try:
        return [typed(item) for item in value]
    except TypeError as error:
        raise CannotGoOn("expression", f"{node.name or node.id}: an item of {loop.collection.text}: {error}") from error


def _number(expression: Expression, value: Any, node: Node) -> int:
    if isinstance(value, str) and value.strip().isdecimal() and len(value.strip()) < 10:
        return int(value.strip())
    if isinstance(value, int | Decimal) and not isinstance(value, bool) and value >= 0 and value == int(value):
        return int(value)
    what = f"{node.name or node.id}: expected a whole number of instances from {expression.text}, found {value!r:.200}"
    raise CannotGoOn("expression", what)


def _true(run: Run, scope: Scope, condition: Expression, local: dict[str, Any], node: Node) -> bool:
    value = condition.evaluate(run.names(scope, local))
    if isinstance(value, str) and value.strip() in ("true", "false"):
        return value.strip() == "true"
    if value is True or value is False:
        return bool(value)
    raise CannotGoOn("expression", f"{node.name or node.id}: expected true or false from {condition.text}, found {value!r:.200}")


def _index(node: Node) -> str:
    return node.loop.index if isinstance(node.loop, MultiInstance) else "loopCounter"
