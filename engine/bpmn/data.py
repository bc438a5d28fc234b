"""Data (BPMN 2.0.2, 10.4) as variables: objects and properties, inputs, outputs, and the associations between them.

A data object, or a property of a process or subprocess, is the variable of its name (its id where it has none); one that
stands in a subprocess is local to it. An association into a data input of an activity makes an input of that name, which the
activity alone sees; one out of a data output takes that name out of its result, and puts it into the target's variable.
Associations without both ends among data are drawn only: modelers draw them so.
"""

from __future__ import annotations

from engine.bpmn import names
from engine.bpmn.context import MAX_NAME, Context, named
from engine.bpmn.definition import DataOutput
from engine.bpmn.names import BPMN, Element
from engine.bpmn.noted import note
from engine.expressions import Expression

DATA = ("dataObject", "dataObjectReference", "dataInput", "dataOutput", "property")
ASSOCIATIONS = ("dataInputAssociation", "dataOutputAssociation")
PLACEHOLDER = "__targetRef_placeholder"  # of modelers that draw an association to an activity
EVENTS = frozenset({"start_event", "intermediate_catch_event", "boundary_event"})
GIVES = frozenset(  # kinds whose result, or message, may have data outputs
    {
        *EVENTS,
        "service_task",
        "business_rule_task",
        "script_task",
        "send_task",
        "user_task",
        "receive_task",
        "call_activity",
    }
)


def index(root: Element) -> dict[str, Element]:
    """Every piece of data of a file by its id."""
    found = {}
    for tag in DATA:
        for element in root.iter(f"{{{BPMN}}}{tag}"):
            note(element)  # a variable, whatever refers to it
            if key := element.attrib.get("id"):
                found[key] = element
    return found


def locals_of(container: Element, context: Context) -> tuple[str, ...]:
    """The variables that a subprocess has for itself: its data objects and properties."""
    found = (_variable(child, context) for child in names.bpmn(container, "dataObject", "property"))
    return tuple(dict.fromkeys(name for name in found if name))


def inputs(element: Element, context: Context) -> list[tuple[str, Expression]]:
    """What data associations give an activity or a throw event: (name, expression), in document order."""
    found = []
    for association in names.bpmn(element, "dataInputAssociation"):
        target = _ends(association, "targetRef", context)[-1:]
        name = _variable(target[0], context) if target else None
        if not name or name == PLACEHOLDER or target[0].get("id") in _of_the_loop(element):
            continue
        expression = _value(
            association, [_variable(each, context) or "" for each in _ends(association, "sourceRef", context)], name, context
        )
        if expression is not None:
            found.append((name, expression))
    return found


def is_drawn(association: Element, context: Context) -> bool:
    """Whether an association leads from data to data nowhere: modelers draw them so."""
    ends = [[data for data in _ends(association, tag, context) if _name(data) != PLACEHOLDER] for tag in ("sourceRef", "targetRef")]
    return not all(ends)


def warn_of_unread(event: Element, context: Context) -> None:
    """An error or an escalation carries its code alone: data that is given to the event that throws it goes nowhere."""
    carries = any(names.local(child) in ("messageEventDefinition", "signalEventDefinition") for child in names.elements(event))
    given = next(names.bpmn(event, "dataInputAssociation"), None)
    if given is not None and not carries:
        context.warn(given, f"{named(event)} is given data, and what it throws carries none", "a message or a signal")


def outputs(element: Element, kind: str, context: Context) -> tuple[DataOutput, ...]:
    """What data associations make of a result."""
    found = []
    for association in names.bpmn(element, "dataOutputAssociation"):
        sources, target = _ends(association, "sourceRef", context), _ends(association, "targetRef", context)[-1:]
        name = _variable(target[0], context) if target else None
        if not name or not sources or any(source.get("id") in _of_the_loop(element) for source in sources):
            continue
        if kind in ("task", "manual_task"):
            continue  # they give nothing, so the target is left alone
        if kind not in GIVES:
            context.problem(association, f"{named(element)} has a data output", "none: it has no result of its own")
            continue
        if kind in EVENTS and (why := _too_much_for_an_event(element, association)):
            context.problem(association, f"{named(element)} has a data output {why}", "one event, and its data as it is")
            continue
        taken = tuple(_variable(source, context) or "" for source in sources)
        expression = _value(association, list(taken), name, context)
        if expression is not None:
            found.append(DataOutput(name, taken, expression))
    return tuple(found)


def _of_the_loop(activity: Element) -> frozenset[str]:
    """Data of a multi-instance activity as a whole: its instances have an item of it (engine.bpmn.loop_data)."""
    loops = names.bpmn(activity, "multiInstanceLoopCharacteristics")
    found = (names.text(each).strip() for loop in loops for each in names.bpmn(loop, "loopDataInputRef", "loopDataOutputRef"))
    return frozenset(found)


def _too_much_for_an_event(event: Element, association: Element) -> str | None:
    """An expression that fails would have no activity to fail at; of several events only one brings what it brings."""
    if next(names.bpmn(association, "transformation", "assignment"), None) is not None:
        return "that is transformed"
    several = sum(names.local(child).endswith("EventDefinition") for child in names.elements(event)) > 1
    return "and several event definitions" if several else None


def _ends(association: Element, tag: str, context: Context) -> list[Element]:
    """Data at one end. What is no data is named by the checks."""
    keys = (names.reference(names.text(child)) for child in names.bpmn(association, tag))
    return [context.data[key] for key in keys if key in context.data]


def _variable(data: Element, context: Context) -> str | None:
    if names.local(data) == "dataObjectReference":
        data = context.data.get(names.reference(data.get("dataObjectRef")) or "", data)
    name = _name(data)
    if len(name) > MAX_NAME or "`" in name:
        context.problem(data, f"{named(data)} has no good name", f"1 to {MAX_NAME} characters without backticks: it names a variable")
        return None
    return name or None


def _name(data: Element) -> str:
    return (data.get("name") or data.get("id") or "").strip()


def _value(association: Element, sources: list[str], target: str, context: Context) -> Expression | None:
    """10.4.2: what is copied, or what a transformation or the assignment to the target makes of the sources."""
    where = f"the {{}} of {named(association)}"
    transformation = next(names.bpmn(association, "transformation"), None)
    if transformation is not None:
        return context.formal(transformation, where.format("transformation"))
    assignments = list(names.bpmn(association, "assignment"))
    if assignments:
        return _assigned(association, assignments, target, where, context)
    if len(sources) != 1:
        return None  # several are named by the checks; without any there is nothing to copy
    return context.expression(association, f"${{`{sources[0]}`}}", where.format("source"))


def _assigned(association: Element, assignments: list[Element], target: str, where: str, context: Context) -> Expression | None:
    if len(assignments) > 1:
        context.problem(assignments[1], f"{named(association)} has several assignments", "one, to its target")
        return None
    (assignment,) = assignments
    to = "".join(names.text(child) for child in names.bpmn(assignment, "to")).strip()
    ids = {names.text(child).strip() for child in names.bpmn(association, "targetRef")}
    if to.removeprefix("${").removesuffix("}").strip("` ") not in {target, *ids}:
        context.problem(assignment, f"{named(association)} assigns to {to[:80]!r}", f"its target, {target!r}")
        return None
    given = next(names.bpmn(assignment, "from"), None)
    if given is None or not names.text(given).strip():
        context.problem(assignment, f"{named(association)} assigns nothing", "an expression in from")
        return None
    return context.formal(given, where.format("assignment"))
