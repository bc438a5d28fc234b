"""`parse(text)`: one expression, text with expressions in it, or plain text -> a compiled expression."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.expressions import limits
from engine.expressions.compile import Closure, compile_tree
from engine.expressions.errors import ExpressionError, LimitExceeded
from engine.expressions.feel.free import names_in, refuse_unknown_functions
from engine.expressions.feel.parser import parse_feel
from engine.expressions.feel.parser import parse_unary_tests as tests_of_feel
from engine.expressions.feel.scope import FeelScope
from engine.expressions.juel import parse_expression
from engine.expressions.tree import AsCondition, AsVariable, Feel, ListOf, Literal, Name, Node, ObjectOf, Template
from engine.expressions.values import Scope

_OPENING = re.compile(r"\\(?=[$#]\{)|[$#]\{")


@dataclass(frozen=True, slots=True)
class Compiled:
    """The `Expression` that `parse` makes. Equal texts of one language are equal expressions."""

    text: str
    tree: Node
    closure: Closure = field(repr=False, compare=False)
    opened: Callable[[Mapping[str, Any]], Scope] = field(repr=False, compare=False)  # the scope that the closure evaluates in

    @property
    def is_constant(self) -> bool:
        body = self.tree
        while isinstance(body, (Feel, AsVariable, AsCondition)):
            body = body.body
        return isinstance(body, Literal)

    @property
    def is_template(self) -> bool:
        return isinstance(self.tree, Template)

    @property
    def names(self) -> frozenset[str]:
        return names_in(self.tree)

    def evaluate(self, variables: Mapping[str, Any]) -> Any:
        """The value over native values. Raises ExpressionError, never anything else."""
        return self._in(self.opened(variables))

    def measured(self, variables: Mapping[str, Any], steps: int) -> tuple[Any, int]:
        """The value, and how many steps it took: for somebody who limits those of several expressions together."""
        scope = self.opened(variables)
        scope.steps = granted = min(scope.steps, steps)
        return self._in(scope), granted - scope.steps

    def _in(self, scope: Scope) -> Any:
        try:
            return self.closure(scope)
        except RecursionError as error:
            raise LimitExceeded("expected a value that fits the stack, found deeper nesting") from error


def parse(text: str, *, language: str = "juel", names: Iterable[str] = ()) -> Compiled:
    """The expression that `text` is. Raises ExpressionError.

    `${…}` or `#{…}` alone keeps the kind of its value; within a text it makes a string; plain text is itself.
    `language="feel"`: an expression of FEEL, behind `=` or not; `names` are variables that it may mean with spaces or signs in them.
    """
    if len(text) > limits.SOURCE_LENGTH:
        raise LimitExceeded(f"expected an expression of at most {limits.SOURCE_LENGTH} characters, found {len(text)}")
    match language:
        case "juel":
            tree = _template(text)
        case "feel":
            tree = Feel(parse_feel(_without_sign(text), names))
        case _:
            raise ExpressionError(f"expected the expression language juel or feel, found {language}")
    return _compiled(text, tree)


def parse_unary_tests(text: str, *, names: Iterable[str] = ()) -> Compiled:
    """What a cell of a decision table says about its input, the variable `?`: true, false, or null. Raises ExpressionError."""
    tree = Feel(tests_of_feel(text, names))
    return _compiled(text, tree)


def as_variable(expression: Compiled) -> Compiled:
    """An expression of FEEL whose value a variable of a process takes; of another language, itself. Raises ExpressionError."""
    refuse_unknown_functions(expression.tree)
    return _used(expression, AsVariable)


def as_condition(expression: Compiled) -> Compiled:
    """An expression of FEEL that must be true or false, and says what was missing if it is neither; of another language, itself."""
    return _used(expression, AsCondition)


def _used(expression: Compiled, how: type[AsVariable] | type[AsCondition]) -> Compiled:
    body = expression.tree.body if isinstance(expression.tree, (AsVariable, AsCondition)) else expression.tree
    if not isinstance(body, Feel):
        return expression
    tree = how(body)
    return _compiled(expression.text, tree)


def _without_sign(text: str) -> str:
    """The text without the = that marks it as FEEL. Its place stays, so that errors count from the beginning."""
    return text.replace("=", " ", 1) if text.lstrip().startswith("=") else text


def constant(value: Any) -> Compiled:
    """A value as an expression: a string, number, boolean or null."""
    tree = Literal(value)
    return _compiled(str(value), tree)


def variable(name: str) -> Compiled:
    """The value of a variable, whatever signs its name has."""
    tree = Name(name)
    return _compiled(f"${{`{name}`}}", tree)


def compose_list(items: Sequence[Compiled]) -> Compiled:
    """The expressions as one that makes a list."""
    tree = ListOf(tuple(item.tree for item in items))
    return _compiled(f"[{', '.join(item.text for item in items)}]", tree)


def compose_object(entries: Mapping[str, Compiled]) -> Compiled:
    """The expressions as one that makes an object."""
    tree = ObjectOf(tuple((key, value.tree) for key, value in entries.items()))
    return _compiled(f"{{{', '.join(f'{key}: {value.text}' for key, value in entries.items())}}}", tree)


def _compiled(text: str, tree: Node) -> Compiled:
    framed = isinstance(tree, (AsVariable, AsCondition)) or (isinstance(tree, Feel) and not isinstance(tree.body, Name))
    opened = FeelScope.outermost if framed else Scope
    return Compiled(text, tree, compile_tree(tree), opened)


def _template(text: str) -> Node:
    """White space around a single expression does not make it a template."""
    parts: list[Node] = []
    expressions = 0
    plain = ""
    at = 0
    while opening := _OPENING.search(text, at):
        plain += text[at : opening.start()]
        if opening[0] == "\\":  # \${ is the text ${
            plain += text[opening.end() : opening.end() + 2]
            at = opening.end() + 2
            continue
        node, at = parse_expression(text, opening.end(), embedded=True)
        parts += [Literal(plain), node] if plain else [node]
        expressions += 1
        plain = ""
    plain += text[at:]
    if not expressions:
        return Literal(plain)
    surrounding = [part for part in (parts[0], Literal(plain)) if part is not parts[-1]]
    if expressions == 1 and all(isinstance(part, Literal) and not part.value.strip() for part in surrounding):
        return parts[-1]
    return Template((*parts, Literal(plain)) if plain else tuple(parts))
