"""Expressions of models: one abstract syntax tree, compiled to closures. User data is never evaluated.

docs/expressions.md states the language.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from engine.expressions.errors import ExpressionError, ExpressionSyntaxError, LimitExceeded, MissingName, UnknownCall
from engine.expressions.parse import as_condition, as_variable, compose_list, compose_object, constant, parse, parse_unary_tests, variable

__all__ = [
    "Expression",
    "ExpressionError",
    "ExpressionSyntaxError",
    "LimitExceeded",
    "MissingName",
    "UnknownCall",
    "as_condition",
    "as_variable",
    "compose_list",
    "compose_object",
    "constant",
    "parse",
    "parse_unary_tests",
    "variable",
]


class Expression(Protocol):
    """A compiled expression. `text` is as the author wrote it."""

    @property
    def text(self) -> str: ...

    @property
    def is_constant(self) -> bool:
        """Whether it is plain text, with the same value always."""
        ...

    @property
    def is_template(self) -> bool:
        """Whether it is text with expressions in it, and hence always a string."""
        ...

    @property
    def names(self) -> frozenset[str]:
        """The variables that it may ask for."""
        ...

    def evaluate(self, variables: Mapping[str, Any]) -> Any:
        """The value over native values (engine.core.values). Raises ExpressionError, never anything else."""
        ...

    def measured(self, variables: Mapping[str, Any], steps: int) -> tuple[Any, int]:
        """The value, and how many steps it took, at most those given: who limits those of several expressions asks so."""
        ...
