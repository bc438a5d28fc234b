"""What can go wrong with an expression: while it is read, and while it is evaluated."""

from __future__ import annotations


class ExpressionError(Exception):
    """An expression could not be read or has no value. The message says what was expected and what was found."""


class ExpressionSyntaxError(ExpressionError):
    """The text is not an expression. `position` counts characters from 0 in the whole text."""

    def __init__(self, message: str, *, position: int) -> None:
        super().__init__(f"{message} (character {position + 1})")
        self.position = position


class UnknownCall(ExpressionSyntaxError):
    """It calls what the language does not have, and what is no slip of the pen: a method of another engine's objects, a function."""


class MissingName(ExpressionError):
    """A variable or a key that is not there. Null is not missing."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


class LimitExceeded(ExpressionError):
    """The expression, or a value that it makes, is larger than the language allows."""
