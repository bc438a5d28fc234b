"""Intermediate catch events: timer, message, link (BPMN 2.0.2, 10.5.4)."""

from __future__ import annotations

from engine.bpmn.context import Context
from engine.bpmn.definition import CatchConfig
from engine.bpmn.elements import events
from engine.bpmn.names import Element
from engine.bpmn.support import Supported, register


def register_all() -> None:
    supported = Supported("intermediate_catch_event", "catch", parse)
    for event in ("timerEventDefinition", "messageEventDefinition", "linkEventDefinition"):
        register("intermediateCatchEvent", supported, event=event)


def parse(element: Element, context: Context) -> CatchConfig:
    return CatchConfig(timer=events.timer(element, context), message=events.message(element, context), link=events.link(element, context))
