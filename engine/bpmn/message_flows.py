"""Events and tasks that name no message (10.5.5, 10.3.3): what message flows say of them, or vendors, or their own ids.

Of two that a message flow joins, the one sends the message of its name and the other waits for it (9.4): so a drawn
collaboration runs. A receive task that names nothing waits for the message of its own id, as that of Camunda 7 and
Flowable is triggered by its own name; in a file of a vendor (decision 0050) an event that throws none named sends that of its id.
One that waits for nothing is refused. Decision 0075.
"""

from __future__ import annotations

from engine.bpmn import names, stand_ins
from engine.bpmn.context import Context, named
from engine.bpmn.names import BPMN, CAMUNDA_LIKE, Element
from engine.expressions.parse import Compiled

THROWS = frozenset({"intermediateThrowEvent", "endEvent"})
SENDERS = THROWS | {"sendTask"}


def index(root: Element) -> dict[tuple[str, str], list[Element]]:
    """The message flows by (sourceRef or targetRef, the id that it refers to)."""
    found: dict[tuple[str, str], list[Element]] = {}
    for flow in root.iter(f"{{{BPMN}}}messageFlow"):
        for end in ("sourceRef", "targetRef"):
            if key := names.reference(flow.get(end)):
                found.setdefault((end, key), []).append(flow)
    return found


def lead_from(element: Element, context: Context) -> bool:
    """Whether a message flow says what a task sends."""
    return bool(_at(element, context))


def message_at(event: Element, context: Context) -> str | None:
    """The id of the message that the message flows at this element carry, if they say one, and the same."""
    found = {names.reference(flow.get("messageRef")) for flow in _at(event, context)}
    wanted = found.pop() if len(found) == 1 else None
    if wanted is not None and wanted in context.messages:
        what = f"{named(event)} names no message"
        context.warn(event, what, f"that of its message flow, {named(context.messages[wanted])}, which is read instead")
        return wanted
    return None


def name_at(event: Element, definition: Element, context: Context) -> Compiled | None:
    """The name of the message that is meant, with a warning; None where nothing says so."""
    if (text := context.attribute(definition, "messageExpression", *CAMUNDA_LIKE)) is not None:
        return context.expression(definition, text, f"the messageExpression of {named(event)}")
    found = list(dict.fromkeys(_name(flow) for flow in _at(event, context)))
    if len(found) == 1:
        return stand_ins.message(event, f"{named(event)} names no message, and a message flow is drawn there", found[0], context)
    if not found and (names.local(event) == "receiveTask" or (names.local(event) in THROWS and context.by_a_vendor)):
        return stand_ins.message(event, f"{named(event)} names no message", str(event.get("id")), context)
    return None


def _at(event: Element, context: Context) -> list[Element]:
    end = "sourceRef" if names.local(event) in SENDERS else "targetRef"
    return context.message_flows.get((end, event.get("id") or ""), [])


def _name(flow: Element) -> str:
    """As people see it, or else its id."""
    return " ".join((flow.get("name") or flow.get("id") or "").split())
