"""What other engines call in Java: a class, a bean, a method of one. Here it is the name of a handler, or an expression of ours.

Decision 0070. Who reads it is `elements/service_task.py`.
"""

from __future__ import annotations

import re

from engine.bpmn import names
from engine.bpmn.context import MAX_NAME, Context, named
from engine.bpmn.definition import ScriptConfig
from engine.bpmn.mappings import inputs, outputs
from engine.bpmn.names import BATON, CAMUNDA_LIKE, Element
from engine.expressions import ExpressionError, parse
from engine.expressions.tree import Call, Node, path_of

BINDINGS = ("class", "delegateExpression", "expression")

_NAME = r"[^\W\d][\w-]*(?:\.[^\W\d][\w-]*)*"
_CLASS = re.compile(r"[^\W\d][\w$]*(?:\.[^\W\d][\w$]*)*")
_BEAN = re.compile(rf"[$#]\{{\s*({_NAME})\s*\}}")
_CALL = re.compile(rf"[$#]\{{\s*({_NAME})\s*\((.*)\)\s*\}}", re.DOTALL)
_SET = re.compile(r"""[$#]\{\s*execution\.setVariable\(\s*(["'])([^"']+)\1\s*,(.*)\)\s*\}""", re.DOTALL)
_OF_THE_ENGINE = frozenset({"execution", "task", "delegateExecution", "delegateTask"})  # objects of other engines, no beans


def is_bound(element: Element) -> bool:
    """Whether the task names something of Java."""
    return any((names.vendor(element, name, baton=False) or "").strip() for name in BINDINGS)


def evaluated(element: Element, context: Context) -> ScriptConfig | None:
    """An `expression` that our language can evaluate, and nothing else. Its value goes into the resultVariable, if there is one."""
    if any((names.vendor(element, name, baton=False) or "").strip() for name in BINDINGS[:2]):
        return None  # an expression beside them is reported as not read
    text = (context.attribute(element, "expression", *CAMUNDA_LIKE) or "").strip()
    set_by_it = _SET.fullmatch(text)
    if set_by_it is not None:  # what it does is what a result variable does
        text = f"${{{set_by_it[3]}}}"
    try:
        expression = parse(text)
    except ExpressionError:
        return None  # `handler` says what it is instead
    if not text or _is_meant_for_a_handler(expression.tree, element, context):
        return None
    variable = (set_by_it[2] if set_by_it is not None else _result_variable(element, context) or "").strip()
    if len(variable) > MAX_NAME:
        context.problem(element, f"{named(element)} has too long a resultVariable", f"a name of at most {MAX_NAME} characters")
    return ScriptConfig(expression, variable, inputs=inputs(element, context), outputs=outputs(element, context))


def _is_meant_for_a_handler(tree: Node, element: Element, context: Context) -> bool:
    """`${shop.add(order)}` could be a bean's or our method: a bean's, if nobody wants the value."""
    return isinstance(tree, Call) and path_of(tree.target) is not None and _result_variable(element, context) is None


def _result_variable(element: Element, context: Context) -> str | None:
    """Activiti called it resultVariableName."""
    given = context.attribute(element, "resultVariable", BATON, *CAMUNDA_LIKE)
    old = context.attribute(element, "resultVariableName", *CAMUNDA_LIKE)
    return old if given is None else given


def handler(element: Element, context: Context) -> str | None:
    """The name of the handler that stands for what the task calls; None, and a problem, where there is none."""
    for binding in BINDINGS:
        if text := (context.attribute(element, binding, *CAMUNDA_LIKE) or "").strip():
            return name_of(binding, text, element, named(element), context)
    return None


def is_name(binding: str, text: str) -> bool:
    """Whether a handler can stand for it: a class, a bean, a method of a bean that is none of the engine's own objects."""
    match binding:
        case "class":
            return _CLASS.fullmatch(text) is not None
        case "delegateExpression":
            return _BEAN.fullmatch(text) is not None
        case _:
            found = _CALL.fullmatch(text)
            return found is not None and found[1].partition(".")[0] not in _OF_THE_ENGINE


def name_of(binding: str, text: str, element: Element, who: str, context: Context) -> str | None:
    """The handler that a class, a bean or a method of one stands for. `who`: as problems call what is bound so."""
    match binding:
        case "class":
            return _of_class(text, element, who, context)
        case "delegateExpression":
            if found := _BEAN.fullmatch(text):
                return found[1]
            context.problem(element, f"{who} has the delegateExpression {text[:80]!r}", "${name}, where name is that of a handler")
            return None
        case _:
            return _of_call(text, element, who, context)


def _of_class(name: str, element: Element, who: str, context: Context) -> str | None:
    if not _CLASS.fullmatch(name):
        context.problem(element, f"{who} has the class {name[:80]!r}", "the name of a class: that of a handler")
        return None
    context.warn(element, f"{who} is bound to the class {name}, which is not run", f"a handler of the name {name!r}")
    return name


def _of_call(text: str, element: Element, who: str, context: Context) -> str | None:
    """`${bean.method(x)}`: the handler `bean.method`. Its arguments are not evaluated: handlers see the variables."""
    found = _CALL.fullmatch(text)
    if found is None:
        context.expression(element, text, f"the expression of {who}")  # which names what is wrong with it
        if not text:
            context.problem(element, f"{who} has an empty expression", "${bean.method()}, or an expression that has a value")
        return None
    name, arguments = found[1], " ".join(found[2].split())
    if name.partition(".")[0] in _OF_THE_ENGINE:
        what = f"{who} calls {name} of another engine"
        context.problem(element, what, "an expression with a resultVariable, or a handler that returns the variables to set")
        return None
    what = f"{who} calls {name}{f' with ({arguments[:80]})' if arguments else ''}, which is not run"
    context.warn(element, what, f"a handler of the name {name!r}, which sees the variables")
    return name
