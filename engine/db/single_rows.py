"""A row that is alone of its kind in a write travels as parameters of the statement, not as a document.

Taking a document apart costs the server 8 us for a token and 14 for a task, and most steps write one of each at most. Several rows are
a document still, and so is what would make the statement too long (`statements.fitting`). What may have one type or another goes as
text, so that the statement is prepared once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from engine.core.effects import NewJob, NewScope, NewTask, NewToken
from engine.core.values import Variable
from engine.db.documents import document
from engine.text import sort_key

_COLUMNS = {
    "scope": "id uuid, parent_id uuid, token_id uuid, element_id text, path uuid[], counters jsonb",
    "token": "id uuid, scope_id uuid, element_id text, flow_id text, status text",
    "variable": "scope_id uuid, name text, type text, value jsonb",
    "task": (
        "id uuid, token_id uuid, element_id text, name text, sort_key text, about text, assignee text, candidate_users text[],"
        " candidate_groups text[], priority smallint, due_at timestamptz, follow_up_at timestamptz"
    ),
    "job": (
        "id uuid, kind text, topic text, token_id uuid, element_id text, due_at timestamptz, due_in_seconds float8, priority smallint,"
        " max_attempts int, retry text, lease_seconds int, lock_first boolean, payload jsonb"
    ),
}


def single_row(kind: str) -> str:
    """What a member reads in place of the rows of a document: `go`, and beside it the one row `u`."""
    columns = (column.split() for column in _COLUMNS[kind].split(", "))
    return f"FROM go, (SELECT {', '.join(f'%({kind}_{name})s::{type} AS {name}' for name, type in columns)}) u"


def of_scope(p: dict[str, Any], row: NewScope) -> None:
    """Its parameters into `p`, as for the other kinds below."""
    p["scope_id"] = row.id
    p["scope_parent_id"] = row.parent_id
    p["scope_token_id"] = row.token_id
    p["scope_element_id"] = row.element_id
    p["scope_path"] = ids(row.path)
    p["scope_counters"] = document(row.counters)


def of_token(p: dict[str, Any], row: NewToken) -> None:
    p["token_id"] = row.id
    p["token_scope_id"] = row.scope_id
    p["token_element_id"] = row.element_id
    p["token_flow_id"] = row.flow_id
    p["token_status"] = row.status


def of_variable(p: dict[str, Any], scope_id: UUID, name: str, variable: Variable) -> None:
    p["variable_scope_id"] = scope_id
    p["variable_name"] = name
    p["variable_type"] = variable.type
    p["variable_value"] = document(variable.value)


def of_task(p: dict[str, Any], row: NewTask) -> None:
    p["task_id"] = row.id
    p["task_token_id"] = row.token_id
    p["task_element_id"] = row.element_id
    p["task_name"] = row.name
    p["task_sort_key"] = sort_key(row.name)
    p["task_about"] = row.about
    p["task_assignee"] = row.assignee
    p["task_candidate_users"] = texts(row.candidate_users)
    p["task_candidate_groups"] = texts(row.candidate_groups)
    p["task_priority"] = str(row.priority)
    p["task_due_at"] = _moment(row.due_at)
    p["task_follow_up_at"] = _moment(row.follow_up_at)


def of_job(p: dict[str, Any], row: NewJob) -> None:
    p["job_id"] = row.id
    p["job_kind"] = row.kind
    p["job_topic"] = row.topic
    p["job_token_id"] = row.token_id
    p["job_element_id"] = row.element_id
    p["job_due_at"] = _moment(row.due_at)
    p["job_due_in_seconds"] = _number(row.due_in_seconds)
    p["job_priority"] = str(row.priority)
    p["job_max_attempts"] = str(row.max_attempts)
    p["job_retry"] = row.retry
    p["job_lease_seconds"] = _number(row.lease_seconds)
    p["job_lock_first"] = row.lock_first
    p["job_payload"] = document(row.payload)


def ids(values: Iterable[UUID]) -> str:
    """An array as the server writes it; the driver would look at each element first."""
    return f"{{{','.join(map(str, values))}}}"


def texts(values: Iterable[str]) -> str:
    """An array of any texts."""
    return f"{{{','.join(map(_quoted, values))}}}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _moment(value: Any) -> str | None:
    return None if value is None else str(value)


def _number(value: float | None) -> str | None:
    return None if value is None else repr(value)
