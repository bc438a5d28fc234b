"""Waiting for timers, messages and conditions: the leaf that an event hangs off a token, and what happens when it occurs (13.5.2)."""

from __future__ import annotations

from typing import Any

from engine.bpmn.definition import ConditionConfig, MessageConfig, Node, TimerConfig
from engine.core.conditions import occurs_at_once, watch
from engine.core.effects import NewJob, NewSubscription
from engine.core.reading import as_text, text_of
from engine.core.run import CannotGoOn, Run
from engine.core.snapshot import EventOccurred
from engine.core.state import Token
from engine.core.timers import Due, due, due_again

FIRED = {"timer": "timer_fired", "message": "message_correlated", "condition": "condition_met"}


def arm(run: Run, token: Token, event: Node) -> None:
    """Let `token` wait for an event: a timer job, a message subscription, a condition. Errors and escalations need nothing.

    A boundary event whose finite cycle is over already never occurs.
    """
    timer: TimerConfig | None = getattr(event.config, "timer", None)
    message: MessageConfig | None = getattr(event.config, "message", None)
    condition: ConditionConfig | None = getattr(event.config, "condition", None)
    if timer is not None:
        when = due(timer, run.value(timer.expression, token.scope), run.now)
        if when is not None:
            _timer(run, token, event, when)
        elif event.id == token.element_id:
            raise CannotGoOn("expression", f"{event.name or event.id}: expected a cycle with an occurrence to come, found it is over")
    elif message is not None:
        _subscribe(run, token, event, message)
    elif condition is not None:
        watch(run, token, event, condition)


def arm_border(run: Run, token: Token, node: Node) -> bool:
    """Arm the boundary events of an activity that begins; false if one of them interrupts it before it does anything."""
    for event in node.attached:
        arm(run, token, token.scope.definition.nodes[event])
    return not occurs_at_once(run, token)


def arm_again(run: Run, token: Token, event: Node, trigger: EventOccurred) -> None:
    """An event that does not interrupt waits for its next occurrence: a cycle that is not over, or any further message.

    A condition goes on being watched: it occurs again when it has been false meanwhile.
    """
    timer: TimerConfig | None = getattr(event.config, "timer", None)
    message: MessageConfig | None = getattr(event.config, "message", None)
    if timer is not None:
        following = due_again(timer, trigger.occurrence, trigger.due_at, run.now)
        if following is not None:
            _timer(run, token, event, following)
    elif message is not None:
        _subscribe(run, token, event, message)


def caught(run: Run, token: Token, event: Node, trigger: EventOccurred, *, interrupts: bool = False) -> None:
    """Record that the event occurred, cancel the token's activity if it interrupts, and keep what came with it."""
    run.record(token.scope, FIRED[trigger.what], event.id, trigger.detail)
    if interrupts:
        run.interrupt(token)
    run.assign(token.scope, trigger.variables, event.id)


def _timer(run: Run, token: Token, event: Node, when: Due) -> None:
    job = NewJob(run.new_id(), "timer", "", token.id, event.id, due_at=when.at, due_in_seconds=when.in_seconds, payload=when.payload)
    token.wait_for(run.effects.jobs, job)
    data: dict[str, Any] = {"item_id": str(job.id), "kind": "timer"}
    if when.at is not None:
        data["due_at"] = when.at.isoformat()
    else:
        data["due_in_seconds"] = when.in_seconds
    run.record(token.scope, "job_created", event.id, data)


def _subscribe(run: Run, token: Token, event: Node, message: MessageConfig) -> None:
    names = run.names(token.scope)
    name = text_of(message.name, names)
    if not name:
        raise CannotGoOn("expression", f"{event.name or event.id}: expected a message name, found nothing from {message.name.text}")
    key = token.scope.instance.business_key or ""
    if message.key is not None:
        key = as_text(message.key.evaluate(names))
        if not key:
            raise CannotGoOn("expression", f"{event.name or event.id}: expected a correlation key, found nothing from {message.key.text}")
    subscription = NewSubscription(run.new_id(), token.id, event.id, name, key)
    token.wait_for(run.effects.subscriptions, subscription)
    told = {"item_id": str(subscription.id), "message": name, "key": key}
    run.record(token.scope, "subscription_opened", event.id, told)
