"""Embedded, event and ad hoc subprocesses, transactions (10.3.5, 13.3.4, 13.3.5, 13.5.4). What they hold is read by the reader."""

from __future__ import annotations

from engine.bpmn import names
from engine.bpmn.conditions import condition
from engine.bpmn.context import Context, named
from engine.bpmn.definition import AdHocConfig, SubprocessConfig
from engine.bpmn.mappings import inputs, outputs
from engine.bpmn.names import BATON, ZEEBE, Element
from engine.bpmn.support import Supported, register
from engine.expressions import Expression


def register_all() -> None:
    supported = Supported("subprocess", "activity", parse, conditional=True, container=True, by_event="event_subprocess")
    register("subProcess", supported)
    row = Supported(
        "ad_hoc_subprocess", "activity", parse_ad_hoc, conditional=True, container=True, children=frozenset({"completionCondition"})
    )
    register("adHocSubProcess", row)
    register("transaction", Supported("transaction", "activity", parse_transaction, conditional=True, container=True))


def parse(element: Element, context: Context) -> SubprocessConfig:
    given, taken = inputs(element, context), outputs(element, context)
    if (given or taken) and names.flag(element.get("triggeredByEvent"), default=False):
        what = f"{named(element)} is an event subprocess and has {'input' if given else 'output'} parameters"
        context.problem(element, what, "none: it sees the variables of the scope around it, and what came with its event")
    return SubprocessConfig(inputs=given, outputs=taken)


def parse_ad_hoc(element: Element, context: Context) -> AdHocConfig:
    """10.3.5 and 13.3.5. `zeebe:adHoc activeElementsCollection`, or `baton:activities`, names the activities to run."""
    if names.flag(element.get("triggeredByEvent"), default=False):
        context.problem(element, f"{named(element)} is triggered by an event", "triggeredByEvent false: no event begins it (10.3.5)")
    ordering = element.get("ordering", "Parallel")
    if ordering not in ("Parallel", "Sequential"):
        context.problem(element, f"{named(element)} has the ordering {ordering!r}", "Parallel or Sequential")
    given = next(names.bpmn(element, "completionCondition"), None)
    return AdHocConfig(
        sequential=ordering == "Sequential",
        until=condition(element, given, context) if given is not None else None,
        cancel_remaining=names.flag(element.get("cancelRemainingInstances"), default=True),
        activities=_activities(element, context),
        inputs=inputs(element, context),
        outputs=outputs(element, context),
    )


def _activities(element: Element, context: Context) -> Expression | None:
    zeebe = context.extension(element, "adHoc", ZEEBE)
    if zeebe is not None and zeebe.get("activeElementsCollection"):
        return context.zeebe(element, zeebe.get("activeElementsCollection"), f"the activeElementsCollection of {named(element)}")
    return context.expression(element, context.attribute(element, "activities", BATON), f"the activities of {named(element)}")


def parse_transaction(element: Element, context: Context) -> SubprocessConfig:
    """10.3.5. Of the methods only compensation is there: nothing takes an image of what was before, or stores it."""
    method = (element.get("method") or "##Compensate").strip()
    if method.lower().lstrip("#") != "compensate":
        context.problem(element, f"{named(element)} has the method {method!r}", "method ##Compensate, or nothing")
    if protocol := (element.get("protocol") or "").strip():
        context.warn(
            element, f"the protocol {protocol!r} of {named(element)} is not read", "the engine alone takes part in its transactions"
        )
    if names.flag(element.get("triggeredByEvent"), default=False):
        context.problem(element, f"{named(element)} is triggered by an event", "triggeredByEvent false: a flow leads to a transaction")
    return parse(element, context)
