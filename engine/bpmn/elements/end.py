"""End events: none, terminate, message, signal, error, escalation, compensation, cancel (BPMN 2.0.2, 10.5.3)."""

from __future__ import annotations

from engine.bpmn.context import Context
from engine.bpmn.definition import EndConfig, ScriptConfig, ServiceTaskConfig
from engine.bpmn.elements import events, throwing
from engine.bpmn.names import Element
from engine.bpmn.support import Supported, register


def register_all() -> None:
    supported = Supported("end_event", "end", parse)
    register("endEvent", supported)
    for event in ("terminate", "message", "signal", "error", "escalation", "compensate", "cancel"):
        register("endEvent", supported, event=f"{event}EventDefinition")


def parse(element: Element, context: Context) -> EndConfig | ServiceTaskConfig | ScriptConfig:
    if (work := throwing.bound(element, context)) is not None:
        return work
    return EndConfig(
        terminate=events.definition_of(element, "terminateEventDefinition") is not None,
        message=throwing.thrown_message(element, context),
        signal=throwing.thrown_signal(element, context),
        error=events.thrown_error(element, context),
        escalation=events.thrown_escalation(element, context),
        compensate=events.thrown_compensation(element, context),
        cancel=events.definition_of(element, "cancelEventDefinition") is not None,
    )
