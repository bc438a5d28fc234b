"""Start events: none, timer, message, signal; in event subprocesses also condition, error, escalation, compensation (10.5.2)."""

from __future__ import annotations

from engine.bpmn import form_references, forms, names
from engine.bpmn.context import Context
from engine.bpmn.definition import StartConfig
from engine.bpmn.elements import events, throwing
from engine.bpmn.names import Element
from engine.bpmn.support import Supported, register


def register_all() -> None:
    supported = Supported("start_event", "start", parse)
    register("startEvent", supported)
    for event in ("timer", "message", "signal", "conditional", "error", "escalation", "compensate"):
        register("startEvent", supported, event=f"{event}EventDefinition")


def parse(element: Element, context: Context) -> StartConfig:
    """Where which event may stand is checked by the reader, which knows what is around it."""
    compensates = events.definition_of(element, "compensateEventDefinition") is not None
    if compensates:
        events.refuse_activity_ref(element, context)
    return StartConfig(
        timer=events.timer(element, context),
        message=events.message(element, context),
        signal=throwing.signal(element, context),
        condition=events.condition(element, context),
        error=events.error(element, context),
        escalation=events.escalation(element, context),
        compensate=compensates,
        interrupting=names.flag(element.get("isInterrupting"), default=True),
        fields=forms.fields(element, context),
        form=form_references.read(element, context),
        initiator=context.attribute(element, "initiator"),
    )
