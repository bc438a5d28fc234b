"""Complex gateways: when one is activated, what it remembers, and when it is reset (10.6.5, 13.4.5).

It waits for start: until its activationCondition is true, which is asked when a token arrives and when something in its scope
has moved. Then it takes one token from each incoming flow that has one, gives tokens out, and waits for reset: until no token
can still come over the flows that it has not taken one from (as an inclusive gateway decides it). Then it takes those that
came, and gives tokens out by its conditions alone; a flow without condition is for the start, and a reset that takes no token
gives none, else every split would happen twice. Where all flows had a token, or none can come, it is reset at once.

What it has taken is remembered by a token of its own that is `listening`, and keeps no scope open: `memory` {"taken": flows}.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from engine.bpmn.definition import ComplexGatewayConfig, Node
from engine.core.reading import truth_of
from engine.core.run import CannotGoOn, Run
from engine.core.snapshot import NeedsWholeInstance
from engine.core.state import Scope, Token
from engine.expressions import ExpressionError

KIND = "complex_gateway"
Joined = Mapping[str | None, Token]


def memory_of(scope: Scope, node: Node) -> Token | None:
    """The token that remembers what the gateway has taken: it waits for reset. None: it waits for start."""
    return next((token for token in scope.tokens if token.status == "listening" and token.element_id == node.id), None)


def start(run: Run, scope: Scope, node: Node) -> bool:
    """Activate it if its condition is true. Raises what its expressions raise, and then nothing has changed."""
    waiting = [token for token in scope.tokens if token.status == "joining" and token.element_id == node.id]
    joined: dict[str | None, Token] = {}
    for token in waiting:
        joined.setdefault(token.flow_id, token)
    if not waiting or not _is_activated(run, scope, node, waiting):
        return False
    flows = _chosen(run, scope, node, starts=True)
    goes_on = next((token for token in joined.values() if not token.settled), waiting[0])
    _passed(run, scope, node, joined, {})
    run.absorb(token for token in joined.values() if token is not goes_on)
    if len(joined) < len(node.incoming):
        memory = run.spawn(scope, node.id)
        memory.status = "listening"
        memory.remember({"taken": [flow for flow in node.incoming if flow in joined]})
    run.take(goes_on, flows)
    return True


def start_at_rest(run: Run, scope: Scope, node: Node) -> bool:
    """The same when nothing moves any more; what its expressions raise is an incident of a token that waits."""
    try:
        return start(run, scope, node)
    except (ExpressionError, CannotGoOn) as error:
        run.fail(_first(scope, node), error)
        return True


def reset(run: Run, scope: Scope, node: Node, memory: Token, joined: Joined) -> bool:
    """Give out what came late, and wait for start again. The caller knows that nothing can still come."""
    taken = (memory.memory or {}).get("taken", ())
    late = {flow: token for flow, token in joined.items() if flow not in taken}
    if scope.unseen:
        raise NeedsWholeInstance(f"gateway {node.name or node.id}: whether one of its tokens has failed depends on all of its scope")
    if any(token.status == "failed" and token.element_id == node.id for token in scope.tokens):
        return False  # it comes back when it is retried
    try:
        flows = _chosen(run, scope, node, starts=False) if late else ()
    except (ExpressionError, CannotGoOn) as error:
        run.fail(next(iter(late.values())), error)
        return True
    run.discard(memory)
    if late:
        first, *others = late.values()
        _passed(run, scope, node, late, {"reset": True})
        run.absorb(others)
        run.take(first, flows)
    return True


def _is_activated(run: Run, scope: Scope, node: Node, waiting: Sequence[Token]) -> bool:
    activation = cast(ComplexGatewayConfig, node.config).activation
    if activation is None:
        return True
    counts = dict.fromkeys(node.incoming, 0)
    for token in waiting:
        counts[str(token.flow_id)] = counts.get(str(token.flow_id), 0) + 1
    local = {"activationCount": len(waiting), "activationCounts": counts, "waitingForStart": True}
    return truth_of(activation, run.names(scope, local), f"{node.name or node.id}: the activationCondition")


def _chosen(run: Run, scope: Scope, node: Node, *, starts: bool) -> tuple[str, ...]:
    """The flows that get a token, as behind an inclusive gateway; conditions may ask for `waitingForStart`."""
    flows = scope.definition.flows
    names = run.names(scope, {"waitingForStart": starts})
    held, free = [], []
    for key in node.outgoing:
        condition = flows[key].condition
        if condition is not None and truth_of(condition, names, f"{node.name or node.id}: the condition of {key}"):
            held.append(key)
        elif condition is None and key != node.default and starts:
            free.append(key)
    if not held and node.default is not None:
        return (*free, node.default)
    if starts and not held and not free:
        raise CannotGoOn(
            "no_flow", f"gateway {node.name or node.id}: expected a flow whose condition holds or a default flow, found neither"
        )
    return tuple(key for key in node.outgoing if key in held or key in free)


def _passed(run: Run, scope: Scope, node: Node, joined: Joined, how: Mapping[str, Any]) -> None:
    run.record(scope, "element_entered", node.id)
    run.record(scope, "join_passed", node.id, {"flows": [flow for flow in node.incoming if flow in joined], **how})
    run.record(scope, "element_left", node.id)


def _first(scope: Scope, node: Node) -> Token:
    return next(token for token in scope.tokens if token.status == "joining" and token.element_id == node.id)
