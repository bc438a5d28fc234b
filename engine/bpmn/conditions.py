"""A formal expression that is true or false: the condition of a sequence flow (8.3.13) or of an event (10.5.5).

One that is written for another engine, or for people, is the variable of its owner's id, or the one that it names: decision 0075.
"""

from __future__ import annotations

from engine.bpmn import names, stand_ins
from engine.bpmn.context import MAX_NAME, Context, named
from engine.bpmn.languages import FEEL, JUEL, is_known, language_of, named_language
from engine.bpmn.names import Element
from engine.expressions import Expression, as_condition, constant

EXAMPLE = "${amount > 1000}"
SHOWN = 80  # characters of a condition that is not read


def condition(owner: Element, given: Element, context: Context) -> Expression | None:
    """What `given`, an expression of `owner`, says; None if it says nothing that could be true or false, which is a problem."""
    context.report_unread(given)
    text = names.text(given).strip()
    where = f"the condition of {named(owner)}"
    if not text:
        context.problem(owner, f"{where} is empty", f"an expression such as {EXAMPLE}")
        return None
    key = owner.get("id")
    language = language_of(given, text, file_is_feel=context.feel)
    if language not in (FEEL, JUEL):
        return _other(owner, where, f"is written in {language[:SHOWN]}, which is not run", key, context)
    expression = context.expression(given, text, where, language=language, instead=key)
    if expression is None or _may_be_true_or_false(expression):
        return None if expression is None else as_condition(expression)
    if text.lower() in ("true", "false"):
        return constant(text.lower() == "true")
    if language == FEEL or "${" in text or "#{" in text:
        context.problem(owner, f"{where} is the text {text[:SHOWN]!r}", f"an expression that is true or false, such as {EXAMPLE}")
        return None
    meant = text if text.isidentifier() and len(text) <= MAX_NAME else key
    return _other(owner, where, f"is the text {text[:SHOWN]!r}", meant, context)


def _may_be_true_or_false(expression: Expression) -> bool:
    return not expression.is_template and (not expression.is_constant or isinstance(expression.evaluate({}), bool))


def _other(owner: Element, where: str, why_not: str, name: str | None, context: Context) -> Expression | None:
    if name is None:
        context.problem(owner, f"{where} {why_not}", f"an expression such as {EXAMPLE}")
        return None
    return stand_ins.variable(owner, where, why_not, name, context)


def note_language(root: Element, context: Context) -> None:
    """8.3.6: XPath is what files declare that chose no language, so nothing is to be said about it. What is not read is reported."""
    given = str(root.attrib.get("expressionLanguage", ""))
    context.feel = named_language(given) == FEEL
    if is_known(given):
        root.get("expressionLanguage")
