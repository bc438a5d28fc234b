"""Gateways: exclusive, inclusive, parallel, event-based (BPMN 2.0.2, 10.6)."""

from __future__ import annotations

from engine.bpmn import names
from engine.bpmn.context import Context, named
from engine.bpmn.definition import EventGatewayConfig
from engine.bpmn.names import Element
from engine.bpmn.support import Supported, register


def register_all() -> None:
    register("exclusiveGateway", Supported("exclusive_gateway", "gateway", parse, conditional=True))
    register("inclusiveGateway", Supported("inclusive_gateway", "gateway", parse, conditional=True))
    register("parallelGateway", Supported("parallel_gateway", "gateway", parse))
    register("eventBasedGateway", Supported("event_based_gateway", "gateway", parse_event_based))


def parse(element: Element, context: Context) -> None:
    """A gateway is all structure: it has no configuration."""


def parse_event_based(element: Element, context: Context) -> EventGatewayConfig:
    if (kind := element.get("eventGatewayType", "Exclusive")) != "Exclusive":
        context.problem(element, f"{named(element)} has the type {kind}", "eventGatewayType Exclusive")
    return EventGatewayConfig(begins=names.flag(element.get("instantiate"), default=False))
