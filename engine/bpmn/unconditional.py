"""Flows without a condition out of a gateway that chooses (10.6.2, 10.6.3): what Camunda 7 makes of them, and where it refuses, a variable.

Decision 0075.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from engine.bpmn import names, stand_ins
from engine.bpmn.context import Context, named
from engine.bpmn.definition import Flow, Node
from engine.bpmn.kinds import CHOOSING
from engine.bpmn.names import Element


def settle(nodes: dict[str, Node], flows: dict[str, Flow], sources: Mapping[str, Element], context: Context) -> None:
    """Exclusive: the one flow without a condition is the default, several are variables. Inclusive: each is taken always."""
    for key, node in list(nodes.items()):
        if node.kind not in CHOOSING or len(node.outgoing) < 2:
            continue
        open_ones = [flow for flow in node.outgoing if flow != node.default and not _has_condition(sources[flow])]
        if node.kind == "exclusive_gateway" and node.default is None and len(open_ones) == 1:
            why = "a condition, or to be the default flow, as which it is read"
            context.warn(sources[open_ones[0]], _what(sources[open_ones[0]], sources[key]), why)
            nodes[key] = replace(node, default=open_ones[0])
            continue
        for flow in open_ones:
            if node.kind == "inclusive_gateway":
                context.warn(
                    sources[flow], _what(sources[flow], sources[key]), "a condition, or to be the default flow; it is taken always"
                )
            else:
                condition = stand_ins.variable(sources[flow], _what(sources[flow], sources[key]), "", flow, context)
                flows[flow] = replace(flows[flow], condition=condition)


def _has_condition(flow: Element) -> bool:
    return next(names.bpmn(flow, "conditionExpression"), None) is not None


def _what(flow: Element, gateway: Element) -> str:
    return f"{named(flow)} has no condition and is one of several that leave {named(gateway)}"
