"""End events: none, terminate, message (BPMN 2.0.2, 10.5.3)."""

from __future__ import annotations

from engine.bpmn.context import Context, named
from engine.bpmn.definition import EndConfig, MessageConfig
from engine.bpmn.elements import events
from engine.bpmn.names import Element
from engine.bpmn.support import Supported, register


def register_all() -> None:
    supported = Supported("end_event", "end", parse)
    register("endEvent", supported)
    register("endEvent", supported, event="terminateEventDefinition")
    register("endEvent", supported, event="messageEventDefinition")


def parse(element: Element, context: Context) -> EndConfig:
    if events.definition_of(element, "terminateEventDefinition") is not None:
        return EndConfig(terminate=True)
    if events.definition_of(element, "messageEventDefinition") is None:
        return EndConfig()
    return EndConfig(message=_thrown(element, context))


def _thrown(element: Element, context: Context) -> MessageConfig | None:
    """A message without a destination would have nowhere to go: throwing to other cases is not supported yet."""
    message = events.message(element, context, throws=True)
    if message is not None and message.destination is None:
        why = "baton:destination on the message: the address it is delivered to"
        context.problem(element, f"the message of {named(element)} has no destination", why)
    return message
