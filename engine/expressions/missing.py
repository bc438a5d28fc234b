"""A variable that is not there, told with what may have been meant."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from itertools import islice
from typing import Any
from unicodedata import normalize

from engine.expressions.errors import MissingName


def missing_variable(name: str, known: Mapping[str, Any]) -> MissingName:
    return MissingName(name, f"expected a variable {name[:100]!r}, found none{_near(name, known)}")


def _near(name: str, known: Mapping[str, Any]) -> str:
    names = [each for each in islice(known, 1000) if isinstance(each, str)]
    if longer := sorted(each for each in names if each.startswith((f"{name}.", f"{name}-", f"{name} "))):
        return f"; there is one called {longer[0]!r}, which is written `{longer[0]}` in backticks"
    if same := next((each for each in names if normalize("NFC", each) == normalize("NFC", name)), None):
        return f"; there is one of the same letters that is written with other code points: {same[:100]!a}"
    # Comparing is quadratic in the length: what a person mistyped is short, and about as long.
    alike = [each for each in names if abs(len(each) - len(name)) <= 3 and len(each) <= 50][:200]
    if near := get_close_matches(name[:50], alike, n=1):
        return f"; there is one called {near[0]!r}"
    return ""
