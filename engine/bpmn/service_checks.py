"""Messages, operations and interfaces (8.4.3, 10.3.3, 10.5.5): references to the right kind, data that fits the messages.

They look through `attrib`, which notes nothing: that a reference leads somewhere does not mean that anything follows it.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.bpmn import names
from engine.bpmn.context import named
from engine.bpmn.names import BPMN, Element
from engine.bpmn.whole_file import Rule, Whole, same_item

REFERENCES = (  # element, reference as a child or an attribute, what it leads to
    ("operation", "inMessageRef", "message"),
    ("operation", "outMessageRef", "message"),
    ("operation", "errorRef", "error"),
    ("messageEventDefinition", "operationRef", "operation"),
    ("serviceTask", "operationRef", "operation"),
    ("sendTask", "operationRef", "operation"),
    ("receiveTask", "operationRef", "operation"),
)


def _kinds(whole: Whole) -> None:
    """8.4.3: an operation has messages and errors, tasks and events have operations."""
    for tag, name, kind in REFERENCES:
        for element in whole.root.iter(f"{{{BPMN}}}{tag}"):
            for key in [*whole.texts(element, name), *([names.reference(element.attrib.get(name))] if element.attrib.get(name) else [])]:
                found = whole.by_id.get(key or "")
                if found is not None and names.local(found) != kind:
                    whole.problem(element, f"has the {name} {key!r}, which is a {names.local(found)}", f"the id of a {kind}")


def _operations(whole: Whole) -> None:
    """10.5.5, table 10.98: an event about a typed message (itemRef) says by which operation."""
    for definition in whole.within("messageEventDefinition"):
        message = whole.to(definition.attrib.get("messageRef"))
        if message is None or message.get("itemRef") is None:
            continue
        if definition.attrib.get("operationRef") is None and not whole.texts(definition, "operationRef"):
            what = f"is about the typed message {message.get('id')!r} and names no operation"
            whole.problem(definition, what, "an operationRef: the process is executable")


def _io(element: Element) -> Element | None:
    return next(names.bpmn(element, "ioSpecification"), None)


def _data(element: Element, tag: str) -> list[Element]:
    holder = _io(element)
    return [] if holder is None else list(names.bpmn(holder, tag))


def _messages_of_tasks(whole: Whole) -> None:
    """10.3.3.2 and 10.3.3.3: what a task sends or receives is one item, that of its message."""
    for tag, side in (("sendTask", "dataInput"), ("receiveTask", "dataOutput")):
        for task in whole.within(tag):
            message, given = whole.to(task.attrib.get("messageRef")), _data(task, side)
            if message is None or not given:
                continue
            if len(given) > 1:
                whole.problem(task, f"has {len(given)} {side}s", f"one {side}: the item of its message")
            elif not same_item(whole.item(given[0]), whole.item(message)):
                whole.problem(
                    task, f"has the {side} {given[0].get('id')!r}, which is another item than its message", "the item of its message"
                )


def _services(whole: Whole) -> None:
    """10.3.3.1: a service takes one input set and gives at most one output set, the items of its operation's messages."""
    for task in whole.within("serviceTask"):
        operation, holder = whole.to(task.attrib.get("operationRef")), _io(task)
        if operation is None or holder is None:
            continue
        sets = {tag: len(list(names.bpmn(holder, tag))) for tag in ("inputSet", "outputSet")}
        if sets["inputSet"] != 1 or sets["outputSet"] > 1:
            what = f"has {sets['inputSet']} input sets and {sets['outputSet']} output sets"
            whole.problem(task, what, "one input set and at most one output set: it has an operation")
        for reference, side in (("inMessageRef", "dataInput"), ("outMessageRef", "dataOutput")):
            message, given = whole.to(next(iter(whole.texts(operation, reference)), None)), _data(task, side)
            if message is not None and given and not same_item(whole.item(given[0]), whole.item(message)):
                what = f"has the {side} {given[0].get('id')!r}, which is another item than the {reference} of its operation"
                whole.problem(task, what, f"the item of {named(message)}")


def _callables(whole: Whole) -> Iterator[Element]:
    yield from whole.processes
    yield from (child for child in names.elements(whole.root) if names.local(child).startswith("global") and "Task" in names.local(child))


def _bindings(whole: Whole) -> None:
    """10.3.4.1 and 10.4.2: what supports an interface binds each of its operations to data of the items of its messages."""
    for callable_ in _callables(whole):
        bindings = {names.reference(each.attrib.get("operationRef")): each for each in names.bpmn(callable_, "ioBinding")}
        supported = [whole.by_id[key] for key in dict.fromkeys(whole.texts(callable_, "supportedInterfaceRef")) if key in whole.by_id]
        for interface in supported:
            for operation in names.bpmn(interface, "operation"):
                if operation.get("id") not in bindings:
                    whole.problem(callable_, f"supports {named(interface)} and does not bind {named(operation)}", "an ioBinding for it")
        for key, binding in bindings.items():
            _binding(whole, callable_, whole.by_id.get(key or ""), binding)


def _binding(whole: Whole, callable_: Element, operation: Element | None, binding: Element) -> None:
    if operation is None:
        return
    for reference, attribute in (("inMessageRef", "inputDataRef"), ("outMessageRef", "outputDataRef")):
        message = whole.to(next(iter(whole.texts(operation, reference)), None))
        data = whole.to(binding.get(attribute))
        if message is not None and data is not None and not same_item(whole.item(data), whole.item(message)):
            what = f"binds {data.get('id')!r} to the {reference} of {named(operation)}, which is another item"
            whole.problem(callable_, what, f"the item of {named(message)}")


def _callable(whole: Whole) -> None:
    """10.3.6 and 13.3.5: a call begins a process at its none start event. Looked at where both lie in one file."""
    for call in whole.within("callActivity"):
        called = whole.to(call.attrib.get("calledElement"))
        starts = [] if called is None else list(names.bpmn(called, "startEvent"))
        if called is not None and starts and all(_has_event(start) for start in starts):
            whole.problem(call, f"calls {named(called)}, which only events start", "a none start event in it")


def _has_event(start: Element) -> bool:
    return any(names.local(child).endswith(("EventDefinition", "eventDefinitionRef")) for child in names.elements(start))


def _calls(whole: Whole) -> None:
    """10.3.4.1: the data of a call activity is that of what it calls. Looked at where both are declared in one file."""
    for call in whole.within("callActivity"):
        called = whole.to(call.attrib.get("calledElement"))
        if called is None or _io(called) is None or _io(call) is None:
            continue
        for tag in ("dataInput", "dataOutput"):
            here, there = _data(call, tag), _data(called, tag)
            fits = len(here) == len(there) and all(same_item(whole.item(a), whole.item(b)) for a, b in zip(here, there, strict=True))
            if not fits:
                whole.problem(call, f"has other {tag}s than {named(called)}", "as many, of the same items, in the same order")


STRICT: tuple[Rule, ...] = (_operations, _messages_of_tasks, _services)
RULES: tuple[Rule, ...] = (_kinds, _bindings, _callable, _calls)
