"""Subprocesses without a start event: everything in them begins that no flow leads to (10.5.2, 13.3.4)."""

from __future__ import annotations

from collections.abc import Mapping

from engine.bpmn.definition import BoundaryConfig, CatchConfig, Node

EMBEDDED = ("subprocess", "transaction")


def add(starts: dict[str | None, list[str]], nodes: Mapping[str, Node]) -> None:
    """Give each such subprocess what begins in it."""
    for scope, found in starts.items():
        if scope is not None and not found and nodes[scope].kind in EMBEDDED:
            found += [key for key, node in nodes.items() if node.parent == scope and _begins(node)]


def _begins(node: Node) -> bool:
    """Not what stands outside the flows: handlers, event subprocesses, boundary events, links."""
    apart = node.incoming or node.for_compensation or node.kind == "event_subprocess" or isinstance(node.config, BoundaryConfig)
    return not apart and not (isinstance(node.config, CatchConfig) and node.config.link is not None)
