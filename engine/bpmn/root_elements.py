"""What a file declares beside its processes, by id, so that parsers can look up what elements refer to."""

from __future__ import annotations

from engine.bpmn import data, lanes, message_flows, names, operations
from engine.bpmn.conditions import note_language
from engine.bpmn.context import Context
from engine.bpmn.names import Element
from engine.bpmn.whole_file import by_a_vendor


def index(root: Element, context: Context) -> None:
    """Give the context all of it."""
    note_language(root, context)
    context.by_a_vendor = by_a_vendor(root)
    context.messages = _by_id(root, "message")
    context.errors = _by_id(root, "error")
    context.escalations = _by_id(root, "escalation")
    context.signals = _by_id(root, "signal")
    context.resources = _by_id(root, "resource")
    context.operations, context.message_flows = operations.index(root), message_flows.index(root)
    context.data, context.lanes = data.index(root), lanes.assigning(root, context)


def _by_id(root: Element, tag: str) -> dict[str, Element]:
    return {child.get("id", ""): child for child in names.bpmn(root, tag)}
