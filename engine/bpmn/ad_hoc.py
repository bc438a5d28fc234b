"""Rules of structure for ad hoc subprocesses (10.3.5): activities and what leads from one to another, no starts and no ends."""

from __future__ import annotations

from engine.bpmn.definition import AdHocConfig, Node
from engine.bpmn.structure import Structure

KIND = "ad_hoc_subprocess"
FORKS = ("parallel_gateway", "inclusive_gateway", "complex_gateway")


def check(structure: Structure) -> None:
    """What lies in each ad hoc subprocess, and whether anything does."""
    for key, node in structure.nodes.items():
        if node.kind != KIND:
            continue
        inside = [each for each in structure.nodes.values() if each.parent == key]
        if not any(structure.table[each.id].activity for each in inside):
            structure.problem(key, "has no activity", "at least one: it is what people may do")
        for each in inside:
            _check_inner(structure, each)
            if isinstance(node.config, AdHocConfig) and node.config.sequential:
                _check_sequential(structure, each)


def begins(structure: Structure, node: Node) -> bool:
    """Whether it begins without a flow, in an ad hoc subprocess."""
    return node.parent is not None and structure.nodes[node.parent].kind == KIND and structure.table[node.id].activity and not node.incoming


def _check_inner(structure: Structure, node: Node) -> None:
    role = structure.table[node.id].role
    if role in ("start", "end"):
        structure.problem(
            node.id, f"lies in the ad hoc subprocess {node.parent!r}", "no start and end events: its activities begin by themselves"
        )
    elif role not in ("activity", "boundary") and not node.incoming and node.id not in structure.links.values():
        structure.problem(
            node.id,
            f"lies in the ad hoc subprocess {node.parent!r}, and no flow leads to it",
            "a flow to it: only activities begin by themselves",
        )


def _check_sequential(structure: Structure, node: Node) -> None:
    """13.3.5: one activity at a time. Event-based and exclusive gateways let one token go on."""
    choices = structure.table[node.id].role == "gateway" and node.kind not in FORKS
    if len(node.outgoing) > 1 and not choices:
        what = f"lies in the sequential ad hoc subprocess {node.parent!r} and has {len(node.outgoing)} outgoing flows"
        structure.problem(node.id, what, "at most one, or an exclusive gateway behind it: one activity runs at a time")
