"""Definitions for pure tests, written as what follows what.

`model("start -> a -> end", a=user())` reads each chain into flows named `source>target`; a flow with a condition is written
in `conditions`, a default in `defaults`. Elements inside a subprocess are named in `inside`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from engine.bpmn.compensation import compensable
from engine.bpmn.definition import (
    AdHocConfig,
    BoundaryConfig,
    CallConfig,
    CatchConfig,
    CompensateConfig,
    ComplexGatewayConfig,
    ConditionConfig,
    DecisionConfig,
    EndConfig,
    ErrorConfig,
    EscalationConfig,
    EventGatewayConfig,
    Flow,
    MessageConfig,
    MultiInstance,
    Node,
    ProcessDefinition,
    ReceiveTaskConfig,
    ScriptConfig,
    Sent,
    ServiceTaskConfig,
    SignalConfig,
    StandardLoop,
    StartConfig,
    SubprocessConfig,
    ThrowConfig,
    TimerConfig,
    UserTaskConfig,
)
from engine.bpmn.multiple import parts_of
from engine.expressions import parse


def start(**config: Any) -> Node:
    return Node("", "start_event", config=StartConfig(**config))


def end() -> Node:
    return Node("", "end_event", config=EndConfig())


def terminate() -> Node:
    return Node("", "end_event", config=EndConfig(terminate=True))


def decides(decision: str = "d", **config: Any) -> Node:
    """A business rule task that calls a decision; its key may be an expression."""
    return Node("", "business_rule_task", config=DecisionConfig(parse(decision), **config))


def message_end(name: str, destination: str, body: str | None = None) -> Node:
    message = MessageConfig(parse(name), destination=parse(destination), body=parse(body) if body else None)
    return Node("", "end_event", config=EndConfig(message=message))


def call(process: str, **config: Any) -> Node:
    """A call activity. What is mapped is written as text: `${...}` is an expression, else it names a variable."""
    for mapped in ("inputs", "results"):
        config[mapped] = tuple((to, parse(value) if "{" in value else value) for to, value in config.get(mapped, {}).items())
    for mapped in ("locals", "outputs"):
        config[mapped] = tuple((to, parse(value)) for to, value in config.get(mapped, {}).items())
    for name in ("business_key", "version"):
        config[name] = parse(config[name]) if name in config else None
    return Node("", "call_activity", config=CallConfig(parse(process), **config))


def by_event() -> Node:
    """An event subprocess; its start event is inside, made by `on_event`."""
    return Node("", "event_subprocess", config=SubprocessConfig())


def on_event(
    *,
    after: str | None = None,
    on: str | None = None,
    signal: str | None = None,
    when: str | None = None,
    error: str | None = None,
    escalation: str | None = None,
    compensate: bool = False,
    interrupting: bool = True,
) -> Node:
    """`error="*"` and `escalation="*"` catch every code."""
    config = StartConfig(
        timer=timer(after) if after else None,
        message=message(on) if on else None,
        signal=SignalConfig(parse(signal)) if signal else None,
        condition=condition(when),
        error=ErrorConfig(None if error == "*" else error) if error else None,
        escalation=EscalationConfig(None if escalation == "*" else escalation, "code") if escalation else None,
        compensate=compensate,
        interrupting=interrupting,
    )
    return Node("", "start_event", config=config)


def escalation_end(code: str) -> Node:
    return Node("", "end_event", config=EndConfig(escalation=code))


def error_end(code: str) -> Node:
    return Node("", "end_event", config=EndConfig(error=code))


def throw(*, sends: str | None = None, link: str | None = None, escalation: str | None = None) -> Node:
    """`sends`: the name of a message, delivered to http://there."""
    message = MessageConfig(parse(sends), destination=parse("http://there")) if sends else None
    return Node("", "intermediate_throw_event", config=ThrowConfig(message=message, link=link, escalation=escalation))


def signals(name: str, *, end: bool = False, everything: bool = False, **sends: str) -> Node:
    """Throws a signal, on the way or at the end."""
    config = SignalConfig(parse(name), Sent(tuple((key, parse(text)) for key, text in sends.items()), everything))
    if end:
        return Node("", "end_event", config=EndConfig(signal=config))
    return Node("", "intermediate_throw_event", config=ThrowConfig(signal=config))


def tells(name: str, *, key: str | None = None, body: str | None = None, seconds: float = 3600, **sends: str) -> Node:
    """Throws a message to our own processes."""
    sent = Sent(tuple((variable, parse(text)) for variable, text in sends.items()))
    config = MessageConfig(parse(name), parse(key) if key else None, body=parse(body) if body else None, sends=sent, time_to_live=seconds)
    return Node("", "intermediate_throw_event", config=ThrowConfig(message=config))


def undo(activity: str | None = None, *, waits: bool = True, ends: bool = False) -> Node:
    """A compensation throw event, or end event."""
    config = CompensateConfig(activity, waits)
    return Node("", "end_event", config=EndConfig(compensate=config)) if ends else _thrower(config)


def _thrower(config: CompensateConfig) -> Node:
    return Node("", "intermediate_throw_event", config=ThrowConfig(compensate=config))


def undoes(node: Node) -> Node:
    """A handler: an activity that is for compensation."""
    return replace(node, for_compensation=True)


def cancel_end() -> Node:
    return Node("", "end_event", config=EndConfig(cancel=True))


def transaction() -> Node:
    return Node("", "transaction", config=SubprocessConfig())


def link(name: str) -> Node:
    return Node("", "intermediate_catch_event", config=CatchConfig(link=name))


def send(name: str, destination: str) -> Node:
    return Node("", "send_task", config=MessageConfig(parse(name), destination=parse(destination)))


def receive(name: str, key: str | None = None, *, instantiate: bool = False) -> Node:
    return Node("", "receive_task", config=ReceiveTaskConfig(message(name, key), instantiate=instantiate))


def script(text: str, variable: str, inputs: Mapping[str, str] = {}) -> Node:
    given = tuple((name, parse(value)) for name, value in inputs.items())
    return Node("", "script_task", config=ScriptConfig(parse(text), variable, inputs=given))


def user(label: str = "", /, **config: Any) -> Node:
    return Node("", "user_task", name=label, config=UserTaskConfig(**config))


def service(
    topic: str = "work", work: str = "handler", inputs: Mapping[str, str] = {}, outputs: Mapping[str, str] = {}, **config: Any
) -> Node:
    given = tuple((name, parse(text)) for name, text in inputs.items())
    kept = tuple((name, parse(text)) for name, text in outputs.items())
    return Node("", "service_task", config=ServiceTaskConfig(work, topic, inputs=given, outputs=kept, **config))


def xor(name: str = "") -> Node:
    return Node("", "exclusive_gateway", name=name)


def par() -> Node:
    return Node("", "parallel_gateway")


def looped(node: Node, condition: str | None = None, *, maximum: int | None = None, test_before: bool = False) -> Node:
    return replace(node, loop=StandardLoop(parse(condition) if condition else None, test_before, maximum))


def several(
    node: Node,
    *,
    times: str | None = None,
    of: str | None = None,
    element: str | None = "item",
    until: str | None = None,
    sequential: bool = False,
) -> Node:
    """The activity for each of several: `times` is a cardinality, `of` a collection."""
    each = MultiInstance(
        sequential,
        cardinality=parse(times) if times else None,
        collection=parse(of) if of else None,
        element=element if of else None,
        until=parse(until) if until else None,
    )
    return replace(node, loop=each)


def inc(name: str = "") -> Node:
    return Node("", "inclusive_gateway", name=name)


def complexly(activation: str | None = None) -> Node:
    """A complex gateway."""
    return Node("", "complex_gateway", config=ComplexGatewayConfig(parse(activation) if activation else None))


def ad_hoc(*, sequential: bool = False, until: str | None = None, cancel_remaining: bool = True, activities: str | None = None) -> Node:
    """An ad hoc subprocess; `activities` is an expression that names those to run."""
    condition, chosen = parse(until) if until else None, parse(activities) if activities else None
    return Node("", "ad_hoc_subprocess", config=AdHocConfig(sequential, condition, cancel_remaining, chosen))


def first_event(*, begins: bool = False, parallel: bool = False) -> Node:
    """`begins`: the first of its events starts an instance, which waits for the others if it is `parallel`."""
    return Node("", "event_based_gateway", config=EventGatewayConfig(begins, parallel))


def sub(inputs: Mapping[str, str] = {}) -> Node:
    return Node("", "subprocess", config=SubprocessConfig(tuple((name, parse(text)) for name, text in inputs.items())))


def timer(text: str) -> TimerConfig:
    kind = "cycle" if text.startswith("R") else "duration" if text.startswith("P") else "date"
    return TimerConfig(kind, parse(text))


def condition(text: str | None) -> ConditionConfig | None:
    return ConditionConfig(parse(text)) if text else None


def message(name: str, key: str | None = None) -> MessageConfig:
    return MessageConfig(parse(name), key=parse(key) if key else None)


def catch(
    *, after: str | None = None, on: str | None = None, key: str | None = None, signal: str | None = None, when: str | None = None
) -> Node:
    config = CatchConfig(
        timer=timer(after) if after else None,
        message=message(on, key) if on else None,
        signal=SignalConfig(parse(signal)) if signal else None,
        condition=condition(when),
    )
    return Node("", "intermediate_catch_event", config=config)


def anyof(event: Node, *others: Node, parallel: bool = False) -> Node:
    """One event that waits for what each of these waits for: any of them, or all."""
    parts = tuple(replace(each.config, parallel=parallel) for each in (event, *others))
    kept = {name: getattr(event.config, name) for name in ("attached_to", "interrupting") if hasattr(event.config, name)}
    return replace(event, config=type(event.config)(**kept, parts=parts, parallel=parallel))


def allof(event: Node, *others: Node) -> Node:
    """One event that throws what each of these throws."""
    return replace(event, config=type(event.config)(parts=tuple(each.config for each in (event, *others))))


def boundary(
    attached_to: str,
    *,
    after: str | None = None,
    on: str | None = None,
    signal: str | None = None,
    when: str | None = None,
    error: str | None = None,
    escalation: str | None = None,
    compensate: bool = False,
    cancel: bool = False,
    interrupting: bool = True,
    **config: Any,
) -> Node:
    """`error="*"` and `escalation="*"` catch every code; `config` goes to the ErrorConfig or EscalationConfig."""
    events = BoundaryConfig(
        attached_to,
        interrupting,
        timer=timer(after) if after else None,
        message=message(on) if on else None,
        signal=SignalConfig(parse(signal)) if signal else None,
        condition=condition(when),
        error=ErrorConfig(None if error == "*" else error, **config) if error else None,
        escalation=EscalationConfig(None if escalation == "*" else escalation, **config) if escalation else None,
        compensate=compensate,
        cancel=cancel,
    )
    return Node("", "boundary_event", config=events)


def model(
    *chains: str,
    inside: Mapping[str, str] = {},
    conditions: Mapping[str, str] = {},
    defaults: tuple[str, ...] = (),
    handlers: Mapping[str, str] = {},
    **elements: Node,
) -> ProcessDefinition:
    """A definition. `inside`: {subprocess: "element element …"}; elements not given are what their names begin with.

    `handlers`: {activity: handler}; the boundary event between them is `undo-activity`.
    """
    flows: dict[str, Flow] = {}
    nodes: dict[str, Node] = {name: replace(node, id=name) for name, node in elements.items()}
    nodes |= {f"undo-{activity}": replace(boundary(activity, compensate=True), id=f"undo-{activity}") for activity in handlers}
    for chain in chains:
        steps = [step.strip() for step in chain.split("->")]
        for source, target in itertools.pairwise(steps):
            name = f"{source}>{target}"
            name += "'" * sum(1 for other in flows if other.rstrip("'") == name)
            flows[name] = Flow(name, source, target, parse(conditions[name]) if name in conditions else None)
        for step in steps:
            nodes.setdefault(step, replace(_by_name(step), id=step))
    for handler in handlers.values():
        nodes.setdefault(handler, replace(_by_name(handler), id=handler))
        nodes[handler] = undoes(nodes[handler])
    parts = {name: found for name, node in nodes.items() if (found := parts_of(node))}
    parents = {element: owner for owner, members in inside.items() for element in members.split()}
    for activity, handler in handlers.items():
        if activity in parents:
            parents[f"undo-{activity}"] = parents[handler] = parents[activity]
    wired = {name: _wired(node, flows, nodes, parents.get(name), defaults) for name, node in nodes.items()}
    starts = _starts(nodes, parents, flows)
    return ProcessDefinition(
        key="model",
        name="Model",
        nodes={
            **wired,
            **{part.id: replace(part, parent=parents.get(name)) for name, each in parts.items() for part in each},
        },
        parts={name: tuple(part.id for part in each) for name, each in parts.items()},
        flows=flows,
        starts=starts,
        compensable=compensable(wired, starts, [(f"undo-{activity}", handler) for activity, handler in handlers.items()]),
        event_subprocesses=_event_subprocesses(nodes, parents),
        links=_links(nodes, parents),
    )


def _by_name(name: str) -> Node:
    for beginning, made in (("start", start), ("end", end), ("xor", xor), ("par", par), ("inc", inc), ("sub", sub)):
        if name.startswith(beginning):
            return made()
    return user(name)


def _wired(node: Node, flows: Mapping[str, Flow], nodes: Mapping[str, Node], parent: str | None, defaults: tuple[str, ...]) -> Node:
    outgoing = tuple(flow.id for flow in flows.values() if flow.source == node.id)
    return replace(
        node,
        parent=parent,
        incoming=tuple(flow.id for flow in flows.values() if flow.target == node.id),
        outgoing=outgoing,
        default=next((flow for flow in outgoing if flow in defaults), None),
        attached=tuple(name for name, each in nodes.items() if getattr(each.config, "attached_to", None) == node.id),
    )


def _event_subprocesses(nodes: Mapping[str, Node], parents: Mapping[str, str]) -> dict[str | None, tuple[str, ...]]:
    found: dict[str | None, tuple[str, ...]] = {}
    for name, node in nodes.items():
        if node.kind == "event_subprocess":
            found[parents.get(name)] = (*found.get(parents.get(name), ()), name)
    return found


def _links(nodes: Mapping[str, Node], parents: Mapping[str, str]) -> dict[str, str]:
    catches = {(parents.get(name), node.config.link): name for name, node in nodes.items() if isinstance(node.config, CatchConfig)}
    throws = {name: node.config.link for name, node in nodes.items() if isinstance(node.config, ThrowConfig) and node.config.link}
    return {name: catches[parents.get(name), link] for name, link in throws.items()}


def _starts(nodes: Mapping[str, Node], parents: Mapping[str, str], flows: Mapping[str, Flow]) -> dict[str | None, tuple[str, ...]]:
    starts: dict[str | None, tuple[str, ...]] = {}
    for name, node in nodes.items():
        if node.kind == "start_event" or getattr(node.config, "instantiate", False):
            starts[parents.get(name)] = (*starts.get(parents.get(name), ()), name)
        elif getattr(node.config, "begins", False):
            behind = (flow.target for flow in flows.values() if flow.source == name)
            starts[None] = (*starts.get(None, ()), *behind)
    return starts
