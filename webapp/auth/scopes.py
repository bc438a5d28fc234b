"""Which scope an operation needs, and whether the key that asks has it. Closed: what names no scope is refused to every limited key.

A route of `/api/v1` says it beside itself (`view.operation.scope`), a path of `/engine-rest` in the table below.
"""

from __future__ import annotations

import re
from typing import Any

from werkzeug.exceptions import Forbidden

from webapp.auth.identity import Identity

PREFIX = "/engine-rest"
READS = ("GET", "HEAD", "OPTIONS")
_ID = "[^/]+"
# (methods, path below /engine-rest, scope); the first that fits counts.
ENGINE_REST = (
    (READS, ".*", "read"),
    (("POST",), "(message|signal)", "messages"),
    (("POST",), f"(history/)?{_ID}(/count)?", "read"),  # a query whose filters are its body
    (("POST",), "external-task/fetchAndLock", "external_tasks"),
    (("POST",), f"external-task/{_ID}/(complete|failure|bpmnError|lock|extendLock|unlock)", "external_tasks"),
    (("POST",), f"process-definition/(key/{_ID}(/tenant-id/{_ID})?|{_ID})/(start|submit-form)", "start"),
    (("POST",), f"task/{_ID}/(claim|unclaim|assignee|delegate|resolve|complete|submit-form|bpmnError|bpmnEscalation)", "tasks"),
    (("PUT", "POST", "DELETE"), f"task/{_ID}/(variables|localVariables)(/.*)?", "tasks"),
    (("POST",), "deployment/create", "deploy"),
    (("DELETE",), f"(deployment|process-definition)/{_ID}.*", "deploy"),
    (("PUT", "POST", "DELETE"), "(process-instance|external-task|job|incident|process-definition)/.*", "operate"),
)
_TABLE = tuple((methods, re.compile(path), scope) for methods, path, scope in ENGINE_REST)


class MissingScope(Forbidden):
    """403: the key is limited, and not to this. `scope`: the one that is missing; None where no limited key will do."""

    def __init__(self, scope: str | None, held: tuple[str, ...]) -> None:
        self.scope, self.held = scope, held
        needs = f"expected a key with the scope {scope}" if scope else "expected a key without scopes"
        super().__init__(f"{needs}, found one with {', '.join(held)}")


def scope_needed(view: Any, *, method: str, path: str) -> str | None:
    """The scope of an operation; None if it names none."""
    if path.startswith(f"{PREFIX}/"):
        below = path.removeprefix(f"{PREFIX}/").removesuffix("/")
        return next((scope for methods, pattern, scope in _TABLE if method in methods and pattern.fullmatch(below)), None)
    scope: str | None = getattr(getattr(view, "operation", None), "scope", None)
    return scope


def check_scope(who: Identity, view: Any, *, method: str, path: str) -> None:
    """Raise MissingScope unless this operation is one that the key, if it is limited, may do."""
    if who.scopes is None:
        return
    needed = scope_needed(view, method=method, path=path)
    if needed is None or needed not in who.scopes:
        raise MissingScope(needed, who.scopes)
