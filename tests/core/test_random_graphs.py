"""Random graphs without structure: what rests must rest by the standard, effects must be right and the same every time.

The oracle below reads 13.4.3 anew: it walks forward over flows from each token, where the engine looks backward from the
gateway. `World` checks besides that each token waits for something, and that a narrow snapshot decides as the whole does.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.bpmn.definition import Node, ProcessDefinition
from tests.core.models import boundary, inc, model, par, service, user, xor
from tests.core.world import World

KINDS = {"task": user, "job": service, "xor": xor, "inc": inc, "fork": par, "join": par}


def graph(choose: Random) -> ProcessDefinition:
    """Up to nine nodes; each leads to one or two others or to an end. `fork` has one way in, `join` one way out."""
    nodes: dict[str, Node] = {}
    for number in range(choose.randint(3, 9)):
        kind = choose.choice(list(KINDS))
        nodes[f"{kind}{number}"] = KINDS[kind]()
    names = list(nodes)
    chains, conditions, defaults = [f"start -> {names[0]}"], {}, []
    for name in names:
        one_way = name.startswith(("task", "job", "join"))
        targets = choose.sample([*names, "end"], 1 if one_way else 2)
        chains += [f"{name} -> {target}" for target in targets]
        if name.startswith(("xor", "inc")):
            conditions[f"{name}>{targets[0]}"] = f"${{pick % {choose.randint(2, 3)} == 0}}"
            defaults.append(f"{name}>{targets[1]}")
        if one_way and choose.random() < 0.15:
            nodes[name] = replace(nodes[name], start_quantity=2) if name.startswith("task") else nodes[name]
        if name.startswith("job") and choose.random() < 0.15:
            nodes[name] = replace(nodes[name], completion_quantity=2)
        if name.startswith("task") and choose.random() < 0.4:
            event = f"late{name}"
            nodes[event] = boundary(name, after="R/PT1H", interrupting=choose.random() < 0.5)
            chains.append(f"{event} -> {choose.choice([*names, 'end'])}")
    return model(*chains, conditions=conditions, defaults=tuple(defaults), **nodes)


def enabled(run: World) -> list[str]:
    """The inclusive merges that 13.4.3 activates now, found by walking forward from every token."""
    found = []
    for gateway, node in run.definition.nodes.items():
        if node.kind != "inclusive_gateway" or len(node.incoming) < 2:
            continue
        full = {token.flow_id for token in run.tokens.values() if token.element_id == gateway and token.status == "joining"}
        others = [token.element_id for token in run.tokens.values() if token.element_id != gateway]
        arriving = [arrivals(run.definition, place, gateway) for place in others]
        if full and not any((flows - full) and not (flows & full) for flows in arriving):
            found.append(gateway)
    return found


def arrivals(definition: ProcessDefinition, place: str, gateway: str) -> set[str]:
    """The incoming flows of the gateway over which a token from `place` can come to it first."""
    flows: set[str] = set()
    seen, waiting = {place}, [place]
    while waiting:
        node = definition.nodes[waiting.pop()]
        steps = [(flow, definition.flows[flow].target) for flow in node.outgoing] + [(None, event) for event in node.attached]
        for flow, target in steps:
            if target == gateway:
                flows.add(str(flow))
            elif target not in seen:
                seen.add(target)
                waiting.append(target)
    return flows


def stuck_parallel_joins(run: World) -> list[str]:
    return [
        name
        for name, node in run.definition.nodes.items()
        if node.kind == "parallel_gateway" and len(node.incoming) > 1
        and {t.flow_id for t in run.tokens.values() if t.element_id == name and t.status == "joining"} == set(node.incoming)
    ]  # fmt: skip


def stuck_activities(run: World) -> list[str]:
    """Activities at which as many tokens wait as begin them together."""
    waiting = [token.element_id for token in run.tokens.values() if token.status == "joining"]
    nodes = run.definition.nodes.values()
    return [node.id for node in nodes if node.start_quantity > 1 and waiting.count(node.id) >= node.start_quantity]


def drive(definition: ProcessDefinition, choose: Random, steps: int) -> World:
    run = World(definition).start(pick=choose.randrange(6))
    check(run)
    for _ in range(steps):
        leaves = [leaf for leaf in run.leaves.values() if leaf not in run.incidents]
        if run.ended or not leaves or len(run.tokens) > 40:
            break
        run.serve(choose.choice(leaves), {"pick": choose.randrange(6)})
        check(run)
    return run


def check(run: World) -> None:
    assert enabled(run) == []
    assert stuck_parallel_joins(run) == []
    assert stuck_activities(run) == []
    if not run.ended:
        assert run.tokens, "an instance without tokens has ended"


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 1_000_000))
def test_no_join_rests_that_the_standard_would_activate(seed: int) -> None:
    drive(graph(Random(seed)), Random(seed + 1), 12)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 1_000_000))
def test_the_same_triggers_have_the_same_effects_and_a_cancelled_graph_leaves_nothing(seed: int) -> None:
    first, second = (drive(graph(Random(seed)), Random(seed + 1), 8) for _ in range(2))
    assert first.events == second.events
    assert first.tokens == second.tokens
    if first.ended is None:
        assert first.cancel().ended == "cancelled"
        assert not (first.tokens or first.scopes or first.leaves)
