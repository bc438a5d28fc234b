"""The two languages of a decision's expressions: FEEL, and JUEL where a model says so or its text shows it."""

from __future__ import annotations

import re

from engine.bpmn.languages import FEEL, JUEL, named_language
from engine.expressions import Expression, parse, parse_unary_tests

_SHOWN = re.compile(r"\s*[$#]\{.*\}\s*", re.DOTALL)  # no FEEL begins so


def language_of(given: str | None, text: str) -> str | None:
    """feel or juel; None for any other language that is given."""
    if not given:
        return JUEL if _SHOWN.fullmatch(text) else FEEL
    return named_language(given)


def parsed(text: str, language: str, known: frozenset[str] = frozenset()) -> Expression:
    """An expression. Raises ExpressionError. `known`: names of FEEL that may have blanks in them."""
    return parse(text, language=language, names=known)


def parsed_tests(text: str, language: str, known: frozenset[str] = frozenset()) -> Expression:
    """Unary tests, which see the value as `?`. Raises ExpressionError."""
    return parse_unary_tests(text, names=known)
