"""Who does the work of a task where only the standard's own attributes say it (10.3.3.1): its operation, or `implementation="${name}"`.

Both name a handler, with a warning: decision 0070. `##WebService`, `##unspecified` and technologies say nothing about whom to ask.
"""

from __future__ import annotations

import re

from engine.bpmn import names
from engine.bpmn.context import Context, named
from engine.bpmn.names import Element

_NAME = re.compile(r"[$#]\{\s*([^\W\d][\w-]*(?:\.[^\W\d][\w-]*)*)\s*\}")


def index(root: Element) -> dict[str, Element]:
    """The operations of all interfaces by id."""
    every = (each for interface in names.bpmn(root, "interface") for each in names.bpmn(interface, "operation"))
    return {str(key): each for each in every if (key := each.get("id"))}


def note_technology(element: Element) -> None:
    """`implementation` says how a task is carried out elsewhere: `##WebService`, a URI. Only an expression says by whom."""
    if "${" not in (text := str(element.attrib.get("implementation", ""))) and "#{" not in text:
        element.get("implementation")


def handler(element: Element, context: Context) -> str | None:
    """The name of the handler; None where the task says nothing of the kind."""
    wanted = names.reference(element.get("operationRef"))
    operation = context.operations.get(wanted or "")
    if operation is not None and (name := " ".join((operation.get("name") or "").split())):
        context.warn(
            element, f"{named(element)} has the operation {name!r}, and services are not called", f"a handler of the name {name!r}"
        )
        return name
    if found := _NAME.fullmatch((element.get("implementation") or "").strip()):
        context.warn(
            element, f"{named(element)} has the implementation {found[1]}, which is not run", f"a handler of the name {found[1]!r}"
        )
        return found[1]
    return None
