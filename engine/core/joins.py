"""The general synchronizing merge: when an inclusive gateway with several incoming flows is activated (13.4.3); and complex ones.

It is when at least one incoming flow has a token, and no token elsewhere in the scope can reach an incoming flow that has
none; a token that can reach one that has a token already does not count. Paths do not pass through the gateway itself;
they follow flows, links, and boundary events out of their activities. One token of each flow is consumed, the earliest.

Looked at when nothing moves any more, in every scope in which something moved or went: a token that vanished upstream may
be what a gateway waited for.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from engine.bpmn.definition import Node, ProcessDefinition
from engine.core import complex_joins
from engine.core.run import Run
from engine.core.snapshot import NeedsWholeInstance
from engine.core.state import Scope, Token

KIND = "inclusive_gateway"


def activate_one(run: Run) -> bool:
    """Activate the first gateway that has all it waits for; false if there is none. Its tokens are on the agenda then."""
    for scope in run.scopes:
        if not scope.alive:
            continue
        waiting = _waiting(scope)
        if not waiting or not _touched(run, scope):
            continue
        for gateway, joined in waiting.items():
            node = scope.definition.nodes[gateway]
            if (_ask if node.kind == KIND else _ask_complex)(run, scope, node, joined):
                return True
    return False


def _waiting(scope: Scope) -> dict[str, dict[str | None, Token]]:
    """The gateways of a scope at which tokens wait, or that wait for reset: the earliest token of each flow."""
    found: dict[str, dict[str | None, Token]] = {}
    for token in scope.tokens:
        if token.status == "joining" and token.node.kind in (KIND, complex_joins.KIND):
            found.setdefault(token.element_id, {}).setdefault(token.flow_id, token)
        elif token.status == "listening" and token.node.kind == complex_joins.KIND:
            found.setdefault(token.element_id, {})
    return found


def _touched(run: Run, scope: Scope) -> bool:
    return any(not token.settled for token in scope.tokens) or any(each is scope for _, each in run.gone)


def _ask(run: Run, scope: Scope, node: Node, joined: Mapping[str | None, Token]) -> bool:
    if not _is_complete(scope, node, joined):
        return False
    _activate(run, node, joined)
    return True


def _ask_complex(run: Run, scope: Scope, node: Node, joined: Mapping[str | None, Token]) -> bool:
    memory = complex_joins.memory_of(scope, node)
    if memory is None:
        return complex_joins.start_at_rest(run, scope, node)
    taken = (memory.memory or {}).get("taken", ())
    return _is_complete(scope, node, {*joined, *taken}) and complex_joins.reset(run, scope, node, memory, joined)


def _is_complete(scope: Scope, node: Node, reached: Container[str | None]) -> bool:
    """Whether nothing can come over a flow that is not `reached` without being able to come over one that is."""
    sources = _sources(scope.definition, node)
    full = [places for flow, places in sources.items() if flow in reached]
    empty = [places for flow, places in sources.items() if flow not in reached]
    if not empty:
        return True
    for token in scope.tokens:
        place = token.element_id
        if token.status == "listening":
            continue  # it goes nowhere by a flow
        if any(place in places for places in empty) and not any(place in places for places in full):
            return False
    if scope.unseen:  # a token that was not loaded may be on its way
        raise NeedsWholeInstance(f"gateway {node.name or node.id}: whether tokens can still come depends on all of its scope")
    return True


def _activate(run: Run, node: Node, joined: Mapping[str | None, Token]) -> None:
    """One token goes on for all. If no flow can be chosen it rests at the gateway, and a retry only chooses again."""
    goes_on = next((token for token in joined.values() if not token.settled), next(iter(joined.values())))
    run.record(goes_on.scope, "element_entered", node.id)
    run.record(goes_on.scope, "join_passed", node.id, {"flows": [flow for flow in node.incoming if flow in joined]})
    run.absorb(token for token in joined.values() if token is not goes_on)
    run.leave(goes_on)


# ---- what the drawing says, worked out once for each definition


def _sources(definition: ProcessDefinition, gateway: Node) -> Mapping[str, frozenset[str]]:
    """For each incoming flow of the gateway: the elements from which a token can come over it, not by way of the gateway."""
    key = f"sources of {gateway.id}"
    found: Mapping[str, frozenset[str]] | None = definition.derived.get(key)
    if found is None:
        before = _before(definition)
        found = {flow: _spread(definition.flows[flow].source, gateway.id, before) for flow in gateway.incoming}
        definition.derived[key] = found
    return found


def _before(definition: ProcessDefinition) -> Mapping[str, tuple[str, ...]]:
    """For each element those from which a token can come to it in one step."""
    found: Mapping[str, tuple[str, ...]] | None = definition.derived.get("before")
    if found is None:
        steps: dict[str, list[str]] = {
            key: [definition.flows[flow].source for flow in node.incoming] for key, node in definition.nodes.items()
        }
        for key, node in definition.nodes.items():
            for event in node.attached:
                steps[event].append(key)
        for throw, catch in definition.links.items():
            steps[catch].append(throw)
        found = {key: tuple(dict.fromkeys(each)) for key, each in steps.items()}
        definition.derived["before"] = found
    return found


def _spread(start: str, barrier: str, before: Mapping[str, Iterable[str]]) -> frozenset[str]:
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        key = waiting.pop()
        if key not in reached and key != barrier:
            reached.add(key)
            waiting.extend(before[key])
    return frozenset(reached)
