"""Embedded subprocess (BPMN 2.0.2, 10.3.5 and 13.3.4). Its flow elements are read by the reader."""

from __future__ import annotations

from engine.bpmn import names
from engine.bpmn.context import Context, named
from engine.bpmn.definition import SubprocessConfig
from engine.bpmn.mappings import inputs, refuse_outputs
from engine.bpmn.names import Element
from engine.bpmn.support import Supported, register


def register_all() -> None:
    register("subProcess", Supported("subprocess", "activity", parse, conditional=True, container=True))


def parse(element: Element, context: Context) -> SubprocessConfig:
    if names.flag(element.get("triggeredByEvent"), default=False):
        why = "an embedded subprocess; event subprocesses are not supported yet"
        context.problem(element, f"{named(element)} is an event subprocess", why)
    refuse_outputs(element, context)
    return SubprocessConfig(inputs=inputs(element, context))
