"""Boundary events: timer, message, signal, condition, error, escalation, compensation, cancel (BPMN 2.0.2, 10.5.4 and 13.5.3)."""

from __future__ import annotations

from engine.bpmn import names
from engine.bpmn.context import Context, named
from engine.bpmn.definition import BoundaryConfig
from engine.bpmn.elements import events, throwing
from engine.bpmn.names import Element
from engine.bpmn.support import Supported, register


def register_all() -> None:
    supported = Supported("boundary_event", "boundary", parse)
    for event in ("timer", "message", "signal", "conditional", "error", "escalation", "compensate", "cancel"):
        register("boundaryEvent", supported, event=f"{event}EventDefinition")


def parse(element: Element, context: Context) -> BoundaryConfig:
    """What it is attached to is checked by the reader, which knows all elements."""
    interrupting = names.flag(element.get("cancelActivity"), default=True)
    error = events.error(element, context)
    if error is not None and not interrupting:
        context.problem(
            element, f"{named(element)} catches an error and does not cancel its activity", "cancelActivity true: errors always interrupt"
        )
    compensates = events.definition_of(element, "compensateEventDefinition") is not None
    cancels = events.definition_of(element, "cancelEventDefinition") is not None
    if (compensates or cancels) and not interrupting:
        what = f"{named(element)} {'compensates' if compensates else 'catches cancel'} and has cancelActivity false"
        context.problem(element, what, "cancelActivity true, or nothing (10.5.4)")
    if compensates:
        events.refuse_activity_ref(element, context)
    return BoundaryConfig(
        attached_to=names.reference(element.get("attachedToRef")) or "",
        interrupting=interrupting,
        timer=events.timer(element, context),
        message=events.message(element, context),
        signal=throwing.signal(element, context),
        condition=events.condition(element, context),
        error=error,
        escalation=events.escalation(element, context),
        compensate=compensates,
        cancel=cancels,
    )
