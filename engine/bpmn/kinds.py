"""The kind of a node: that of its row in the table, unless an attribute or what is bound to it says another."""

from __future__ import annotations

from engine.bpmn import names
from engine.bpmn.definition import ScriptConfig, ServiceTaskConfig
from engine.bpmn.names import Element
from engine.bpmn.support import Supported

GATEWAYS = frozenset({"exclusive_gateway", "inclusive_gateway", "parallel_gateway", "complex_gateway", "event_based_gateway"})
CHOOSING = frozenset({"exclusive_gateway", "inclusive_gateway"})  # between their flows, by conditions
BOUND = {"task": "service_task", "intermediate_throw_event": "send_task", "end_event": "send_task"}  # where work is bound to them


def kind_of(element: Element, supported: Supported, config: object) -> str:
    """`config`: what the element's parser made of it."""
    by_event = supported.by_event if names.flag(element.get("triggeredByEvent"), default=False) else None
    work = BOUND.get(supported.kind) if isinstance(config, ServiceTaskConfig | ScriptConfig) else None
    return by_event or work or supported.kind
