"""Attributes that are true or false: anything else is a problem, since a reading of it would be a guess."""

from __future__ import annotations

from engine.bpmn import names, support
from engine.bpmn.context import Context, named
from engine.bpmn.names import Element

FLAGS = (
    *("cancelActivity", "isInterrupting", "parallelMultiple", "isForCompensation", "triggeredByEvent"),
    *("instantiate", "cancelRemainingInstances", "isImmediate", "isSequential", "testBefore"),
)


def check_flags(element: Element, context: Context) -> None:
    """Those of a flow node or flow, and of its loop."""
    for each in (element, *names.bpmn(element, *support.LOOPS)):
        for name in FLAGS:
            if name in each.attrib and not names.is_flag(text := str(each.get(name))):
                context.problem(each, f"{named(each)} has {name} {text!r}", "true or false")
