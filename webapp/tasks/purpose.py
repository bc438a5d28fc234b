"""What a step is for, in its author's words: the documentation of its element, with the values of the case in it."""

from __future__ import annotations

from collections.abc import Mapping

from engine.core.values import Variable, native
from engine.expressions import ExpressionError, parse


def purpose(documentation: str, variables: Mapping[str, Variable]) -> str:
    """The text with its `${…}` evaluated, as Camunda 7 and Flowable describe tasks; as it was written where one of them cannot be."""
    if "${" not in documentation and "#{" not in documentation:
        return documentation
    try:
        told = parse(f".{documentation}")  # with the dot it is a text, also where it is one expression
        return str(told.evaluate({name: native(variables[name]) for name in told.names if name in variables}))[1:]
    except ExpressionError:
        return documentation  # words for people: nothing of the case depends on them
