"""A formal expression that is true or false: the condition of a sequence flow (8.3.13) or of an event (10.5.5)."""

from __future__ import annotations

from engine.bpmn import names
from engine.bpmn.context import MAX_NAME, Context, named
from engine.bpmn.names import Element
from engine.expressions import Expression, as_condition

EXAMPLE = "${amount > 1000}"


def condition(owner: Element, given: Element, context: Context) -> Expression | None:
    """What `given`, an expression of `owner`, says; None if it says nothing that could be true or false, which is a problem."""
    context.report_unread(given)
    text = names.text(given).strip()
    language = (given.get("language") or "").strip()
    where = f"the condition of {named(owner)}"
    if not text:
        context.problem(owner, f"{where} is empty", f"an expression such as {EXAMPLE}")
        return None
    if language and not language.lower().rstrip("/").endswith(("juel", "uel", "feel")):
        context.problem(owner, f"{where} is written in {language}", f"an expression such as {EXAMPLE}")
        return None
    feel = language.lower().rstrip("/").endswith("feel") or text.startswith("=")
    expression = context.expression(given, text, where, language="feel" if feel else "juel")
    if expression is not None and (expression.is_template or (expression.is_constant and not isinstance(expression.evaluate({}), bool))):
        example = f"${{{text}}}" if text.isidentifier() and len(text) <= MAX_NAME else EXAMPLE  # perhaps a variable is meant
        context.problem(owner, f"{where} is the text {text[:80]!r}", f"an expression that is true or false, such as {example}")
        return None
    return None if expression is None else as_condition(expression)


def note_language(root: Element) -> None:
    """8.3.6: XPath is what files declare that chose no language, so nothing is to be said about it. Any other is reported as not read."""
    if str(root.attrib.get("expressionLanguage", "")).lower().rstrip("/").endswith(("xpath", "juel", "uel")):
        root.get("expressionLanguage")
