"""Decision tables read (DMN 1.3, 8.3): clauses, rules, hit policy, aggregation."""

from __future__ import annotations

from engine.bpmn.languages import JUEL
from engine.dmn import names
from engine.dmn.context import Context
from engine.dmn.definition import AGGREGATIONS, ANY_TYPE, HIT_POLICIES, ORDERED, DecisionTable, Input, Output, Rule, Test
from engine.dmn.item_types import type_of
from engine.dmn.language import parsed
from engine.dmn.names import Element, named
from engine.expressions import Expression, ExpressionError


def parse_table(element: Element, context: Context) -> DecisionTable | None:
    """8.3: what it says, with a problem for each thing that it must not."""
    policy = " ".join((element.get("hitPolicy") or "UNIQUE").replace("_", " ").split()).upper()
    if policy not in HIT_POLICIES:
        context.problem(element, f"{named(element)} has the hit policy {policy!r}", f"one of {', '.join(HIT_POLICIES)}")
        return None
    inputs = tuple(_input(clause, context) for clause in names.children(element, "input"))
    outputs = tuple(_output(clause, element, policy, context) for clause in names.children(element, "output"))
    rules = tuple(_rule(rule, number, inputs, outputs, context) for number, rule in enumerate(names.children(element, "rule"), start=1))
    annotations = tuple((column.get("name") or "").strip() for column in names.children(element, "annotation"))
    aggregation = _aggregation(element, policy, outputs, context)
    _check_outputs(element, policy, outputs, context)
    return DecisionTable(policy, inputs, outputs, rules, aggregation, annotations)


def _aggregation(element: Element, policy: str, outputs: tuple[Output, ...], context: Context) -> str | None:
    """8.3.1: only COLLECT aggregates, and then over one output."""
    given = (element.get("aggregation") or "").strip().upper() or None
    if given is None:
        return None
    if given not in AGGREGATIONS:
        context.problem(element, f"{named(element)} has the aggregation {given!r}", f"one of {', '.join(AGGREGATIONS)}")
    elif policy != "COLLECT":
        context.problem(element, f"{named(element)} has the aggregation {given} with the hit policy {policy}", "the hit policy COLLECT")
    elif len(outputs) > 1 and given != "COUNT":
        context.problem(element, f"{named(element)} has the aggregation {given} over {len(outputs)} outputs", "one output")
    return given


def _check_outputs(element: Element, policy: str, outputs: tuple[Output, ...], context: Context) -> None:
    if not outputs:
        context.problem(element, f"{named(element)} has no output", "at least one")
    if len(outputs) > 1:
        given = [output.name for output in outputs]
        if not all(given):
            context.problem(element, f"{named(element)} has several outputs, and one without a name", "a name for each")
        for twice in sorted({name for name in given if name and given.count(name) > 1}):
            context.problem(element, f"{named(element)} has {given.count(twice)} outputs named {twice!r}", "a name of its own for each")
    if policy in ORDERED and not any(output.order is not None for output in outputs):
        context.problem(
            element, f"{named(element)} has the hit policy {policy} and no order of outputs", "outputValues, the most important first"
        )


# ---- clauses


def _input(clause: Element, context: Context) -> Input:
    holder = names.child(clause, "inputExpression")
    label = clause.get("label") or (holder.get("label") if holder is not None else None) or names.text_in(holder)
    allowed = names.child(clause, "inputValues")
    variable = (context.attribute(clause, "inputVariable") or "cellInput").strip()
    return Input(
        clause.get("id") or "",
        " ".join(label.split()),
        context.expression(holder, f"the expression of {named(clause)}"),
        type_of(holder, context) if holder is not None else ANY_TYPE,
        context.tests(allowed, f"the inputValues of {named(clause)}"),
        names.text_in(allowed),
        variable,
    )


def _output(clause: Element, table: Element, policy: str, context: Context) -> Output:
    default = names.child(clause, "defaultOutputEntry")
    holder = names.child(clause, "outputValues")
    text = names.text_in(holder)
    name = (clause.get("name") or "").strip()
    return Output(
        clause.get("id") or "",
        name,
        " ".join((clause.get("label") or name or table.get("outputLabel") or "").split()),
        type_of(clause, context),
        _order(text, context) if policy in ORDERED else None,
        context.tests(holder, f"the outputValues of {named(clause)}"),
        text,
        context.expression(default, f"the default of {named(clause)}"),
    )


def _order(text: str, context: Context) -> Expression | None:
    """8.3.3: the values of an output in the order of their importance. Tests that are no values have none."""
    if not text:
        return None
    try:
        return parsed(f"[{text}]", "feel", context.known)
    except ExpressionError:
        return None


# ---- rules


def _rule(rule: Element, number: int, inputs: tuple[Input, ...], outputs: tuple[Output, ...], context: Context) -> Rule:
    entries = list(names.children(rule, "inputEntry"))
    made = list(names.children(rule, "outputEntry"))
    for found, clauses, what in ((entries, inputs, "input"), (made, outputs, "output")):
        if len(found) != len(clauses):
            what = f"rule {number} has {len(found)} {what} entries, its table {len(clauses)} {what}s"
            context.problem(rule, what, "an entry for each column")
    where = f"of rule {number}"
    tests = tuple(_test(entry, f"input entry {place} {where}", context) for place, entry in enumerate(entries, start=1))
    values = tuple(context.expression(entry, f"output entry {place} {where}") for place, entry in enumerate(made, start=1))
    annotations = [names.text_in(entry) for entry in names.children(rule, "annotationEntry")]
    if (description := names.child(rule, "description")) is not None:  # what was written before annotations had columns
        annotations.append(names.text(description).strip())
    return Rule(number, rule.get("id") or "", tests, values, tuple(annotations), names.line(rule))


def _test(entry: Element, where: str, context: Context) -> Test:
    """Unary tests (FEEL), or an expression of another language that must be true."""
    text = names.text_in(entry)
    if text in ("", "-"):
        return Test(text)
    language = context.language_at(entry)
    if language is None:
        return Test(text)
    if language == JUEL:
        return Test(text, context.expression(entry, where), unary=False)
    return Test(text, context.tests(entry, where))
