"""What the core wants changed, as rows. `engine.db.apply` writes them in one statement.

Every row is named at most once (two members of one statement that update one row lose one of the two silently);
`Effects.check()` asserts it. Deleting a token removes by cascade its jobs, external tasks, subscriptions, incidents,
and the scope it owns with everything inside; user tasks stay and are moved to `cancelled` by name.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from engine.core.values import Variable


class InvariantBroken(Exception):
    """A bug: the core or a command met a state that cannot be. Loud, never handled."""


@dataclass(slots=True)
class NewInstance:
    """A called instance. One that ended in the same step has its last status and variables, and no scope."""

    id: UUID
    definition_id: UUID
    parent_id: UUID
    parent_token_id: UUID
    business_key: str | None
    started_by: str
    status: str = "running"
    final_variables: Mapping[str, Variable] | None = None


@dataclass(slots=True)
class EndedInstance:
    """A called instance that has ended: completed | cancelled."""

    id: UUID
    status: str
    final_variables: Mapping[str, Variable]


@dataclass(frozen=True, slots=True)
class Home:
    """The instance that a row belongs to, as far as rows say."""

    instance_id: UUID
    definition_id: UUID
    process_name: str
    business_key: str | None


@dataclass(slots=True)
class NewScope:
    id: UUID
    parent_id: UUID | None
    token_id: UUID | None
    element_id: str | None
    path: tuple[UUID, ...]  # from the root's process scope to this one, both included
    counters: Mapping[str, Any] = field(default_factory=dict)  # of loops


@dataclass(slots=True)
class NewToken:
    id: UUID
    scope_id: UUID
    element_id: str
    flow_id: str | None
    status: str
    memory: Mapping[str, Any] | None = None


@dataclass(slots=True)
class MovedToken:
    """An existing token in its new place. One that remembers something did not come here as a row that did so elsewhere."""

    id: UUID
    element_id: str
    flow_id: str | None
    status: str
    memory: Mapping[str, Any] | None = None


@dataclass(slots=True)
class NewTask:
    id: UUID
    token_id: UUID
    element_id: str
    name: str
    assignee: str | None
    candidate_users: tuple[str, ...]
    candidate_groups: tuple[str, ...]
    priority: int  # 0 to 100, 50 is normal
    due_at: datetime | None
    follow_up_at: datetime | None
    about: str


@dataclass(slots=True)
class NewJob:
    """kind: service | timer | continue. `due_at` None: due at once, by the database's clock.

    `payload` of a service job: {"inputs": {name: {"type", "value"}}}; of a cycle timer: {"cycle", "anchor", "number"},
    the "schedule" that it is an occurrence of, and how many were "missed" before it.
    """

    id: UUID
    kind: str
    topic: str  # service: name of the handler; timer: ""
    token_id: UUID
    element_id: str
    due_at: datetime | None = None
    due_in_seconds: float | None = None  # a duration, added by the database to its own clock
    priority: int = 5  # 0 to 9, larger first
    max_attempts: int = 3
    retry: str | None = None
    lease_seconds: int | None = None
    lock_first: bool = False  # the token has siblings: do not try the optimistic write
    payload: Mapping[str, Any] = field(default_factory=dict)
    exclusive: bool = False  # waits for its turn among such work of its case


@dataclass(frozen=True, slots=True)
class Firing:
    """An occurrence of a schedule has fired: its row is unique, so that it cannot fire twice. `missed`: after it, until now."""

    schedule_id: UUID
    due_at: datetime
    missed: int


@dataclass(slots=True)
class NewExternalTask:
    id: UUID
    topic: str
    token_id: UUID
    element_id: str
    priority: int = 5
    max_attempts: int = 3
    retry: str | None = None
    payload: Mapping[str, Any] = field(default_factory=dict)  # as a service job's
    lock_first: bool = False  # as a job's
    exclusive: bool = False  # as a job's


@dataclass(slots=True)
class NewSubscription:
    id: UUID
    token_id: UUID
    element_id: str
    message_name: str  # or that of the signal
    correlation_key: str
    kind: str = "catch"  # catch: a message | signal


@dataclass(slots=True)
class NewDelivery:
    """kind: http | mail. `request`: method, url, headers, body; or to, subject, text; `destination`, if the model names one.

    `address`: of where it goes, as engine.destinations writes it. `line`: its ordering key. `max_attempts` None: as its destination says.
    """

    id: UUID
    kind: str
    destination: str
    element_id: str
    request: Mapping[str, Any]
    max_attempts: int | None = None
    retry: str | None = None
    address: str = ""
    line: str | None = None
    instance_id: UUID | None = None  # None: the snapshot's


@dataclass(slots=True)
class NewThrow:
    """A signal or message for our own processes, thrown for good: it outlives its token and its instance.

    `topic`: signal | message. `payload`: name, variables, instance_id of who throws, element_id; of a signal also `served`,
    the instances that had it in this very step; of a message also key and seconds (its time to live).
    """

    id: UUID
    topic: str
    element_id: str
    payload: Mapping[str, Any]


@dataclass(slots=True)
class NewIncident:
    """A token that could not go on. The incidents of jobs and deliveries are written by the failing commands.

    A token has one incident at most: that of a retried token which failed again takes the place of the old one.
    """

    id: UUID
    token_id: UUID
    element_id: str
    kind: str  # expression | no_flow | endless_loop | unsupported | uncaught_error | not_callable | too_deep | no_decision | decision
    message: str


@dataclass(slots=True)
class NewExecution:
    """A completed execution that can be compensated: in a scope, or within another one. `number`: the order of completion."""

    id: UUID
    scope_id: UUID | None
    within_id: UUID | None
    element_id: str
    number: int
    variables: Mapping[str, Variable]


@dataclass(slots=True)
class MovedExecution:
    id: UUID
    scope_id: UUID | None
    within_id: UUID | None


@dataclass(slots=True)
class HandedOver:
    """All executions that lie in a scope go elsewhere, those that were not loaded too."""

    from_scope: UUID
    scope_id: UUID | None
    within_id: UUID | None


@dataclass(slots=True)
class Event:
    """One history event. `kind` is a past participle: element_entered, flow_taken, task_created, instance_completed."""

    kind: str
    element_id: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    instance_id: UUID | None = None  # None: the snapshot's


@dataclass(slots=True)
class Effects:
    """Everything one trigger changes.

    Rows that go by cascade are not named: a token inside a gone scope, the scope of a gone token. A case that ended
    names its root's process scope alone in `gone_scopes` (nothing if it began in the same step), and no variables.
    `homes`, by id of token, scope and instance: where rows belong that are not of the snapshot's instance.
    """

    new_instances: list[NewInstance] = field(default_factory=list)
    ended_instances: list[EndedInstance] = field(default_factory=list)
    homes: dict[UUID, Home] = field(default_factory=dict)

    new_scopes: list[NewScope] = field(default_factory=list)
    gone_scopes: list[UUID] = field(default_factory=list)
    counters: dict[UUID, Mapping[str, Any]] = field(default_factory=dict)  # of scopes that stay
    new_tokens: list[NewToken] = field(default_factory=list)
    moved_tokens: list[MovedToken] = field(default_factory=list)
    gone_tokens: list[UUID] = field(default_factory=list)
    memories: dict[UUID, Mapping[str, Any]] = field(default_factory=dict)  # of tokens that stay where they are
    variables: dict[tuple[UUID, str], Variable] = field(default_factory=dict)  # (scope, name)
    tasks: list[NewTask] = field(default_factory=list)
    cancelled_tasks: list[UUID] = field(default_factory=list)
    jobs: list[NewJob] = field(default_factory=list)
    external_tasks: list[NewExternalTask] = field(default_factory=list)
    subscriptions: list[NewSubscription] = field(default_factory=list)
    gone_subscriptions: list[UUID] = field(default_factory=list)  # stored ones that had a signal in this step, their tokens stay
    deliveries: list[NewDelivery] = field(default_factory=list)
    throws: list[NewThrow] = field(default_factory=list)
    incidents: list[NewIncident] = field(default_factory=list)
    resolved_incidents_of: list[UUID] = field(default_factory=list)  # tokens whose incident is gone (Retried)
    new_executions: list[NewExecution] = field(default_factory=list)
    moved_executions: list[MovedExecution] = field(default_factory=list)
    handed_over: list[HandedOver] = field(default_factory=list)
    gone_executions: list[UUID] = field(default_factory=list)  # with those within them
    forgotten_scopes: list[UUID] = field(default_factory=list)  # which end: the executions in them go
    forgets: bool = False  # the case ends, and there may be executions in it
    firing: Firing | None = None
    ended: str | None = None  # the case: completed | cancelled
    final_variables: Mapping[str, Variable] | None = None  # of the root's process scope, when ended
    history: list[Event] = field(default_factory=list)

    @property
    def exclusive(self) -> bool:
        """Whether some of the new work waits for its turn."""
        for job in self.jobs:
            if job.exclusive:
                return True
        return bool(self.external_tasks) and any(task.exclusive for task in self.external_tasks)

    def check(self) -> None:
        """Raise InvariantBroken if a row is named twice."""
        _once("instance", self.new_instances, self.ended_instances)
        _once("scope", self.new_scopes, self.gone_scopes, self.counters)
        _once("token", self.new_tokens, self.moved_tokens, self.gone_tokens, self.memories)
        _once("task", self.tasks, self.cancelled_tasks)
        _once("execution", self.new_executions, self.moved_executions, self.gone_executions)
        _once("scope of executions", self.handed_over, self.forgotten_scopes)


def _once(name: str, *groups: Collection[Any]) -> None:
    """Raise InvariantBroken if an id stands in the groups, of rows or of ids, twice. A row alone, the usual case, cannot."""
    if sum(map(len, groups)) < 2:
        return
    ids = [_key(each) for group in groups for each in group]
    if len(ids) != len(set(ids)):
        raise InvariantBroken(f"effects name a {name} twice: {sorted(map(str, ids))}")


def _key(row: Any) -> UUID:
    if isinstance(row, UUID):
        return row
    key: UUID = row.from_scope if isinstance(row, HandedOver) else row.id
    return key
