"""Gateways: exclusive, inclusive, parallel, complex, event-based (BPMN 2.0.2, 10.6)."""

from __future__ import annotations

from engine.bpmn import names
from engine.bpmn.conditions import condition
from engine.bpmn.context import Context, named
from engine.bpmn.definition import ComplexGatewayConfig, EventGatewayConfig
from engine.bpmn.names import Element
from engine.bpmn.support import Supported, register


def register_all() -> None:
    register("exclusiveGateway", Supported("exclusive_gateway", "gateway", parse, conditional=True))
    register("inclusiveGateway", Supported("inclusive_gateway", "gateway", parse, conditional=True))
    register("parallelGateway", Supported("parallel_gateway", "gateway", parse))
    activation = frozenset({"activationCondition"})
    register("complexGateway", Supported("complex_gateway", "gateway", parse_complex, conditional=True, children=activation))
    register("eventBasedGateway", Supported("event_based_gateway", "gateway", parse_event_based))


def parse(element: Element, context: Context) -> None:
    """A gateway is all structure: it has no configuration."""


def parse_complex(element: Element, context: Context) -> ComplexGatewayConfig:
    """10.6.5. `activationCount` in the condition is how many tokens wait at the gateway."""
    given = next(names.bpmn(element, "activationCondition"), None)
    return ComplexGatewayConfig(condition(element, given, context) if given is not None else None)


def parse_event_based(element: Element, context: Context) -> EventGatewayConfig:
    """10.6.6: the type Parallel is for gateways that start instances."""
    begins, kind = names.flag(element.get("instantiate"), default=False), element.get("eventGatewayType", "Exclusive")
    if kind not in ("Exclusive", "Parallel"):
        context.problem(element, f"{named(element)} has the type {kind}", "eventGatewayType Exclusive or Parallel")
    elif kind == "Parallel" and not begins:
        context.problem(element, f"{named(element)} has the type Parallel and starts no instances", "Exclusive, or instantiate true")
    return EventGatewayConfig(begins=begins, parallel=kind == "Parallel")
