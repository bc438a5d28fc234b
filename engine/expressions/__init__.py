"""Expressions of models: one abstract syntax tree, compiled to closures. User data is never evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class ExpressionError(Exception):
    """An expression that cannot be read or has no value here. The text says what was expected and found."""


class Expression(Protocol):
    """A compiled expression. `text` is as the author wrote it."""

    text: str

    def evaluate(self, variables: Mapping[str, Any]) -> Any:
        """The value over native values (engine.core.values). Raises ExpressionError, never anything else."""
        ...
