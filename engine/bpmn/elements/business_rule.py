"""Tasks that call a decision (BPMN 2.0.2, 10.3.3.4), as other engines write it: which one, which version, what of its outcome is kept."""

from __future__ import annotations

from engine.bpmn import names
from engine.bpmn.context import MAX_NAME, Context, named
from engine.bpmn.definition import DecisionConfig
from engine.bpmn.fields import fields
from engine.bpmn.mappings import inputs, outputs
from engine.bpmn.names import CAMUNDA_LIKE, ZEEBE, Element
from engine.bpmn.parts import BINDINGS
from engine.expressions import Expression

MAPPERS = ("singleEntry", "singleResult", "collectEntries", "resultList")
FLOWABLE = {"decisionTableReferenceKey", "decisionServiceReferenceKey", "decisionTaskThrowErrorOnNoHits", "fallbackToDefaultTenant"}


def calls_decision(element: Element, context: Context) -> bool:
    """Whether the task names a decision, rightly or not."""
    return names.vendor(element, "decisionRef") is not None or context.extension(element, "calledDecision", ZEEBE) is not None


def parse(element: Element, context: Context) -> DecisionConfig | None:
    """`camunda:decisionRef` and its companions, or `zeebe:calledDecision`."""
    called = context.extension(element, "calledDecision", ZEEBE)
    if context.attribute(element, "decisionRef") is None and called is not None:
        return _of_zeebe(element, called, context)
    return _of_camunda(element, context)


def _of_camunda(element: Element, context: Context) -> DecisionConfig | None:
    mapper = (context.attribute(element, "mapDecisionResult") or "resultList").strip()
    if mapper not in MAPPERS:
        context.problem(element, f"{named(element)} has the mapDecisionResult {mapper!r}", f"one of {', '.join(MAPPERS)}")
    if tenant := (context.attribute(element, "decisionRefTenantId") or "").strip():
        context.problem(
            element, f"{named(element)} calls a decision of the tenant {tenant!r}", "one of its own tenant, without decisionRefTenantId"
        )
    version = context.expression(element, context.attribute(element, "decisionRefVersion"), f"the version of {named(element)}")
    tag = context.expression(element, context.attribute(element, "decisionRefVersionTag"), f"the version tag of {named(element)}")
    return _config(
        element,
        context,
        context.expression(element, context.attribute(element, "decisionRef"), f"the decision of {named(element)}"),
        (context.attribute(element, "decisionRefBinding") or "latest").strip(),
        version,
        tag,
        mapper,
        context.attribute(element, "resultVariable"),
    )


def _of_zeebe(element: Element, called: Element, context: Context) -> DecisionConfig | None:
    decision = context.zeebe(element, called.get("decisionId"), f"the decision of {named(element)}")
    tag = context.zeebe(element, called.get("versionTag"), f"the version tag of {named(element)}")
    variable = (called.get("resultVariable") or "").strip()
    if not variable:
        context.problem(element, f"{named(element)} has no resultVariable", "the name of the variable that takes the outcome")
    binding = (called.get("bindingType") or "latest").strip()
    return _config(element, context, decision, binding, None, tag, "value", variable, keeps=not outputs(element, context))


def _config(
    element: Element,
    context: Context,
    decision: Expression | None,
    binding: str,
    version: Expression | None,
    tag: Expression | None,
    mapper: str,
    variable: str | None,
    *,
    keeps: bool = True,
) -> DecisionConfig | None:
    if binding not in BINDINGS:
        context.problem(element, f"{named(element)} has the binding {binding!r}", f"one of {', '.join(BINDINGS)}")
    if binding == "version" and version is None:
        context.problem(element, f"{named(element)} is bound to a version and names none", "decisionRefVersion")
    if binding == "versionTag" and tag is None:
        context.problem(element, f"{named(element)} is bound to a version tag and names none", "the version tag")
    if decision is None:
        context.problem(element, f"{named(element)} names no decision", "the id of a decision")
        return None
    variable = (variable or "").strip()
    if len(variable) > MAX_NAME:
        context.problem(element, f"{named(element)} has too long a resultVariable", f"a name of at most {MAX_NAME} characters")
    kind = BINDINGS.get(binding, "latest")
    return DecisionConfig(
        decision,
        kind,
        version if kind == "version" else None,
        tag if kind == "tag" else None,
        mapper,
        variable,
        inputs(element, context),
        outputs(element, context),
        keeps,
    )


# ---- Flowable: a service task of the type dmn


def is_flowable(element: Element) -> bool:
    """Whether a service task calls a decision in Flowable's way."""
    return (names.vendor(element, "type", baton=False) or "").strip() == "dmn"


def parse_flowable(element: Element, context: Context) -> DecisionConfig | None:
    """Its fields say which decision; each output becomes a variable, several rows a list under the decision's key."""
    context.attribute(element, "type", *CAMUNDA_LIKE)
    given = dict(fields(element, context))
    for unknown in sorted(set(given) - FLOWABLE):
        context.problem(element, f"{named(element)} has the field {unknown!r}", f"one of {', '.join(sorted(FLOWABLE))}")
    throws = given.get("decisionTaskThrowErrorOnNoHits")
    if throws is not None and not (throws.is_constant and str(throws.evaluate({})).strip().lower() == "false"):
        context.problem(element, f"{named(element)} throws an error where no rule matches", "a gateway behind it that asks for the result")
    decision = given.get("decisionTableReferenceKey") or given.get("decisionServiceReferenceKey")
    rows = str(decision.evaluate({})) if decision is not None and decision.is_constant else "decision"
    return _config(element, context, decision, "latest", None, None, "variables", rows)
