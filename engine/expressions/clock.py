"""The time of an evaluation: whoever evaluates gives it, in every language the same way; never the machine's (R11)."""

from __future__ import annotations

from datetime import datetime

from engine.expressions.errors import ExpressionError
from engine.expressions.values import Scope

# Under this name the variables of an expression hold the time of its evaluation. No variable can be called so (engine.core.values).
CLOCK = "`now`"


def time_of(scope: Scope) -> datetime:
    found = scope.variables.get(CLOCK)
    if not isinstance(found, datetime):
        raise ExpressionError("expected the time from whoever evaluates now(), today() or dateTime(), found none: they cannot be used here")
    return found
