"""The logic of a decision read (DMN 1.3, 7.3): a decision table, a literal expression, or one of the other boxed expressions."""

from __future__ import annotations

from collections.abc import Iterator

from engine.dmn import names, vocabulary
from engine.dmn.context import Context
from engine.dmn.definition import (
    ANY_TYPE,
    BoxedContext,
    BoxedList,
    Invocation,
    LiteralExpression,
    Logic,
    Relation,
    Type,
)
from engine.dmn.item_types import type_of
from engine.dmn.names import Element, named
from engine.dmn.tables import parse_table

BOXED = ("decisionTable", "literalExpression", "context", "list", "relation", "invocation")
MAX_DEPTH = 30  # of boxed expressions in one another


def logic_in(holder: Element, context: Context, depth: int = 0, *, besides: Element | None = None) -> Logic | None:
    """The one boxed expression in a holder; None, and a problem, where there is none that can be evaluated."""
    found = [child for child in names.elements(holder) if child is not besides and _is_expression(child)]
    if not found:
        context.problem(holder, f"{named(holder)} says nowhere how it is decided", "a decision table or a literal expression")
        return None
    if depth > MAX_DEPTH:
        context.problem(holder, f"{named(holder)} nests expressions too deeply", f"at most {MAX_DEPTH} levels")
        return None
    if len(found) > 1:
        context.problem(found[1], f"{named(holder)} has {len(found)} expressions", "one")
    return _boxed(found[0], context, depth)


def _is_expression(child: Element) -> bool:
    tag = names.tag(child)
    return tag in BOXED or tag == "functionDefinition" or tag in ("conditional", "for", "some", "every", "filter")


def _boxed(element: Element, context: Context, depth: int) -> Logic | None:
    match names.tag(element):
        case "decisionTable":
            return parse_table(element, context)
        case "literalExpression":
            return _literal(element, context)
        case "context":
            return _context(element, context, depth)
        case "list":
            items = [_boxed(child, context, depth + 1) for child in names.elements(element) if _is_expression(child)]
            return BoxedList(tuple(item for item in items if item is not None))
        case "relation":
            return _relation(element, context, depth)
        case "invocation":
            return _invocation(element, context, depth)
        case "functionDefinition":
            context.problem(element, f"{named(element)} is a function as a value", "a business knowledge model, or an expression")
    return None  # the others are named as refused


def _literal(element: Element, context: Context) -> LiteralExpression | None:
    if not names.text_in(element):
        if names.child(element, "importedValues") is None:  # named as refused
            context.problem(element, f"{named(element)} is empty", "an expression")
        return None
    expression = context.expression(element, named(element))
    return None if expression is None else LiteralExpression(expression, type_of(element, context))


def _context(element: Element, context: Context, depth: int) -> BoxedContext:
    entries: list[tuple[str, Type, Logic]] = []
    result: Logic | None = None
    before = context.known
    for entry in names.children(element, "contextEntry"):
        variable = names.child(entry, "variable")
        logic = logic_in(entry, context, depth + 1)
        name = (variable.get("name") or "").strip() if variable is not None else ""
        if result is not None:
            context.problem(entry, f"{named(element)} has an entry behind its result", "the entry without a variable as the last")
        if logic is not None and name:
            entries.append((name, type_of(variable, context), logic))
            context.known |= {name}
        elif logic is not None:
            result = logic
    context.known = before
    return BoxedContext(tuple(entries), result)


def _relation(element: Element, context: Context, depth: int) -> Relation:
    columns = tuple((column.get("name") or "").strip() for column in names.children(element, "column"))
    rows = []
    for number, row in enumerate(names.children(element, "row"), start=1):
        cells = [_boxed(cell, context, depth + 1) for cell in names.elements(row) if _is_expression(cell)]
        if len(cells) != len(columns):
            context.problem(row, f"row {number} of {named(element)} has {len(cells)} cells", f"{len(columns)}, one for each column")
        rows.append(tuple(cell for cell in cells if cell is not None))
    return Relation(columns, tuple(rows))


def _invocation(element: Element, context: Context, depth: int) -> Invocation | None:
    called = names.child(element, "literalExpression")
    name = names.text_in(called)
    bindings = []
    for binding in names.children(element, "binding"):
        parameter = names.child(binding, "parameter")
        logic = logic_in(binding, context, depth + 1)
        key = (parameter.get("name") or "").strip() if parameter is not None else ""
        if not key:
            context.problem(binding, f"a binding of {named(element)} has no parameter", "the name of a parameter")
        if logic is not None:
            bindings.append((key, logic))
    if not name:
        context.problem(element, f"{named(element)} calls nothing", "the name of a business knowledge model")
        return None
    return Invocation(" ".join(name.split()), tuple(bindings))


def parameters_of(function: Element, context: Context) -> Iterator[tuple[str, Type]]:
    """The formal parameters of a function (6.3.9)."""
    for parameter in names.children(function, "formalParameter"):
        name = " ".join((parameter.get("name") or "").split())
        if not name:
            context.problem(parameter, f"a parameter of {named(function)} has no name", "a name")
        yield name, type_of(parameter, context) if parameter.get("typeRef") else ANY_TYPE


def refuse_and_report(root: Element, context: Context) -> None:
    """What of a file is not read is told: elements that are refused, and attributes and extensions that nothing asked for."""
    waiting = [root]
    while waiting:
        element = waiting.pop()
        tag = names.tag(element)
        if tag in vocabulary.REFUSED:
            context.problem(element, f"{named(element)} is not supported", vocabulary.REFUSED[tag])
            continue
        known = vocabulary.ATTRIBUTES.get(tag)
        if names.namespace(element) in names.TOOLS or context.was_read(element):
            continue
        if known is None:
            _unknown(element, context)
            continue
        for key in map(str, element.attrib):
            space = names.split(key)[0]
            foreign = space and space not in names.TOOLS and not context.was_read(element, key)
            if foreign or (not space and key not in known):
                context.warn(
                    element,
                    f"the attribute {names.shown(key)} of {named(element)} is not read",
                    "nothing of it: the decision is made as if it were not there",
                )
        if tag not in vocabulary.DESCRIBED:
            waiting += reversed(list(names.elements(element)))


def _unknown(element: Element, context: Context) -> None:
    """An extension is told; an element of DMN that is none is refused."""
    if names.namespace(element) in names.DMN:
        context.problem(element, f"{named(element)} is not an element of DMN 1.3", "an element that docs/decision-tables.md names")
    else:
        context.warn(
            element,
            f"the extension element {names.shown(str(element.tag))} is not read",
            "nothing of it: the decision is made as if it were not there",
        )
