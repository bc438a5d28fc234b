"""The two languages of a decision's expressions: FEEL, and JUEL where a model says so or its text shows it."""

from __future__ import annotations

import re

from engine.expressions import Expression, parse, parse_unary_tests

_FEEL = re.compile(r"(?i)feel|https?://www\.omg\.org/spec/(FEEL/\d+|DMN/\d+/FEEL)/?")
_JUEL = frozenset({"juel", "uel", "el"})
_SHOWN = re.compile(r"\s*[$#]\{.*\}\s*", re.DOTALL)  # no FEEL begins so


def language_of(given: str | None, text: str) -> str | None:
    """feel or juel; None for any other language that is given."""
    if not given:
        return "juel" if _SHOWN.fullmatch(text) else "feel"
    if _FEEL.fullmatch(given):
        return "feel"
    return "juel" if given.lower() in _JUEL else None


def parsed(text: str, language: str, known: frozenset[str] = frozenset()) -> Expression:
    """An expression. Raises ExpressionError. `known`: names of FEEL that may have blanks in them."""
    return parse(text, language="juel") if language == "juel" else parse(text, language="feel", names=known)


def parsed_tests(text: str, language: str, known: frozenset[str] = frozenset()) -> Expression:
    """Unary tests, which see the value as `?`. Raises ExpressionError."""
    return parse_unary_tests(text, names=known)
