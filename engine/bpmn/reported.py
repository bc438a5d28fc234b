"""What vendors' files say that has no counterpart here, and why the process runs without it: docs/dialects.md, last table."""

from __future__ import annotations

from collections.abc import Sequence

from engine.bpmn import names
from engine.bpmn.names import CAMUNDA_LIKE, ZEEBE

# What it is about, its names in camunda and its like, its names in zeebe, why not. Names with " of " are told apart by more than a name.
REPORTED: Sequence[tuple[str, str, str, str]] = (
    (
        "pages of other products",
        "formKey",
        "externalReference",
        "such as `embedded:app:page.html`: the fields of the model are shown, or none",
    ),
    ("who may start", "candidateStarterUsers, candidateStarterGroups", "", "every person starts what a person can start"),
    ("in the task list", "isStartableInTasklist", "", "what people can start they see"),
    ("retention", "historyTimeToLive", "", "the history of a case is kept; nothing deletes it"),
    ("of another tenant", "calledElementTenantId", "", "a call stays in its tenant"),
    (
        "which variable wakes a condition",
        "variableName, variableEvents",
        "",
        "a condition is looked at whenever a variable that it sees has changed",
    ),
    ("owner and category", "owner, category", "", "a task has an assignee and candidates"),
    ("calendars", "businessCalendarName", "", "dates are of the Gregorian calendar"),
    ("skipping", "skipExpression", "", "a condition on a flow says so in the drawing"),
    ("variables that are not kept", "storeResultVariableAsTransient, useLocalScopeForResultVariable", "", "variables are kept"),
    (
        "listeners of other moments",
        "taskListener of assignment, update, delete, timeout",
        "taskListener of assigning, updating, canceling",
        "the process runs without them",
    ),
)
UNKNOWN = "the process runs as if it were not there"


def why_not(tag: str) -> str:
    """Why nothing reads this attribute or element, as the end of a sentence."""
    space, name = names.split(tag)
    return _WHY.get(name, UNKNOWN) if space in (*CAMUNDA_LIKE, ZEEBE) else UNKNOWN


_WHY = {
    name: why
    for _, camunda, zeebe, why in REPORTED
    for spelled in (camunda, zeebe)
    if spelled and " of " not in spelled
    for name in spelled.split(", ")
}
