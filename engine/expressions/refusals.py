"""What an expression may not name or call, and what may be meant instead."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from engine.expressions.errors import ExpressionSyntaxError, UnknownCall
from engine.expressions.methods import METHODS, counts
from engine.expressions.provided import EXECUTION, FUNCTIONS
from engine.expressions.tree import Node, path_of

_FUNCTIONS = {
    "currentUser": "nobody is signed in where a model runs; the person who started the case is the variable initiator",
    "currentUserGroups": "nobody is signed in where a model runs",
    "XML": "XML is not read; a handler may read it",
}
_METHODS = {
    "matches": "regular expressions are not run; there are contains(), startsWith() and endsWith()",
    "replaceAll": "regular expressions are not run; replace() replaces every occurrence of a text",
    "replaceFirst": "regular expressions are not run; replace() replaces every occurrence of a text",
    "jsonPath": "JSON has keys and indexes here: order.lines[0].sku",
    "xPath": "XML is not read; a handler may read it",
    "stream": "what computes over every item of a list is a handler, or FEEL",
    "forEach": "what computes over every item of a list is a handler, or FEEL",
}
_WRITING = ("setVariable", "setVariableLocal", "removeVariable", "put", "remove", "clear", "set", "putAll", "addAll", "removeAll")


def unknown_function(name: str, position: int) -> ExpressionSyntaxError:
    """`name(…)` without a dot before it."""
    meant = _meant(f"{name}()", (f"{each}()" for each in FUNCTIONS))
    why = _FUNCTIONS.get(name) or meant
    kind = ExpressionSyntaxError if meant else UnknownCall
    return kind(f"expected a variable, found a call of {name[:100]}(){why and f': {why}'}", position=position)


def unknown_method(target: Node, name: str, position: int, *, given: int | None) -> ExpressionSyntaxError:
    """`target.name(…)` with so many arguments, None for any: one that nearly is a method which takes as many is a slip of the pen."""
    near = _near(name, given)
    why = _METHODS.get(name) or _why(target, name, near)
    kind = ExpressionSyntaxError if near else UnknownCall
    return kind(f"expected a method that an expression may call, found {name[:100]}(){why and f': {why}'}", position=position)


def _why(target: Node, name: str, near: str) -> str:
    if name in _WRITING:
        return "an expression changes nothing; a result variable or an output mapping does"
    hints = [near]
    getter = next((each for each in ("get", "is") if name.startswith(each) and name[len(each) :][:1].isupper()), None)
    path = path_of(target)
    if getter is not None and not hints[0]:
        key = name[len(getter)].lower() + name[len(getter) + 1 :]
        hints.append(f"a key of an object is read by .{key[:100]}")
    if path is not None:
        hints.append(f"{path[:100]} is a variable here, never a bean; what a bean does, a handler does in a task before")
    return "; ".join(filter(None, hints)) or "docs/expressions.md lists them"


def _near(name: str, given: int | None) -> str:
    fitting = (each for each in sorted(METHODS) if given is None or counts(each)[0] <= given <= counts(each)[1])
    return _meant(f"{name}()", (f"{each}()" for each in fitting))


def execution_alone(position: int) -> ExpressionSyntaxError:
    return UnknownCall(
        "expected a value, found the execution, an object of other engines; there are "
        f"{', '.join(f'execution.{each}' for each in EXECUTION)}; a variable of that name is written `execution` in backticks",
        position=position,
    )


def unknown_of_execution(name: str, position: int) -> ExpressionSyntaxError:
    """`execution.name`."""
    meant = _meant(name, EXECUTION)
    why = meant or f"there are {', '.join(EXECUTION)}, getVariable('x') and hasVariable('x')"
    kind = ExpressionSyntaxError if meant else UnknownCall
    return kind(f"expected what an expression may know of the execution, found {name[:100]}; {why}", position=position)


def no_variable_name(method: str, position: int) -> ExpressionSyntaxError:
    return ExpressionSyntaxError(f"expected the name of a variable in quotes with {method}()", position=position)


def _meant(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name[:100], list(known), n=1, cutoff=0.8)
    return f"is {near[0]} meant?" if near else ""
