"""Parallel event-based gateways that start instances (10.6.6, 13.4.4): all messages of a key belong to one instance.

The first message starts it, and it waits for the others by the same key. Two that come at once, each for an event of its own,
must not start an instance each: who starts one takes a lock of the gateway and the key, and then looks for somebody who
waits for its message (locks.GATHERED). If there is one, nothing is started, and the publisher looks again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.bpmn.definition import EventGatewayConfig, ProcessDefinition
from engine.core.reading import as_text


def gathering(definition: ProcessDefinition, element_id: str, business_key: str | None) -> Mapping[str, Any]:
    """The parameters of the guard, for what starts behind such a gateway; none for anything else."""
    node = definition.nodes[element_id]
    gateways = [definition.nodes[definition.flows[flow].source] for flow in node.incoming]
    found = next((each for each in gateways if isinstance(each.config, EventGatewayConfig) and each.config.parallel), None)
    if found is None:
        return {}
    name = as_text(node.config.message.name.evaluate({}))  # it sees no variables, as the deployment knows
    return {"gateway": f"{definition.key} {found.id}", "message_name": name, "message_key": business_key or ""}
