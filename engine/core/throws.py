"""Signals, and messages without a destination: what is thrown to our own processes (10.5.1, 13.5.3).

A signal reaches, at once and in this very step, every event of the instances at hand (`_at_hand`) that waits for its name, of
more than a few hundred at least those that interrupt: a token that it interrupts goes no further. Everybody else has it from
the throw (`NewThrow`), which the write turns into a job: other cases, the called of this one, and start events. A message has
one receiver, so it goes by the job alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.bpmn.definition import MessageConfig, Node, ProcessDefinition, Sent, SignalConfig, event_of
from engine.core.catching import key_of, name_of
from engine.core.effects import NewSubscription, NewThrow
from engine.core.reading import plain
from engine.core.registry import behaviour_of
from engine.core.run import CannotGoOn, Run
from engine.core.snapshot import EventOccurred, NeedsWholeInstance
from engine.core.state import Instance, Token
from engine.core.values import Variable, accept, typed


def throw_signals(run: Run, token: Token, node: Node, configs: Sequence[SignalConfig]) -> None:
    """Throw the signals of an event. The token that threw them is alive afterwards unless an event that interrupts has caught one."""
    if not configs:
        return
    # All that may fail comes first: whom a signal has reached, it has reached.
    signals = [(name_of(run, token, node, config, "a signal"), _sent(run, token, node, config.sends)) for config in configs]
    if not _sees_who_waits(run):
        raise NeedsWholeInstance(f"element {node.id}: throws a signal, and who waits for it was not loaded")
    # Those that wait now: what opens while they go on waits for the next one.
    reached: list[_Reached] = [(waits, name, variables) for name, variables in signals for waits in _who_waits(run, name)]
    at_once = _at_once(reached)
    served = sorted(str(instance.id) for instance in _at_hand(run)) if len(at_once) == len(reached) else []
    for name, variables in signals:
        _throw(run, token, node, "signal", variables, {"name": name, "served": served}, {"signal": name})
    for (waiting, event_id, subscription), name, sent in at_once:
        if _still_waits(run, waiting, subscription):
            _reach(run, waiting, event_id, subscription, name, node, sent)


def throw_message(run: Run, token: Token, node: Node, config: MessageConfig) -> None:
    """Throw a message to whoever waits for it: one instance, or a start event."""
    name, key = name_of(run, token, node, config, "a message"), key_of(run, token, node, config)
    variables = _sent(run, token, node, config.sends)
    if config.body is not None:
        variables |= _body(run, token, node, config)
    payload = {"name": name, "key": key, "seconds": config.time_to_live}
    _throw(run, token, node, "message", variables, payload, {"message": name, "key": key})


def _throw(
    run: Run, token: Token, node: Node, topic: str, variables: Mapping[str, Variable], payload: dict[str, Any], told: dict[str, Any]
) -> None:
    carried = {name: {"type": variable.type, "value": variable.value} for name, variable in variables.items()}
    payload |= {"variables": carried, "instance_id": str(token.scope.instance.id), "element_id": node.id}
    throw = NewThrow(run.new_id(), topic, node.id, payload)
    run.effects.throws.append(throw)
    run.record(token.scope, f"{topic}_thrown", node.id, {"item_id": str(throw.id), **told})


# ---- what goes along


def _sent(run: Run, token: Token, node: Node, sends: Sent | None) -> dict[str, Variable]:
    if sends is None:
        return {}
    found = token.scope.visible() if sends.everything else {}
    names = run.names(token.scope)
    for name, expression in sends.variables:
        try:
            found[name] = typed(expression.evaluate(names))
        except TypeError as error:
            raise CannotGoOn("expression", f"{node.name or node.id}: {name}: {error}") from error
    return _accepted(node, found)


def _body(run: Run, token: Token, node: Node, config: MessageConfig) -> dict[str, Variable]:
    assert config.body is not None
    body = plain(config.body.evaluate(run.names(token.scope)), "the message's body")
    if not isinstance(body, dict):
        text = f"expected an object as the body of a message for processes, whose entries become variables, found {body!r}"
        raise CannotGoOn("expression", f"{node.name or node.id}: {text}")
    return _accepted(node, body)


def _accepted(node: Node, values: Mapping[str, Any]) -> dict[str, Variable]:
    """Names and sizes are limited as for what comes from outside: it becomes variables elsewhere."""
    accepted, wrong = accept(values)
    if wrong:
        told = "; ".join(f"{name or 'variables'}: {text}" for name, text in wrong)
        raise CannotGoOn("expression", f"{node.name or node.id} sends what cannot be sent: {told}")
    return accepted


# ---- who waits here

AT_ONCE = 200  # subscriptions of the case that one step serves
CATCHING = ("boundary_event", "intermediate_catch_event")
_Waiting = tuple[Token, str, Any]  # token, event, subscription: the id of a stored one, or the new one


def _sees_who_waits(run: Run) -> bool:
    """A new case has only what this step opened; a narrow snapshot will do where the model waits for no signal."""
    if run.snapshot.whole or not run.snapshot.scopes:
        return True
    return not any(_waits_for_signals(scope.definition) for scope in run.scopes)


def _at_hand(run: Run) -> set[Instance]:
    """The instance that moves, those that called it, and those that have begun in this step: what any snapshot shows."""
    found = {instance for instance in run.instances.values() if not instance.stored}
    instance: Instance | None = run.instance
    while instance is not None:
        found.add(instance)
        instance = instance.caller.scope.instance if instance.caller is not None else None
    return found


def _waits_for_signals(definition: ProcessDefinition) -> bool:
    """Whether a running instance may wait for a signal. Start events of the process are nobody's who runs."""
    known = definition.derived.get("waits_for_signals")
    if known is None:
        catching = [event_of(definition, node) for node in definition.nodes.values() if getattr(node.config, "signal", None) is not None]
        known = any(node.kind in CATCHING or (node.kind == "start_event" and node.parent is not None) for node in catching)
        definition.derived["waits_for_signals"] = known
    return bool(known)


def _who_waits(run: Run, name: str) -> list[_Waiting]:
    """Who waits for a signal, the stored subscriptions first, each in the order in which they were opened."""
    found: list[_Waiting] = []
    at_hand = _at_hand(run)
    for signal in run.snapshot.signals:
        token = run.tokens.get(signal.token_id)
        if signal.name == name and token is not None and token.scope.instance in at_hand:
            found.append((token, signal.element_id, signal.id))
    for token in run.tokens.values():
        for _, row in token.leaves if token.scope.instance in at_hand else ():
            if isinstance(row, NewSubscription) and row.kind == "signal" and row.message_name == name:
                found.append((token, row.element_id, row))
    return found


_Reached = tuple[_Waiting, str, Mapping[str, Variable]]


def _at_once(reached: list[_Reached]) -> list[_Reached]:
    """Those whom this step serves: all, or of very many what opened in it, what interrupts, and as many others as it may.

    The others have it by their jobs, as other cases have: their subscriptions stay, and those that were served are gone.
    """
    if len(reached) <= AT_ONCE:
        return reached
    first = [each for each in reached if isinstance(each[0][2], NewSubscription) or _interrupts(*each[0][:2])]
    taken = set(map(id, first))
    others = [each for each in reached if id(each) not in taken]
    return first + others[: max(0, AT_ONCE - len(first))]


def _interrupts(token: Token, event_id: str) -> bool:
    definition = token.scope.definition
    return bool(getattr(event_of(definition, definition.nodes[event_id]).config, "interrupting", False))


def _still_waits(run: Run, token: Token, subscription: Any) -> bool:
    """Whether what the signal did to others has left this one where it was."""
    if not token.alive:
        return False
    if isinstance(subscription, NewSubscription):
        return any(row is subscription for _, row in token.leaves)
    return token.settled and token.stored and subscription not in run.received


def _reach(run: Run, token: Token, event_id: str, subscription: Any, name: str, thrower: Node, variables: Mapping[str, Variable]) -> None:
    if isinstance(subscription, NewSubscription):
        key = subscription.id
        token.leaves[:] = [leaf for leaf in token.leaves if leaf[1] is not subscription]
    else:
        key = subscription
        run.received[key] = token.id
    event = token.scope.definition.nodes[event_id]
    detail = {"item_id": str(key), "signal": name, "thrown_by": thrower.id}
    behaviour_of(event).occurred(run, token, event, EventOccurred(token.id, event_id, "signal", variables, detail))
