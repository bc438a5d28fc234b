"""Execution and task listeners: what other engines do as an element begins or ends. Here a handler does it, as a job (decision 0077).

`camunda:executionListener` with the events start, end and (on flows) take; `camunda:taskListener` with create and complete; and
`zeebe:executionListener`, `zeebe:taskListener` likewise. Other events (assignment, update, delete, timeout), scripts, and listeners where
nothing can be put between are not read, and so reported by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from engine.bpmn import java, names
from engine.bpmn.context import MAX_NAME, Context, named
from engine.bpmn.definition import ScriptConfig, ServiceTaskConfig
from engine.bpmn.names import CAMUNDA_LIKE, ZEEBE, Element
from engine.bpmn.noted import ITSELF, note
from engine.bpmn.retries import retry_of
from engine.expressions import ExpressionError, parse

START: Mapping[str, tuple[str, ...]] = {"executionListener": ("start",), "taskListener": ("create", "creating")}
END: Mapping[str, tuple[str, ...]] = {
    "taskListener": ("complete", "completing"),
    "executionListener": ("end",),
}  # in this order: a task is complete, then it ends
TAKE: Mapping[str, tuple[str, ...]] = {"executionListener": ("take", "")}
KINDS = ("executionListener", "taskListener")


@dataclass(frozen=True, slots=True)
class Step:
    """A node that is put between an element and a flow."""

    kind: str
    what: str
    name: str
    config: Any


def of_element(element: Element, context: Context, *, start: bool, end: bool, looped: bool) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
    """What is done as the element begins, and as it ends, as far as there is a place for it."""
    entering = tuple(_steps(element, START, context)) if start else ()
    leaving = tuple(_steps(element, END, context)) if end else ()
    if looped and (entering or leaving):
        what = f"the listeners of {named(element)} are called once, before and after all its instances"
        context.warn(element, what, "listeners in what each instance does")
    return entering, leaving


def of_flow(flow: Element, context: Context) -> tuple[Step, ...]:
    """What is done as a flow is taken."""
    return tuple(_steps(flow, TAKE, context))


def of_process(process: Element, context: Context) -> tuple[Step, ...]:
    """What is done as an instance starts. As it ends nothing is: whatever ends it, it has ended then."""
    return tuple(_steps(process, {"executionListener": ("start",)}, context))


def _steps(element: Element, wanted: Mapping[str, tuple[str, ...]], context: Context) -> Iterator[Step]:
    for kind, events in wanted.items():
        for listener in _listeners(element, kind):
            event = str(listener.attrib.get("event") or listener.attrib.get("eventType") or "").strip()
            if event in events and (step := _step(listener, kind, event or events[0], element, context)) is not None:
                yield step


def _listeners(element: Element, kind: str) -> Iterator[Element]:
    """Those of an element in the order of the file. Asking for them does not mean that they are read."""
    wanted = {f"{{{space}}}{kind}" for space in CAMUNDA_LIKE}
    for child in names.extensions(element):
        if child.tag in wanted:
            yield child
        elif child.tag == f"{{{ZEEBE}}}{kind}s":
            found = [each for each in child if each.tag == f"{{{ZEEBE}}}{kind}"]
            if found:
                note(child)
            yield from found


def _step(listener: Element, kind: str, event: str, element: Element, context: Context) -> Step | None:
    """The job of a listener, or the expression that it is; None for what has no counterpart, which stays unread."""
    what = "listener" if kind == "executionListener" else "task listener"
    who = f"the {event} {what} of {named(element)}"
    config = _zeebe(listener, who, context) if names.namespace(listener) == ZEEBE else _java(listener, who, context)
    return (
        None
        if config is None
        else Step("service_task", what, f"{event} {what} of {element.attrib.get('name') or element.attrib.get('id')}", config)
    )


def _java(listener: Element, who: str, context: Context) -> ServiceTaskConfig | ScriptConfig | None:
    binding = next((each for each in java.BINDINGS if (listener.attrib.get(each) or "").strip()), None)
    text = str(listener.attrib[binding]).strip() if binding is not None else ""
    evaluated = _evaluated(text) if binding == "expression" else None
    if binding is None or (evaluated is None and not java.is_name(binding, text)):
        return None
    for each in (ITSELF, "event", binding):
        note(listener, each)
    if evaluated is not None:
        return evaluated
    name = java.name_of(binding, text, listener, who, context)
    return None if name is None else _handler(name, listener, who, context)


def _evaluated(text: str) -> ScriptConfig | None:
    try:
        return ScriptConfig(parse(text), "")
    except ExpressionError:
        return None  # a method, perhaps


def _zeebe(listener: Element, who: str, context: Context) -> ServiceTaskConfig | None:
    name = str(listener.attrib.get("type") or "").strip()
    if not name or name.startswith("="):
        return None  # an expression is worked out there when it is called; here workers ask by a plain name
    for each in (ITSELF, "eventType", "type", "retries"):
        note(listener, each)
    config = _handler(name, listener, who, context)
    retry = retry_of(listener, listener.attrib.get("retries"), who, context)
    return config if config is None or retry is None else replace(config, retry=retry.text, max_attempts=retry.attempts)


def _handler(name: str, listener: Element, who: str, context: Context) -> ServiceTaskConfig | None:
    if len(name) > MAX_NAME:
        context.problem(listener, f"{who} has too long a name of a handler", f"at most {MAX_NAME} characters")
        return None
    return ServiceTaskConfig("handler", name)
