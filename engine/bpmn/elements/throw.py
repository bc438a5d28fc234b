"""Intermediate throw events: none, message, signal, link, escalation, compensation (BPMN 2.0.2, 10.5.4)."""

from __future__ import annotations

from engine.bpmn.context import Context
from engine.bpmn.definition import ScriptConfig, ServiceTaskConfig, ThrowConfig
from engine.bpmn.elements import events, throwing
from engine.bpmn.names import Element
from engine.bpmn.support import Supported, register


def register_all() -> None:
    supported = Supported("intermediate_throw_event", "throw", parse)
    register("intermediateThrowEvent", supported)
    for event in ("message", "signal", "link", "escalation", "compensate"):
        register("intermediateThrowEvent", supported, event=f"{event}EventDefinition")


def parse(element: Element, context: Context) -> ThrowConfig | ServiceTaskConfig | ScriptConfig:
    if (work := throwing.bound(element, context)) is not None:
        return work
    return ThrowConfig(
        message=throwing.thrown_message(element, context),
        signal=throwing.thrown_signal(element, context),
        link=events.link(element, context),
        escalation=events.thrown_escalation(element, context),
        compensate=events.thrown_compensation(element, context),
    )
