"""Intermediate catch events: timer, message, signal, condition, link (BPMN 2.0.2, 10.5.4)."""

from __future__ import annotations

from engine.bpmn.context import Context
from engine.bpmn.definition import CatchConfig
from engine.bpmn.elements import events, throwing
from engine.bpmn.names import Element
from engine.bpmn.support import Supported, register


def register_all() -> None:
    supported = Supported("intermediate_catch_event", "catch", parse)
    for event in ("timer", "message", "signal", "conditional", "link"):
        register("intermediateCatchEvent", supported, event=f"{event}EventDefinition")


def parse(element: Element, context: Context) -> CatchConfig:
    return CatchConfig(
        timer=events.timer(element, context),
        message=events.message(element, context),
        signal=throwing.signal(element, context),
        condition=events.condition(element, context),
        link=events.link(element, context),
    )
