"""What is read of each vendor's attributes and elements, and what it does here: docs/dialects.md, a row each.

Every spelling of a row is tried by a test: that it reads as the others do, or that it is reported by name.
`python -m engine.bpmn.coverage.dialects` prints the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from engine.bpmn.reported import REPORTED


@dataclass(frozen=True, slots=True)
class Dialect:
    """One thing that models say. A spelling is empty where the vendor has none; `camunda` stands for operaton, flowable and activiti, too.

    `reported`: nothing here does it, and the deployment names it.
    """

    part: str
    key: str
    baton: str
    camunda: str
    zeebe: str
    here: str
    reported: bool = False


def _of(part: str, *rows: tuple[str, str, str, str, str]) -> list[Dialect]:
    return [Dialect(part, *row) for row in rows]


def _reported(rows: Sequence[tuple[str, str, str, str]]) -> list[Dialect]:
    return [Dialect("Reported, and not done", key, "", camunda, zeebe, here, reported=True) for key, camunda, zeebe, here in rows]


DIALECTS: Sequence[Dialect] = (
    *_of(
        "People, dates, forms",
        ("assignee", "assignee", "assignee", "assignmentDefinition assignee", "who has the task; text or expression"),
        (
            "candidate users",
            "candidateUsers",
            "candidateUsers",
            "assignmentDefinition candidateUsers",
            "whom it is offered to: a list, each may be an expression",
        ),
        ("candidate groups", "candidateGroups", "candidateGroups", "assignmentDefinition candidateGroups", "the same for groups"),
        ("due date", "dueDate", "dueDate", "taskSchedule dueDate", "a date, a duration from its beginning, or an expression"),
        ("follow-up date", "followUpDate", "followUpDate", "taskSchedule followUpDate", "the same; the inbox shows it then"),
        ("priority of a task", "priority", "priority", "priorityDefinition priority", "0 to 100, 50 is normal"),
        ("initiator", "initiator", "initiator", "", "the variable that takes who started the case"),
        ("form fields", "formData", "formData", "", "string, long, double, boolean, date, enum; default values, constraints"),
        ("form properties", "formProperty", "formProperty", "", "the older spelling of form fields"),
        ("form", "formRef", "formRef", "formDefinition formId", "the key of a deployed form: [forms.md](forms.md)"),
        (
            "binding of a form",
            "formRefBinding, formRefVersion",
            "formRefBinding, formRefVersion",
            "formDefinition bindingType, versionTag",
            "latest, deployment, version, versionTag",
        ),
        (
            "form key",
            "formKey",
            "formKey",
            "formDefinition formKey, userTaskForm",
            "the key of a deployed form, `camunda-forms:deployment:FILE`, `camunda-forms:bpmn:ID`",
        ),
    ),
    *_of(
        "Work of handlers and workers",
        (
            "handler",
            "handler",
            "delegateExpression, class, expression",
            "taskDefinition type",
            "the handler whose job it is; classes and methods by their names, with a warning",
        ),
        ("external topic", "", "type `external` with topic", "", "an external task; `external-worker` of Flowable likewise"),
        (
            "retries",
            "retry",
            "failedJobRetryTimeCycle",
            "taskDefinition retries",
            "`R3/PT10M`, waits in a list, waits that grow, a number, or an expression",
        ),
        (
            "priority of work",
            "",
            "taskPriority, jobPriority",
            "",
            "0 to 9; larger ones count as 9; that of the process for what has none",
        ),
        (
            "exclusive work",
            "exclusive",
            "exclusive",
            "",
            "one at a time in a case, where `true` is said; `baton:exclusive` on external tasks and processes, too: decision 0097",
        ),
        ("headers", "properties", "properties", "taskHeaders, properties", "texts that the handler is given as `context.headers`"),
        ("result variable", "resultVariable", "resultVariable", "script resultVariable", "takes the value of an expression"),
        (
            "listeners",
            "",
            "executionListener, taskListener",
            "executionListener, taskListener",
            "jobs of handlers before and after: decision 0077",
        ),
        ("asynchronous", "asyncBefore, asyncAfter", "asyncBefore (async), asyncAfter (asyncLeave)", "", "a job goes on: decision 0077"),
    ),
    *_of(
        "Data",
        (
            "inputs",
            "inputOutput inputParameter",
            "inputOutput inputParameter",
            "ioMapping input",
            "text, expressions, lists and maps of them; seen by the activity alone (user tasks too: decision 0083)",
        ),
        (
            "outputs",
            "inputOutput outputParameter",
            "inputOutput outputParameter",
            "ioMapping output",
            "the variables that are made of a result, of what completed a user task, of a subprocess's own",
        ),
        (
            "collection of a loop",
            "collection, elementVariable",
            "collection, elementVariable",
            "loopCharacteristics inputCollection, inputElement",
            "one instance for each item",
        ),
        (
            "results of a loop",
            "outputCollection, outputElement",
            "",
            "loopCharacteristics outputCollection, outputElement",
            "the list of what the instances make",
        ),
        ("correlation key", "correlationKey", "", "subscription correlationKey", "else the business key"),
        (
            "error and escalation variables",
            "",
            "errorCodeVariable, errorMessageVariable, escalationCodeVariable",
            "",
            "the variables that take what was caught",
        ),
    ),
    *_of(
        "Calls",
        ("called process", "", "calledElement", "calledElement processId", "a key, or an expression"),
        (
            "binding of a call",
            "",
            "calledElementBinding, calledElementVersion, calledElementVersionTag, sameDeployment",
            "calledElement bindingType, versionTag",
            "latest, deployment, version, versionTag",
        ),
        (
            "tag of a version",
            "versionTag",
            "versionTag",
            "versionTag value",
            "what calls that are bound to it mean: the newest that has it",
        ),
        (
            "variables into a call",
            "in",
            "in source, sourceExpression, variables, local",
            "calledElement propagateAllParentVariables",
            "what the called process is given",
        ),
        (
            "variables out of a call",
            "out",
            "out source, sourceExpression, variables",
            "calledElement propagateAllChildVariables",
            "what comes back",
        ),
        ("business key of a call", "in", "in businessKey", "", "an expression"),
    ),
    *_reported(REPORTED),
)

INTRODUCTION = """# Dialects: what is read of other engines' models

What `camunda:` has here, `operaton:`, `flowable:` and `activiti:` have, too: the attributes mean the same, and of several the first
in this order is read. `baton:` (`urn:baton:bpmn`) is our own. A test reads every spelling of a row, and wants the same definition; or,
in the last table, a warning that names it. What is in no table is reported as well. Expressions: [expressions.md](expressions.md).

<!-- Written by `python -m engine.bpmn.coverage.dialects`. -->
"""


def page() -> str:
    """docs/dialects.md."""
    parts = [INTRODUCTION]
    for part, rows in groupby(DIALECTS, key=lambda row: row.part):
        parts.append(f"\n## {part}\n\n| what | `baton:` | `camunda:` and its like | `zeebe:` | here |\n|---|---|---|---|---|\n")
        parts += [f"| {row.key} | {_cell(row.baton)} | {_cell(row.camunda)} | {_cell(row.zeebe)} | {row.here} |\n" for row in rows]
    return "".join(parts)


def _cell(spelling: str) -> str:
    return spelling or "–"


if __name__ == "__main__":
    print(page(), end="")
