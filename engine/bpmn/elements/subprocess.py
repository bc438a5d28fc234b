"""Embedded and event subprocesses (BPMN 2.0.2, 10.3.5, 13.3.4 and 13.5.4). Their flow elements are read by the reader."""

from __future__ import annotations

from engine.bpmn import names
from engine.bpmn.context import Context, named
from engine.bpmn.definition import SubprocessConfig
from engine.bpmn.mappings import inputs, refuse_outputs
from engine.bpmn.names import Element
from engine.bpmn.support import Supported, register


def register_all() -> None:
    supported = Supported("subprocess", "activity", parse, conditional=True, container=True, by_event="event_subprocess")
    register("subProcess", supported)


def parse(element: Element, context: Context) -> SubprocessConfig:
    refuse_outputs(element, context)
    given = inputs(element, context)
    if given and names.flag(element.get("triggeredByEvent"), default=False):
        what = f"{named(element)} is an event subprocess and has input parameters"
        context.problem(element, what, "none: it sees the variables of the scope around it, and what came with its event")
    return SubprocessConfig(inputs=given)
