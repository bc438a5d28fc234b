"""What Baton answers, as frozen dataclasses. Names and meanings are those of the API (docs/api.md of Baton).

A field that this version does not know is left out, one that the server does not send is None or empty: a client and a server of
neighbouring releases understand each other.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from datetime import datetime
from functools import cache
from typing import Any, Generic, TypeVar, Union, cast, get_args, get_origin, get_type_hints
from uuid import UUID

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Task:
    """A user task."""

    id: UUID
    name: str
    element_id: str
    status: str
    process_instance_id: UUID
    root_instance_id: UUID
    created_at: datetime
    assignee: str | None = None
    candidate_groups: list[str] = field(default_factory=list)
    business_key: str | None = None
    priority: int = 50
    due_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Incident:
    """Where a case stands still until somebody sees to it."""

    id: UUID
    kind: str
    message: str
    created_at: datetime
    element_id: str | None = None
    detail: str | None = None
    item_kind: str | None = None
    item_id: UUID | None = None
    process_instance_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class Instance:
    """A process instance. The last three fields are empty in lists."""

    id: UUID
    root_id: UUID
    definition_key: str
    version: int
    status: str
    started_at: datetime
    parent_id: UUID | None = None
    business_key: str | None = None
    ended_at: datetime | None = None
    variables: dict[str, Any] = field(default_factory=dict)
    incidents: list[Incident] = field(default_factory=list)
    called: list[UUID] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Event:
    """One event of an instance's history."""

    id: int
    at: datetime
    kind: str
    actor: str
    element_id: str | None = None
    item_id: UUID | None = None
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Definition:
    """A version of a process."""

    id: UUID
    key: str
    version: int
    name: str
    status: str = "active"
    latest: bool = True
    deployed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Deployed:
    """One definition of a deployment. `unchanged`: it was there already."""

    id: UUID
    key: str
    version: int
    name: str
    file: str
    unchanged: bool


@dataclass(frozen=True, slots=True)
class Deployment:
    """`deployment_id` is None when nothing was new."""

    deployment_id: UUID | None = None
    definitions: list[Deployed] = field(default_factory=list)
    decisions: list[Deployed] = field(default_factory=list)
    forms: list[Deployed] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of a message. `outcome`: correlated | stored; `duplicate`: it had been sent under this id before."""

    outcome: str
    message_id: UUID | None = None
    process_instance_id: UUID | None = None
    started: bool = False
    duplicate: bool = False


@dataclass(frozen=True, slots=True)
class LeasedTask:
    """An external task that this client has leased. `variables`: as the task sees them, its inputs among them."""

    id: UUID
    topic: str
    element_id: str
    process_instance_id: UUID
    lease_number: int
    lease_expires_at: datetime
    attempts: int
    max_attempts: int
    business_key: str | None = None
    variables: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a report on an external task was taken. `available`: it is tried again at `available_at`; `failed`: it is an incident."""

    id: UUID
    status: str
    lease_number: int | None = None
    attempts: int | None = None
    available_at: datetime | None = None
    lease_expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a list; `next_cursor` None: it was the last."""

    items: list[T]
    next_cursor: str | None = None


def read(kind: type[T], document: Mapping[str, Any]) -> T:
    """The document as a `kind`. Raises ValueError where a field that must be there is missing or is of another kind."""
    hints = _hints(cast(Any, kind))
    values = {}
    for each in fields(cast(Any, kind)):
        if each.name in document:
            try:
                values[each.name] = _value(hints[each.name], document[each.name])
            except (TypeError, ValueError, AttributeError) as problem:
                raise ValueError(f"{kind.__name__}.{each.name}: {problem}") from problem
        elif each.default is MISSING and each.default_factory is MISSING:
            raise ValueError(f"{kind.__name__}.{each.name}: expected, not found in the answer")
    return kind(**values)


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    return get_type_hints(kind)


def _value(hint: Any, value: Any) -> Any:
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return None if value is None else _value(next(kind for kind in inner if kind is not types.NoneType), value)
    if origin is list:
        return [_value(inner[0], each) for each in value]
    if hint is UUID:
        return UUID(value)
    if hint is datetime:
        return datetime.fromisoformat(value)
    if hasattr(hint, "__dataclass_fields__"):
        return read(hint, value)
    return value
