"""Standard loops and multi-instance activities (BPMN 2.0.2, 10.3.8): how often an activity runs."""

from __future__ import annotations

import re
from typing import Any

from engine.bpmn import loop_data, loop_events, names, stand_ins
from engine.bpmn.context import MAX_NAME, Context, named
from engine.bpmn.definition import MultiInstance, StandardLoop
from engine.bpmn.names import ZEEBE, Element
from engine.expressions import Expression, as_condition

_NAME = re.compile(r"[^\W\d]\w*")


def parse(activity: Element, context: Context) -> StandardLoop | MultiInstance | None:
    """What the loop characteristics of an activity say; None without any."""
    given = list(names.bpmn(activity, "standardLoopCharacteristics", "multiInstanceLoopCharacteristics"))
    if not given:
        return None
    if len(given) > 1:
        context.problem(given[1], f"{named(activity)} has two loop characteristics", "one")
        return None
    found = _standard(activity, given[0], context) if names.local(given[0]).startswith("standard") else _multi(activity, given[0], context)
    context.report_unread(given[0])
    return found


def _standard(activity: Element, loop: Element, context: Context) -> StandardLoop | None:
    condition = _text_of(activity, loop, "loopCondition", context)
    text = loop.get("loopMaximum")
    maximum = int(text) if text is not None and re.fullmatch(r"\s*\+?\d{1,9}\s*", text, re.ASCII) else None
    if text is not None and not maximum:
        context.problem(loop, f"{named(activity)} has the loopMaximum {text!r}", "a whole number from 1 on")
        return None
    if next(names.bpmn(loop, "loopCondition"), None) is None and maximum is None:
        context.problem(loop, f"{named(activity)} loops without an end", "a loopCondition or a loopMaximum")
        return None
    if condition is None and maximum is None:
        return None  # its condition could not be read, and is named already
    return StandardLoop(condition, test_before=names.flag(loop.get("testBefore"), default=False), maximum=maximum)


def _multi(activity: Element, loop: Element, context: Context) -> MultiInstance | None:
    cardinality = _text_of(activity, loop, "loopCardinality", context)
    zeebe = context.extension(loop, "loopCharacteristics", ZEEBE)
    collection, element = _collection(activity, loop, zeebe, context)
    counted = next(names.bpmn(loop, "loopCardinality"), None) is not None
    collected = any(
        given is not None
        for given in (zeebe, context.attribute(loop, "collection"), next(names.bpmn(loop, "loopDataInputRef"), None), _java(loop, context))
    )
    if counted == collected:
        found = "neither a cardinality nor a collection" if not counted else "both a cardinality and a collection"
        context.problem(loop, f"{named(activity)} has {found}", "a loopCardinality, a camunda:collection or a loopDataInputRef")
        return None
    if cardinality is None and collection is None:
        return None  # it could not be read, and is named already
    output, result = loop_data.output(activity, loop, zeebe, context)
    return MultiInstance(
        sequential=names.flag(loop.get("isSequential"), default=False),
        cardinality=cardinality,
        collection=collection,
        element=_variable(activity, loop, element, context),
        index=_variable(activity, loop, context.attribute(loop, "elementIndexVariable"), context) or "loopCounter",
        until=_text_of(activity, loop, "completionCondition", context),
        throws=loop_events.parse(activity, loop, context),
        output=_variable(activity, loop, output, context),
        result=result,
    )


def _java(loop: Element, context: Context) -> Element | None:
    return context.extension(loop, "collection", *names.CAMUNDA_LIKE)


def _collection(activity: Element, loop: Element, zeebe: Element | None, context: Context) -> tuple[Expression | None, str | None]:
    """camunda:collection, the name of a variable or an expression; the inputCollection of Zeebe; or the loopDataInputRef."""
    where = f"the collection of {named(activity)}"
    element = context.attribute(loop, "elementVariable")
    if element is None:
        element = loop_data.item(loop, "inputDataItem")
    if zeebe is not None:
        return context.zeebe(loop, zeebe.get("inputCollection"), where), zeebe.get("inputElement") or element
    given = context.attribute(loop, "collection")
    if given is None and _java(loop, context) is not None:  # Flowable: a class makes the collection
        instead = stand_ins.name_of(activity, "collection")
        return stand_ins.variable(loop, where, "is made by Java, which is not run", instead, context), element
    text = given.strip() if given is not None else loop_data.referred(activity, loop, "loopDataInputRef", context)
    if _NAME.fullmatch(text):
        text = f"${{{text}}}"
    collection = context.expression(loop, text, where)
    if collection is not None and (collection.is_constant or collection.is_template):
        context.problem(loop, f"{where} is the text {text[:80]!r}", "the name of a variable, or an expression such as ${order.lines}")
        collection = None
    return collection, element


def _variable(activity: Element, loop: Element, name: str | None, context: Context) -> str | None:
    if name is not None and not (name.strip() and len(name) <= MAX_NAME):
        context.problem(loop, f"the loop of {named(activity)} has a variable without a good name", f"a name of 1 to {MAX_NAME} characters")
        return None
    return name


def _text_of(activity: Element, loop: Element, tag: str, context: Context) -> Expression | None:
    child = next(names.bpmn(loop, tag), None)
    if child is None:
        return None
    context.report_unread(child)
    text = names.text(child).strip()
    where = f"the {tag} of {named(activity)}"
    if not text:
        context.problem(child, f"{where} is empty", "an expression")
        return None
    expression = context.formal(child, where)
    if expression is not None and (expression.is_template or (expression.is_constant and not _is_value(tag, expression.evaluate({})))):
        why = "a whole number, or an expression such as ${count}" if tag == "loopCardinality" else "an expression that is true or false"
        context.problem(child, f"{where} is the text {text[:80]!r}", why)
        return None
    return expression if expression is None or tag == "loopCardinality" else as_condition(expression)


def _is_value(tag: str, value: Any) -> bool:
    """Whether a constant will do: a count, or true or false, as text or as itself."""
    if tag == "loopCardinality":
        return re.fullmatch(r"\d{1,9}", str(value), re.ASCII) is not None
    return isinstance(value, bool) or value in ("true", "false")
