"""What is thrown to our own processes: signals, and messages without a destination (BPMN 2.0.2, 10.5.1 and 10.5.5)."""

from __future__ import annotations

from dataclasses import replace

from engine.bpmn import connectors, names, stand_ins
from engine.bpmn.context import MAX_NAME, Context, named
from engine.bpmn.definition import MessageConfig, ScriptConfig, Sent, ServiceTaskConfig, SignalConfig
from engine.bpmn.elements import events, service_task
from engine.bpmn.mappings import inputs
from engine.bpmn.message_flows import THROWS
from engine.bpmn.names import CAMUNDA_LIKE, JBPM, Element
from engine.bpmn.times import DurationTimer, TimerError, parse_timer
from engine.expressions import Expression, constant

TIME_TO_LIVE = 3600.0  # seconds, where the model says nothing
MAX_TIME_TO_LIVE = 366 * 24 * 3600.0


def signal(event: Element, context: Context) -> SignalConfig | None:
    """A signal to catch."""
    definition = events.definition_of(event, "signalEventDefinition")
    if definition is None:
        return None
    name = _signal_name(event, definition, context)
    context.report_unread(definition)
    return None if name is None else SignalConfig(name)


def thrown_signal(event: Element, context: Context) -> SignalConfig | None:
    """The signal of an event that throws one, and the variables that go along."""
    definition = events.definition_of(event, "signalEventDefinition")
    if definition is None:
        return None
    name, sends = _signal_name(event, definition, context), _sent(event, definition, context)
    context.report_unread(definition)
    return None if name is None else SignalConfig(name, sends)


def bound(event: Element, context: Context) -> ServiceTaskConfig | ScriptConfig | None:
    """Work that a vendor's attributes of the messageEventDefinition name: such an event is done as a send task is (10.3.3.2)."""
    definition = events.definition_of(event, "messageEventDefinition")
    if definition is None or not (service_task.is_bound(definition, context) or connectors.of(definition, context)):
        return None
    found = service_task.parse(definition, context)
    context.report_unread(definition)
    return found


def thrown_message(event: Element, context: Context) -> MessageConfig | None:
    """The message of an event that throws one: to its destination, or to our own processes."""
    definition = events.definition_of(event, "messageEventDefinition")
    return None if definition is None else _message(event, definition, context)


def sent_message(task: Element, context: Context) -> MessageConfig | None:
    """The message that the messageRef of a send task names."""
    return _message(task, task, context)


def _message(thrower: Element, definition: Element, context: Context) -> MessageConfig | None:
    # Read first: what is left of the definition is reported as unread below.
    sends = _sent(thrower, definition, context)
    time_to_live = _time_to_live(thrower, definition, context)
    found = events.message_of(thrower, definition, context, throws=True)
    if found is None or found.destination is not None:
        return found
    return replace(found, sends=sends, time_to_live=time_to_live)


def _signal_name(event: Element, definition: Element, context: Context) -> Expression | None:
    """The name of the signal that the signalRef names; it may be an expression, judged when the event waits or throws."""
    wanted = names.reference(definition.get("signalRef"))
    if wanted is None and (text := context.attribute(definition, "signalExpression", *CAMUNDA_LIKE)) is not None:
        return context.expression(definition, text, f"the signalExpression of {named(event)}")
    if wanted is None:
        what, key = f"{named(event)} names no signal", event.get("id")
        if context.by_a_vendor and key and names.local(event) in THROWS:
            return stand_ins.signal(definition, what, key, context)
        context.problem(definition, what, "a signalRef")
        return None
    found = context.signals.get(wanted)
    if found is None and JBPM in definition.nsmap.values():
        what = f"{named(event)} refers to the signal {wanted!r}, which does not exist"
        context.warn(definition, what, f"the id of a signal of this file; {wanted!r} is read as the name of one, as jBPM does")
        return constant(wanted)
    if found is None:
        context.problem(
            definition, f"{named(event)} refers to the signal {wanted!r}, which does not exist", "the id of a signal of this file"
        )
        return None
    if not (found.get("name") or "").strip():
        context.problem(found, f"{named(found)}, which {named(event)} refers to, has no name", "a name: who waits for it names it so")
        return None
    name = context.either(found, found.get("name"), f"the name of {named(found)}")
    if name is not None and name.is_constant and len(str(name.evaluate({}))) > MAX_NAME:
        context.problem(found, f"the name of {named(found)} is too long", f"at most {MAX_NAME} characters")
    context.report_unread(found)
    return name


def _sent(event: Element, definition: Element, context: Context) -> Sent:
    """Input parameters of the event, and camunda:in of its definition: a source or sourceExpression for a target, or all."""
    found = dict(inputs(event, context))
    everything = False
    for given in context.extensions(definition, "in", *CAMUNDA_LIKE, names.BATON):
        if given.get("variables") == "all":
            everything = True
            continue
        source, text, target = given.get("source"), given.get("sourceExpression"), (given.get("target") or "").strip()
        if not target or len(target) > MAX_NAME or (source is None) == (text is None):
            why = 'a target with a source or a sourceExpression, or variables="all"'
            context.problem(given, f"a variable that {named(event)} sends has no target, or not one source", why)
            continue
        value = context.expression(given, f"${{`{source}`}}" if source is not None else text, f"the value of {target!r} of {named(event)}")
        if value is not None:
            found[target] = value
    return Sent(tuple(found.items()), everything)


def _time_to_live(thrower: Element, definition: Element, context: Context) -> float:
    """baton:timeToLive: how long the message is kept if nobody waits for it."""
    target = context.messages.get(names.reference(definition.get("messageRef")) or "")
    places = [place for place in (definition, thrower, target) if place is not None]
    text = next((found for place in places if (found := context.attribute(place, "timeToLive", names.BATON)) is not None), None)
    if text is None:
        return TIME_TO_LIVE
    try:
        timer = parse_timer("duration", text)
        seconds = timer.seconds if isinstance(timer, DurationTimer) else None
    except TimerError as error:
        context.problem(thrower, f"baton:timeToLive of {named(thrower)} cannot be read: {error}", "a duration such as PT1H")
        return TIME_TO_LIVE
    if seconds is None or not 0 <= seconds <= MAX_TIME_TO_LIVE:
        what = f"baton:timeToLive of {named(thrower)} is {text.strip()}"
        context.problem(thrower, what, "a duration of seconds, minutes or hours up to 366 days, such as PT1H; PT0S keeps nothing")
        return TIME_TO_LIVE
    return float(seconds)
