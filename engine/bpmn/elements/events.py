"""Event definitions: timer, message, condition, error, escalation, link, compensation (BPMN 2.0.2, 10.5.5). Shared by the parsers."""

from __future__ import annotations

import re

from engine.bpmn import destinations, jbpm, message_flows, names, stand_ins
from engine.bpmn.conditions import condition as formal_condition
from engine.bpmn.context import MAX_NAME, Context, named
from engine.bpmn.definition import CompensateConfig, ConditionConfig, ErrorConfig, EscalationConfig, MessageConfig, TimerConfig
from engine.bpmn.names import ZEEBE, Element
from engine.bpmn.retries import policy_of
from engine.expressions import Expression, constant
from engine.expressions.parse import Compiled

TIMER_KINDS = {"timeDate": "date", "timeDuration": "duration", "timeCycle": "cycle"}
_WORDS = re.compile(r"[^\W\d_]+(?:\s+[^\W\d_]+)+")  # a time for people, such as `after the holidays`


def definition_of(event: Element, tag: str) -> Element | None:
    """The event definition of that tag inside an event."""
    return next(names.bpmn(event, tag), None)


def timer(event: Element, context: Context) -> TimerConfig | None:
    """A cycle on an event that happens once stands for its first occurrence (with a count, a catch event happens as often)."""
    definition = definition_of(event, "timerEventDefinition")
    if definition is None:
        return None
    zone = context.zone(event, definition, event)  # first: what is asked for is no longer unread
    context.report_unread(definition)
    given = list(names.bpmn(definition, *TIMER_KINDS))
    if len(given) != 1:
        found = "none of them" if not given else " and ".join(names.local(child) for child in given)
        context.problem(definition, f"the timer of {named(event)} has {found}", "one of timeDate, timeDuration, timeCycle")
        return None
    kind = TIMER_KINDS[names.local(given[0])]
    if not names.text(given[0]).strip():
        context.problem(given[0], f"the timer of {named(event)} has an empty {names.local(given[0])}", "an expression, or text in ISO 8601")
        return None
    where = f"the {kind} of the timer of {named(event)}"
    expression = _time(given[0], where, event.get("id"), context)
    if expression is None:
        return None
    context.timer(given[0], kind, expression)
    retry, attempts = _retries(event, 3, context)
    return TimerConfig(kind, expression, zone, retry, attempts)


def _retries(event: Element, default: int, context: Context) -> tuple[str | Expression | None, int]:
    """Of the job of a timer, or of the delivery of a message."""
    cycle = context.extension(event, "failedJobRetryTimeCycle")
    own = context.attribute(event, "retry", names.BATON)
    return policy_of(event, own if own is not None or cycle is None else names.text(cycle), named(event), default, context)


def _time(given: Element, where: str, instead: str | None, context: Context) -> Expression | None:
    """Plain text is a time in every language. jBPM has one of its own; vendors take words for people, and fail when they are due."""
    if (time := jbpm.time(given)) is not None:
        return constant(time)
    text = names.text(given).strip()
    if context.by_a_vendor and instead and _WORDS.fullmatch(text):
        return stand_ins.variable(given, where, f"is the text {text[:80]!r}", instead, context)
    if given.get("language") or names.text(given).strip().startswith("="):
        return context.formal(given, where, instead=instead)
    return context.expression(given, names.text(given), where, instead=instead)


def condition(event: Element, context: Context) -> ConditionConfig | None:
    """The condition on whose becoming true an event occurs."""
    definition = definition_of(event, "conditionalEventDefinition")
    if definition is None:
        return None
    context.report_unread(definition)
    given = next(names.bpmn(definition, "condition"), None)
    if given is None:
        context.problem(definition, f"{named(event)} has no condition", "a condition, such as ${amount > 1000}")
        return None
    expression = formal_condition(event, given, context)
    return None if expression is None else ConditionConfig(expression)


def message(event: Element, context: Context, *, throws: bool = False) -> MessageConfig | None:
    definition = definition_of(event, "messageEventDefinition")
    return None if definition is None else message_of(event, definition, context, throws=throws)


def message_of(event: Element, definition: Element, context: Context, *, throws: bool = False) -> MessageConfig | None:
    """The message that the messageRef of an event definition, or of a send or receive task itself, names."""
    found = _message_element(event, definition, context)
    if found is None:
        return None
    target, name = found
    if name.is_constant and len(str(name.evaluate({}))) > MAX_NAME:
        context.problem(target, f"the name of {named(target)} is too long", f"at most {MAX_NAME} characters")
    places = (definition, event, target)
    destination = _first(places, "destination", context, event) if throws else None
    to = destinations.name_of(places, event, context) if throws else None
    if to is not None and destination is None:
        destination = constant("")  # that of the destination itself
    retry, attempts = _retries(event, 8, context) if destination is not None else (None, 8)
    if destination is None:
        for place in places:
            destinations.refuse_elsewhere(place, "nothing that sends to a destination", context)
    config = MessageConfig(
        name,
        key=_key(event, definition, target, context) if destination is None else None,
        destination=destination,
        method=(_attribute(places, "method", context) or "POST").upper() if throws else "POST",
        body=_first(places, "body", context, event) if throws else None,
        retry=retry,
        max_attempts=attempts,
        destination_name=to,
        ordering_key=destinations.key_of(places, event, context) if destination is not None else None,
    )
    for place in {definition, target} - {event}:  # the event's own attributes are not all read yet
        context.report_unread(place)
    return config


def link(event: Element, context: Context) -> str | None:
    """The name of a link event, by which throws and their catch find each other (10.5.5)."""
    definition = definition_of(event, "linkEventDefinition")
    if definition is None:
        return None
    context.report_unread(definition)
    name = (definition.get("name") or "").strip()
    if not name:
        context.problem(definition, f"the link of {named(event)} has no name", "a name: throws and catch of a link have the same one")
        return None
    return name


def thrown_error(event: Element, context: Context) -> str | None:
    """The code of the error that an event throws."""
    definition = definition_of(event, "errorEventDefinition")
    if definition is None:
        return None
    context.report_unread(definition)
    wanted = names.reference(definition.get("errorRef"))
    if wanted is None:
        key = event.get("id")
        why = f"an errorRef; its code is {key!r}, and what catches every error catches it"
        context.warn(definition, f"{named(event)} names no error", why)
        return key
    found = context.errors.get(wanted)
    if found is None:
        return _as_a_code(event, definition, wanted, context)
    code = _code(found)
    if code is None:
        context.problem(definition, f"{named(event)} throws {named(found)}, which has no code", "an errorCode: errors are caught by it")
    return code


def _message_element(event: Element, definition: Element, context: Context) -> tuple[Element, Compiled] | None:
    """The message, and its name. Without one of its own: that of the message flow at the event, or the name of what it is."""
    wanted = names.reference(definition.get("messageRef")) or message_flows.message_at(event, context)
    if wanted is None:
        name = message_flows.name_at(event, definition, context)
        if name is None:
            context.problem(definition, f"{named(event)} names no message", "a messageRef")
        return None if name is None else (definition, name)
    found = context.messages.get(wanted)
    if found is None:
        what = f"{named(event)} refers to the message {wanted!r}, which does not exist"
        context.problem(definition, what, "the id of a message of this file")
        return None
    name = context.either(found, found.get("name"), f"the name of {named(found)}")
    if name is None and not (found.get("name") or "").strip():
        what = f"{named(found)}, which {named(event)} refers to, has no name"
        context.problem(found, what, "a name: messages are correlated by it")
    return None if name is None else (found, name)


def _key(event: Element, definition: Element, target: Element, context: Context) -> Expression | None:
    """zeebe:subscription on the message, else baton:correlationKey; None stands for the business key."""
    where = f"the correlation key of {named(target)}"
    subscription = context.extension(target, "subscription", ZEEBE)
    if subscription is not None:
        text = subscription.get("correlationKey")
        if key := context.either(target, text, where):
            return key
    return _first((definition, event, target), "correlationKey", context, event)


def _first(places: tuple[Element, ...], name: str, context: Context, event: Element) -> Expression | None:
    return context.expression(event, _attribute(places, name, context), f"baton:{name} of {named(event)}")


def _attribute(places: tuple[Element, ...], name: str, context: Context) -> str | None:
    found = [context.attribute(place, name, names.BATON) for place in places]
    return next((value for value in found if value is not None), None)


def error(event: Element, context: Context) -> ErrorConfig | None:
    """An error to catch. Without errorRef, or with an error that has no code, it catches every error."""
    definition = definition_of(event, "errorEventDefinition")
    if definition is None:
        return None
    code_variable = context.attribute(definition, "errorCodeVariable")
    message_variable = context.attribute(definition, "errorMessageVariable")
    context.report_unread(definition)
    wanted = names.reference(definition.get("errorRef"))
    if wanted is None:
        return ErrorConfig(None, code_variable, message_variable)
    found = context.errors.get(wanted)
    code = _code(found) if found is not None else _as_a_code(event, definition, wanted, context)
    return None if found is None and code is None else ErrorConfig(code, code_variable, message_variable)


def _code(found: Element) -> str | None:
    return (found.get("errorCode") or "").strip() or None


def _as_a_code(event: Element, definition: Element, wanted: str, context: Context) -> str | None:
    """Camunda 7, Flowable and Activiti take an errorRef that leads nowhere as the code itself; the standard does not."""
    what = f"{named(event)} refers to the error {wanted!r}, which does not exist"
    if not context.by_a_vendor:
        context.problem(definition, what, "the id of an error of this file")
        return None
    context.warn(definition, what, f"the id of an error of this file; {wanted!r} is read as the code of one")
    return wanted


def escalation(event: Element, context: Context) -> EscalationConfig | None:
    """An escalation to catch. Without escalationRef, or with an escalation that has no code, it catches every one."""
    definition = definition_of(event, "escalationEventDefinition")
    if definition is None:
        return None
    code_variable = context.attribute(definition, "escalationCodeVariable")
    context.report_unread(definition)
    found = _escalation_element(event, definition, context)
    return EscalationConfig((found.get("escalationCode") or "").strip() or None if found is not None else None, code_variable)


def thrown_escalation(event: Element, context: Context) -> str | None:
    """The code of the escalation that an event throws."""
    definition = definition_of(event, "escalationEventDefinition")
    if definition is None:
        return None
    context.report_unread(definition)
    found = _escalation_element(event, definition, context)
    if found is not None and (code := (found.get("escalationCode") or "").strip()):
        return code
    if found is not None:
        why = "an escalationCode: escalations are caught by it"
        context.problem(definition, f"{named(event)} throws {named(found)}, which has no code", why)
    elif names.reference(definition.get("escalationRef")) is None:
        context.problem(definition, f"{named(event)} names no escalation", "an escalationRef")
    return None


def thrown_compensation(event: Element, context: Context) -> CompensateConfig | None:
    """What an event compensates, and whether it waits for that (10.5.5)."""
    definition = definition_of(event, "compensateEventDefinition")
    if definition is None:
        return None
    context.report_unread(definition)
    waits = definition.get("waitForCompletion")
    if (waits or "true").strip() not in ("true", "false", "1", "0"):
        context.problem(definition, f"{named(event)} has waitForCompletion {waits!r}", "true or false")
    return CompensateConfig(names.reference(definition.get("activityRef")), names.flag(waits, default=True))


def refuse_activity_ref(event: Element, context: Context) -> None:
    """10.5.5: where compensation is caught, what is compensated is what the event belongs to."""
    definition = definition_of(event, "compensateEventDefinition")
    if definition is None:
        return
    context.report_unread(definition)
    definition.get("waitForCompletion")  # says something to a throw event alone
    if (activity := names.reference(definition.get("activityRef"))) is not None:
        why = "no activityRef: what the event belongs to is compensated"
        context.problem(definition, f"{named(event)} catches compensation and names the activity {activity!r}", why)


def _escalation_element(event: Element, definition: Element, context: Context) -> Element | None:
    wanted = names.reference(definition.get("escalationRef"))
    found = context.escalations.get(wanted) if wanted is not None else None
    if wanted is not None and found is None:
        what = f"{named(event)} refers to the escalation {wanted!r}, which does not exist"
        context.problem(definition, what, "the id of an escalation of this file")
    return found
