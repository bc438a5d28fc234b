"""What the instances of a multi-instance activity throw as they complete (10.3.8.2): behavior None, One, All, Complex."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace

from lxml import etree

from engine.bpmn import names
from engine.bpmn.conditions import condition
from engine.bpmn.context import Context, named
from engine.bpmn.definition import LoopEvent
from engine.bpmn.names import BPMN, Element

REFERENCES = {"None": "noneBehaviorEventRef", "One": "oneBehaviorEventRef"}


def parse(activity: Element, loop: Element, context: Context) -> tuple[LoopEvent, ...]:
    """The events, in document order. All, the default, throws none."""
    behavior = loop.get("behavior", "All")
    if behavior not in ("None", "One", "All", "Complex"):
        context.problem(loop, f"{named(activity)} has the behavior {behavior!r}", "None, One, All or Complex")
        return ()
    given = list(names.bpmn(loop, "complexBehaviorDefinition"))
    if behavior == "Complex":
        if not given:
            context.problem(loop, f"{named(activity)} has the behavior Complex and no complexBehaviorDefinition", "at least one")
        return tuple(event for each in given for event in _complex(activity, each, context))
    for each in given:
        context.problem(each, f"{named(activity)} has a complexBehaviorDefinition and the behavior {behavior}", "the behavior Complex")
    for other, attribute in REFERENCES.items():
        if behavior != other and loop.get(attribute) is not None:
            context.problem(loop, f"{named(activity)} has a {attribute} and the behavior {behavior}", f"the behavior {other}")
    if behavior == "All":
        return ()
    return tuple(replace(event, first=behavior == "One") for event in _referred(activity, loop, REFERENCES[behavior], context))


def _complex(activity: Element, given: Element, context: Context) -> Iterator[LoopEvent]:
    asked, event = next(names.bpmn(given, "condition"), None), next(names.bpmn(given, "event"), None)
    if asked is None:
        context.problem(given, f"a complexBehaviorDefinition of {named(activity)} has no condition", "a condition")
        return
    when = condition(given, asked, context)
    if event is not None and when is not None:  # without an event the condition changes nothing
        for thrown in _thrown(activity, event, context):
            yield replace(thrown, condition=when)


def _referred(activity: Element, loop: Element, attribute: str, context: Context) -> Iterator[LoopEvent]:
    wanted = names.reference(loop.get(attribute))
    found = context.event_definitions.get(wanted or "")
    if found is None:
        what = "does not name its event" if wanted is None else f"refers to the event definition {wanted!r}, which does not exist"
        context.problem(loop, f"{named(activity)} {what} ({attribute})", "the id of an event definition beside the processes of this file")
        return
    # As if the event stood in the loop: an ImplicitThrowEvent.
    event = etree.SubElement(loop, f"{{{BPMN}}}event")
    definition = deepcopy(found)
    context.made(event)
    context.stands_for(definition, found)
    if "id" in definition.attrib:
        del definition.attrib["id"]  # it would be there twice
    event.append(definition)
    yield from _thrown(activity, event, context)


def _thrown(activity: Element, event: Element, context: Context) -> Iterator[LoopEvent]:
    from engine.bpmn.elements import events, throwing  # the parsers of elements read loops, too

    kinds = [names.local(child) for child in names.elements(event) if names.local(child).endswith("EventDefinition")]
    if not kinds or set(kinds) - {"signalEventDefinition", "escalationEventDefinition"} or len(kinds) > 2:
        found = ", ".join(kinds) or "nothing"
        context.problem(
            event, f"the instances of {named(activity)} throw {found}", "one signalEventDefinition or escalationEventDefinition"
        )
        return
    signal, escalation = throwing.thrown_signal(event, context), events.thrown_escalation(event, context)
    if signal is not None:
        yield LoopEvent(signal=signal)
    if escalation is not None:
        yield LoopEvent(escalation=escalation)
