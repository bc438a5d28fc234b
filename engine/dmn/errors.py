"""Why a decision has no outcome."""

from __future__ import annotations


class DecisionError(Exception):
    """A decision that cannot be evaluated. `kind`: hit_policy | type | expression. The message says what was expected, found, where."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
