"""Start events: none, timer, message (BPMN 2.0.2, 10.5.2)."""

from __future__ import annotations

from engine.bpmn import forms
from engine.bpmn.context import Context
from engine.bpmn.definition import StartConfig
from engine.bpmn.elements import events
from engine.bpmn.names import Element
from engine.bpmn.support import Supported, register


def register_all() -> None:
    supported = Supported("start_event", "start", parse)
    register("startEvent", supported)
    register("startEvent", supported, event="timerEventDefinition")
    register("startEvent", supported, event="messageEventDefinition")


def parse(element: Element, context: Context) -> StartConfig:
    return StartConfig(
        timer=events.timer(element, context),
        message=events.message(element, context),
        fields=forms.fields(element, context),
        initiator=context.attribute(element, "initiator"),
    )
