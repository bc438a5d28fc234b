"""Waiting for an event: the leaf that it hangs off a token, or the condition that is watched, and what happens when it occurs (13.5.2)."""

from __future__ import annotations

from typing import Any

from engine.bpmn.definition import ConditionConfig, MessageConfig, Node, SignalConfig, TimerConfig, event_of
from engine.core.conditions import occurs_at_once, watch
from engine.core.data import outward
from engine.core.effects import NewJob, NewSubscription
from engine.core.reading import as_text, retries_of_work, text_of
from engine.core.run import CannotGoOn, Run
from engine.core.snapshot import EventOccurred
from engine.core.state import Scope, Token
from engine.core.timers import SCHEDULE, Due, due, due_again, firing_of, missed_by

MAX_NAME = 255  # characters of a name or a key, which are part of an index key
OCCURRED = "occurred"  # in a token's memory: the parts of an event that needs all of them which have occurred
FIRED = {"timer": "timer_fired", "message": "message_correlated", "signal": "signal_caught", "condition": "condition_met"}


def arm(run: Run, token: Token, event: Node) -> None:
    """Let `token` wait for an event: a timer job, a subscription, a condition. Errors and escalations need nothing.

    A boundary event whose finite cycle is over already never occurs.
    """
    for part in token.scope.definition.parts.get(event.id, ()):
        arm(run, token, token.scope.definition.nodes[part])
    timer: TimerConfig | None = getattr(event.config, "timer", None)
    condition: ConditionConfig | None = getattr(event.config, "condition", None)
    if timer is not None:
        when = due(timer, run.value(timer.expression, token.scope), run.now)
        if when is not None:
            _timer(run, token, event, when)
        elif event.id == token.element_id:
            raise CannotGoOn("expression", f"{event.name or event.id}: expected a cycle with an occurrence to come, found it is over")
    elif condition is not None:
        watch(run, token, event, condition)
    else:
        _subscribe(run, token, event)


def arm_border(run: Run, token: Token, node: Node) -> bool:
    """Arm the boundary events of an activity that begins; false if one of them interrupts it before it does anything."""
    for event in node.attached:
        arm(run, token, token.scope.definition.nodes[event])
    return not occurs_at_once(run, token)


def arm_again(run: Run, token: Token, event: Node, trigger: EventOccurred) -> None:
    """An event that does not interrupt waits for its next occurrence: a cycle that is not over, any further message or signal.

    A condition goes on being watched: it occurs again when it has been false meanwhile. Of a multiple event the part that
    occurred waits again, or all of them if it needs all.
    """
    if event.id in token.scope.definition.parts:
        if event.config.parallel:
            _arm_all_again(run, token, event)
        else:
            arm_again(run, token, token.scope.definition.nodes[trigger.element_id], trigger)
        return
    timer: TimerConfig | None = getattr(event.config, "timer", None)
    if timer is not None:
        following = due_again(timer, trigger.occurrence, trigger.due_at, run.now)
        if following is not None:
            _timer(run, token, event, following)
        return
    _subscribe(run, token, event)


def _arm_all_again(run: Run, token: Token, event: Node) -> None:
    """All parts must occur once more, unless a date or a duration among them never does."""
    parts = [token.scope.definition.nodes[part] for part in token.scope.definition.parts[event.id]]
    if any(part.config.timer is not None and part.config.timer.type != "cycle" for part in parts):
        return
    token.remember({**(token.memory or {}), OCCURRED: []})
    for part in parts:
        if part.config.condition is None:
            arm(run, token, part)


def tell(run: Run, scope: Scope, event: Node, trigger: EventOccurred, *, again: bool) -> None:
    """Record that the event occurred. `again`: it waits for a further occurrence, so those that have passed are missed."""
    if trigger.what != "timer":
        run.record(scope, FIRED[trigger.what], event.id, trigger.detail)
        return
    timer: TimerConfig = scope.definition.nodes[trigger.element_id].config.timer
    passed = missed_by(timer, trigger.occurrence, trigger.due_at, run.now) if again else 0
    run.effects.firing = firing_of(trigger.occurrence, trigger.due_at, trigger.detail.get("item_id"), passed)
    run.record(scope, FIRED["timer"], event.id, {**trigger.detail, "missed": passed} if passed else trigger.detail)


def caught(run: Run, token: Token, event: Node, trigger: EventOccurred, *, interrupts: bool = False, again: bool = False) -> None:
    """Record that the event occurred, cancel the token's activity if it interrupts, and keep what came with it."""
    tell(run, token.scope, event, trigger, again=again)
    if interrupts:
        run.interrupt(token)
    run.assign(token.scope, outward(run, token.scope, event, trigger.variables), event.id)


def _timer(run: Run, token: Token, event: Node, when: Due) -> None:
    key = run.new_id()
    payload = when.payload if "cycle" not in when.payload else {SCHEDULE: str(key), **when.payload}
    timer: TimerConfig = event.config.timer
    retry, attempts = retries_of_work(run, token, timer.retry, timer.max_attempts)
    job = NewJob(key, "timer", "", token.id, event.id, when.at, when.in_seconds, max_attempts=attempts, retry=retry, payload=payload)
    token.wait_for(run.effects.jobs, job)
    data: dict[str, Any] = {"item_id": str(job.id), "kind": "timer"}
    if when.at is not None:
        data["due_at"] = when.at.isoformat()
    else:
        data["due_in_seconds"] = when.in_seconds
    run.record(token.scope, "job_created", event_of(token.scope.definition, event).id, data)


def _subscribe(run: Run, token: Token, event: Node) -> None:
    message: MessageConfig | None = getattr(event.config, "message", None)
    signal: SignalConfig | None = getattr(event.config, "signal", None)
    if message is not None:
        name, key = name_of(run, token, event, message, "a message"), key_of(run, token, event, message)
        subscription = NewSubscription(run.new_id(), token.id, event.id, name, key)
        told = {"message": name, "key": key}
    elif signal is not None:
        name = name_of(run, token, event, signal, "a signal")
        subscription = NewSubscription(run.new_id(), token.id, event.id, name, "", kind="signal")
        told = {"signal": name}
    else:
        return
    token.wait_for(run.effects.subscriptions, subscription)
    run.record(token.scope, "subscription_opened", event_of(token.scope.definition, event).id, {"item_id": str(subscription.id), **told})


def name_of(run: Run, token: Token, event: Node, config: MessageConfig | SignalConfig, what: str) -> str:
    """The name of a message or signal where a token is."""
    name = text_of(config.name, run.names(token.scope))
    if not name or len(name) > MAX_NAME:
        found = f"{len(name):,} characters" if name else "nothing"
        raise CannotGoOn("expression", f"{event.name or event.id}: expected {what} name, found {found} from {config.name.text}")
    return name


def key_of(run: Run, token: Token, event: Node, message: MessageConfig) -> str:
    """The correlation key of a message: what the model says, else the business key."""
    if message.key is None:
        return token.scope.instance.business_key or ""
    key = as_text(message.key.evaluate(run.names(token.scope)))
    if not key or len(key) > MAX_NAME:
        found = f"{len(key):,} characters" if key else "nothing"
        raise CannotGoOn("expression", f"{event.name or event.id}: expected a correlation key, found {found} from {message.key.text}")
    return key
