"""What Baton refuses, as exceptions. Each carries the problem document of the answer (RFC 9457), field by field."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any


class BatonError(Exception):
    """Anything that keeps a call from being answered as it was meant."""


class Unreachable(BatonError):
    """No answer came, or only that the server is busy or away, however often it was asked. `__cause__` says more.

    A change may have been done all the same: asked again with the same `key`, it is done once.
    """


class Refused(BatonError):
    """The server answered, and did nothing. `reason` is the machine-readable word, `problems` one entry for each thing that is wrong.

    `by`, `by_name` and `at`: who was first, and when, where that may be told.
    """

    def __init__(self, status: int, document: Mapping[str, Any]) -> None:
        self.status = status
        self.reason = str(document.get("reason") or "")
        self.detail = str(document.get("detail") or "")
        self.by: str | None = document.get("by")
        self.by_name: str | None = document.get("by_name")
        self.at = datetime.fromisoformat(document["at"]) if document.get("at") else None
        self.problems: list[dict[str, Any]] = list(document.get("problems") or [])
        super().__init__(f"{status} {self.reason or 'refused'}: {self.detail}" if self.detail else f"{status} {self.reason or 'refused'}")


class NotSignedIn(Refused):
    """401: the key is missing, wrong, expired or revoked."""


class NotAllowed(Refused):
    """403: the key, or whoever it is of, may not do this."""


class NotFound(Refused):
    """404: not there, or not to be seen with this key; the two are never told apart."""


class Conflict(Refused):
    """409: the world moved on: `reason` says how (`already_claimed`, `instance_ended`, …), `by` and `at` who and when."""


class LeaseLost(Conflict):
    """409 `lease_lost`: the task was taken back, has ended, or is somebody else's by now. What was sent changed nothing."""


class Invalid(Refused):
    """422 and the like: `problems` names each field that is wrong, and what was expected."""


class BpmnError(Exception):
    """Raise it in a task's function: an error that the model knows. A boundary event with this code catches it, else it is an incident."""

    def __init__(self, code: str, message: str = "", variables: Mapping[str, Any] | None = None) -> None:
        super().__init__(f"{code}: {message}" if message else code)
        self.code, self.message, self.variables = code, message, dict(variables or {})


class RetryLater(Exception):
    """Raise it in a task's function: this attempt failed, and the next one comes in so many seconds."""

    def __init__(self, seconds: float, message: str = "") -> None:
        super().__init__(message or f"to be tried again in {seconds:g} s")
        self.seconds = seconds


_BY_STATUS: dict[int, type[Refused]] = {401: NotSignedIn, 403: NotAllowed, 404: NotFound, 409: Conflict}


def refused(status: int, document: Mapping[str, Any]) -> Refused:
    """The exception for an answer of 4xx."""
    if document.get("reason") == "lease_lost":
        return LeaseLost(status, document)
    return _BY_STATUS.get(status, Invalid)(status, document)
