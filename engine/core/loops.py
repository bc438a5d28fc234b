"""Activities that run several times: standard loops and multi-instance activities (10.3.8, 13.3.6, 13.3.7).

The activity's token owns a scope, its *body*, whose row counts: how many there are to be (`total`, None for a loop), how many
were begun and completed. Each *iteration* is a scope inside the body, with its own variables (the counter, the item) and one
token, which does what the activity does. So one completion concerns its iteration and the counters, whatever the number of
the others. Boundary events belong to the whole, not to an iteration. Results go where they would without the loop.

One step begins at most `BATCH` iterations; a job of kind `continue`, which hangs off the activity's token and goes with it,
goes on from there. The items of a collection are read again by each such step, and for each sequential iteration; how many
there are is decided when the activity begins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from engine.bpmn.definition import MultiInstance, Node, StandardLoop
from engine.core import loop_results
from engine.core.catching import arm_border
from engine.core.effects import InvariantBroken, NewJob
from engine.core.registry import LOOP, Behaviour, register
from engine.core.run import CannotGoOn, Run
from engine.core.snapshot import CannotContinue, Continued
from engine.core.state import Scope, Token
from engine.core.values import Variable, typed
from engine.expressions import Expression, ExpressionError

BATCH = 100
"""Iterations begun in one step, all loops of it together."""
LONG = 1_000
"""Sequence flows and iterations of one step after which the next iteration is left to another."""
MAX_INSTANCES = 100_000
"""Of one activity. More is an incident that says so."""
ATTEMPTS = 10
"""Of a job that goes on with it: only a worker that dies, and a database that fails, spend one."""


class Loop(Behaviour):
    """What a token of a looped activity does: it owns the body until the last iteration is done."""

    holds_scope = True

    def enter(self, run: Run, token: Token, node: Node) -> None:
        items, total = _planned(run, token.scope, node)
        if not arm_border(run, token, node):
            return
        if total == 0:
            run.assign(token.scope, loop_results.none(node), node.id)
            run.leave(token)
            return
        body = run.add_scope(token.scope, token, node.id)
        over = sorted(node.loop.collection.names) if isinstance(node.loop, MultiInstance) and node.loop.collection else []
        body.count(total=total, begun=0, completed=0, **({"over": over} if over else {}))
        loop_results.open_for(run, body, node)
        _begin(run, body, node, items)

    def continued(self, run: Run, token: Token, node: Node, trigger: Continued) -> None:
        body = token.inner
        if body is None:
            raise InvariantBroken(f"token {token.id} at {node.id}: expected the body of a loop, found none")
        try:
            items = _items_still(run, body, node)
        except (ExpressionError, CannotGoOn) as error:
            raise CannotContinue(str(error)) from error
        run.record(token.scope, "job_completed", node.id, {**trigger.detail, "kind": "continue"})
        _begin(run, body, node, items)

    def leave_iteration(self, run: Run, token: Token, node: Node) -> None:
        """One iteration is done. What follows is decided first: where that cannot be, a retry decides again."""
        iteration, body = token.scope, token.scope.parent
        assert body is not None  # an iteration lies in a body
        counters = {**body.counters, "completed": body.counters["completed"] + 1}
        try:
            enough, items = _decide(run, iteration, node, counters)
            loop_results.add(run, iteration, node)
            loop_results.throw(run, token, node, _attributes(node, counters))
        except (ExpressionError, CannotGoOn) as error:
            token.flow_id = None
            run.fail(token, error)
            return
        if not token.alive:  # what it threw has interrupted the activity
            return
        run.record(iteration, "element_left", node.id, {"loop": iteration.counters["loop"]})
        run.discard(token)
        iteration.alive = False
        body.count(**counters)
        if enough:
            results = loop_results.of(run, body, node)
            run.withdraw_all(body)
            _finish(run, body, node, results)
        elif _one_by_one(node):
            _begin(run, body, node, items)


register(LOOP, Loop())


def _begin(run: Run, body: Scope, node: Node, items: Sequence[Any] | None) -> None:
    """The next iteration may begin when nothing else moves; of parallel ones all that are left."""
    end = body.counters["begun"] + 1 if _one_by_one(node) else body.counters["total"]
    run.turns.append(lambda: _next(run, body, node, end, items))


def _next(run: Run, body: Scope, node: Node, end: int, items: Sequence[Any] | None) -> None:
    """One iteration begins, or the rest, those up to `end`, is left to a job."""
    number = body.counters.get("begun", end)  # it counts no more when it is compensating
    if not body.alive or number == end:
        run.turns.popleft()
    elif isinstance(node.loop, MultiInstance) and (run.begun >= BATCH or run.steps >= LONG):
        run.turns.popleft()
        _postpone(run, body, node)
    else:
        _open(run, body, node, number, items)


def _open(run: Run, body: Scope, node: Node, number: int, items: Sequence[Any] | None) -> None:
    body.count(**{**body.counters, "begun": number + 1})
    iteration = run.add_scope(body, None, node.id)
    iteration.count(loop=number)
    values = {_index(node): Variable("integer", number)}
    if items is not None and isinstance(node.loop, MultiInstance) and node.loop.element:
        values[node.loop.element] = typed(items[number])
    run.assign_here(iteration, values, node.id)
    run.begin_iteration(iteration, node)


def _postpone(run: Run, body: Scope, node: Node) -> None:
    """Leave the rest to a job: this step is long enough. It hangs off the activity's token, and goes with it."""
    owner = body.owner
    assert owner is not None  # the token of the activity
    job = NewJob(run.new_id(), "continue", "", owner.id, node.id, max_attempts=ATTEMPTS, lock_first=True)
    owner.wait_for(run.effects.jobs, job)


def _finish(run: Run, body: Scope, node: Node, results: Mapping[str, Variable]) -> None:
    owner = body.owner
    assert owner is not None  # the token of the activity
    body.alive = False
    owner.inner, owner.ended = None, body
    if not _one_by_one(node) and body.counters["begun"] < body.counters["total"]:
        run.shed(owner, all_leaves=True)  # the job that was to begin the others
    run.assign(owner.scope, results, node.id)
    run.leave(owner)


def _one_by_one(node: Node) -> bool:
    return not isinstance(node.loop, MultiInstance) or node.loop.sequential


# ---- how often


def _planned(run: Run, scope: Scope, node: Node) -> tuple[Sequence[Any] | None, int | None]:
    """The items, and how many iterations there will be; None and None for a loop, which finds out."""
    loop = node.loop
    if isinstance(loop, StandardLoop):
        before = {_index(node): 0}
        return None, 0 if loop.test_before and loop.condition is not None and not _true(run, scope, loop.condition, before, node) else None
    assert loop is not None  # only looped activities come here
    items, total = _items(run, scope, node, loop), 0
    if items is not None:
        _can_be_kept(items, node, loop)
        total = len(items)
    elif loop.cardinality is not None:
        total = _number(loop.cardinality, run.value(loop.cardinality, scope), node)
    if total > MAX_INSTANCES:
        raise CannotGoOn("expression", f"{node.name or node.id}: expected at most {MAX_INSTANCES:,} instances, found {total:,}")
    return items, total


def _decide(run: Run, iteration: Scope, node: Node, counters: dict[str, Any]) -> tuple[bool, Sequence[Any] | None]:
    """Whether the activity is done after this iteration, and else the items for the next one."""
    loop, completed = node.loop, counters["completed"]
    if isinstance(loop, StandardLoop):
        if loop.maximum is not None and completed >= loop.maximum:
            return True, None
        again = {_index(node): completed}
        return loop.condition is not None and not _true(run, iteration, loop.condition, again, node), None
    assert loop is not None  # only looped activities come here
    said = _attributes(node, counters)
    if loop.until is not None and _true(run, iteration, loop.until, said, node):
        return True, None
    if completed == counters["total"]:
        return True, None
    if not loop.sequential:
        return False, None
    body = iteration.parent
    assert body is not None  # an iteration lies in a body
    return False, _items_still(run, body, node)


def _attributes(node: Node, counters: Mapping[str, Any]) -> dict[str, Any]:
    """What expressions of the activity see of it: the names of the standard (10.3.8.2), and those of Camunda 7."""
    completed = counters["completed"]
    active = (counters["begun"] if _one_by_one(node) else counters["total"]) - completed
    return {
        **dict.fromkeys(("numberOfInstances", "nrOfInstances"), counters["total"]),
        **dict.fromkeys(("numberOfActiveInstances", "nrOfActiveInstances"), active),
        **dict.fromkeys(("numberOfCompletedInstances", "nrOfCompletedInstances"), completed),
        "numberOfTerminatedInstances": 0,
    }


def _items_still(run: Run, body: Scope, node: Node) -> Sequence[Any] | None:
    """The items as they are now, for those that are yet to begin."""
    assert body.parent is not None and isinstance(node.loop, MultiInstance)  # others have no items
    items, counters = _items(run, body.parent, node, node.loop), body.counters
    if items is not None and len(items) <= counters["begun"]:
        what = f"{node.name or node.id}: expected the collection to keep its {counters['total']:,} items, found {len(items):,}"
        raise CannotGoOn("expression", what)
    if items is not None:  # those that this step may begin
        _can_be_kept(items[counters["begun"] : counters["begun"] + BATCH], node, node.loop)
    return items


def _items(run: Run, scope: Scope, node: Node, loop: MultiInstance) -> Sequence[Any] | None:
    if loop.collection is None:
        return None
    value = run.value(loop.collection, scope)
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise CannotGoOn("expression", f"{node.name or node.id}: expected a list from {loop.collection.text}, found {value!r:.200}")
    return value


def _can_be_kept(items: Sequence[Any], node: Node, loop: MultiInstance) -> None:
    try:
        for item in items:
            typed(item)
    except TypeError as error:
        what = loop.collection.text if loop.collection is not None else "the collection"
        raise CannotGoOn("expression", f"{node.name or node.id}: an item of {what}: {error}") from error


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
