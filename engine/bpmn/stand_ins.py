"""What stands in for what a model leaves to another engine, or leaves out: a handler, a variable, a message (decision 0075).

Each has the name of its element, is warned about at deployment, and is waited for where people see it. Nothing of the
model's own code is run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.expressions import constant
from engine.expressions import variable as value_of
from engine.expressions.parse import Compiled

if TYPE_CHECKING:
    from engine.bpmn.context import Context
    from engine.bpmn.names import Element


def name_of(element: Element, part: str) -> str:
    """The variable that stands for a part of an element: who a task is for, a field, a parameter, a collection."""
    return f"{element.get('id')}.{part}"


def handler(element: Element, what: str, name: str, context: Context) -> str:
    """The handler `name` does the work. `what`: what is known of the element instead, as a sentence."""
    context.warn(element, what, f"a handler of the name {name!r}: the job waits until a worker has it")
    return name


def variable(element: Element, where: str, why_not: str, name: str, context: Context) -> Compiled:
    """The variable `name` has the value of `where`; an instance that comes there without it has an incident that names it."""
    context.warn(element, f"{where} {why_not}".strip(), f"a variable of the name {name!r}, which is read instead")
    return value_of(name)


def signal(element: Element, what: str, name: str, context: Context) -> Compiled:
    """The signal of that name is thrown."""
    context.warn(element, what, f"a signal of the name {name!r}, which is thrown instead")
    return constant(name)


def message(element: Element, what: str, name: str, context: Context) -> Compiled:
    """The message of that name is meant."""
    context.warn(element, what, f"a message of the name {name!r}, which is read instead")
    return constant(name)
