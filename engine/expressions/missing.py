"""A variable that is not there, told with what may have been meant."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from engine.expressions.errors import MissingName


def missing_variable(name: str, known: Mapping[str, Any]) -> MissingName:
    return MissingName(name, f"expected a variable {name!r}, found none{_near(name, known)}")


def _near(name: str, known: Mapping[str, Any]) -> str:
    names = [each for each in list(known)[:1000] if isinstance(each, str)]
    if longer := sorted(each for each in names if each.startswith((f"{name}.", f"{name}-", f"{name} "))):
        return f"; there is one called {longer[0]!r}, which is written `{longer[0]}` in backticks"
    if near := get_close_matches(name[:100], [each[:100] for each in names], n=1):
        return f"; there is one called {near[0]!r}"
    return ""
