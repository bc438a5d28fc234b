"""The outcomes of commands: one Done… value each, or Rejected. Never a string, never a bare bool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from engine.bpmn.definition import Problem
from engine.frozen import dataclass


class Refusal(StrEnum):
    """Why a command changed nothing. The value is the machine-readable `reason` of the API."""

    NOT_FOUND = "not_found"  # 404: not there, or not to be seen by this actor
    NOT_ALLOWED = "not_allowed"  # 403
    INVALID = "invalid"  # 422: `problems` says what
    UNSUPPORTED = "unsupported"  # 422
    ALREADY_CLAIMED = "already_claimed"  # 409 from here on: the world moved on
    NOT_CLAIMED = "not_claimed"
    NOT_YOURS = "not_yours"  # claimed by somebody else, so not yours to complete
    ALREADY_COMPLETED = "already_completed"
    ALREADY_CANCELLED = "already_cancelled"
    INSTANCE_ENDED = "instance_ended"
    INSTANCE_SUSPENDED = "instance_suspended"  # `by` whom, `at` when, `detail` why
    ALREADY_SUSPENDED = "already_suspended"
    NOT_SUSPENDED = "not_suspended"
    ALREADY_PAUSED = "already_paused"
    NOT_PAUSED = "not_paused"
    INSTANCE_CANCELLING = "instance_cancelling"
    CALLED_INSTANCE = "called_instance"  # it ends with its caller; `item_id` is the case
    DEFINITION_SUSPENDED = "definition_suspended"
    DEFINITION_DELETING = "definition_deleting"
    DEFINITION_IN_USE = "definition_in_use"  # instances of it run
    LEASE_LOST = "lease_lost"
    NOT_FAILED = "not_failed"  # retry of what is not failed (any more)
    NOT_LEASED = "not_leased"
    NO_SUBSCRIPTION = "no_subscription"
    AMBIGUOUS = "ambiguous"  # several wait that a message may mean; `problems` names them
    AWAITED = "awaited"  # a stored message belongs to an instance that waits for it: its start event leaves it alone
    DESTINATION_CHANGED = "destination_changed"  # since it was looked at: `by` whom, `at` when
    NOTHING_FREE = "nothing_free"  # take next found no task


STATUS: Mapping[Refusal, int] = {
    Refusal.NOT_FOUND: 404,
    Refusal.NOT_ALLOWED: 403,
    Refusal.INVALID: 422,
    Refusal.UNSUPPORTED: 422,
}
"""HTTP statuses; every refusal that is not named here is 409."""


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One thing wrong with what was sent, tied to its field."""

    field: str
    message: str


@dataclass(frozen=True, slots=True)
class Rejected:
    """Nothing was changed. `by` is a username, `by_name` what people call them; both only for those who may see it."""

    refusal: Refusal
    detail: str = ""
    by: str | None = None
    by_name: str | None = None
    at: datetime | None = None
    problems: tuple[Problem | FieldProblem, ...] = ()
    item_id: UUID | None = None

    @property
    def status(self) -> int:
        """The HTTP status that carries this refusal."""
        return STATUS.get(self.refusal, 409)


# ---- what was done


@dataclass(frozen=True, slots=True)
class Claimed:
    task_id: UUID
    assignee: str
    at: datetime
    repeated: bool = False  # it was already mine: harmless, no second history event


@dataclass(frozen=True, slots=True)
class Unclaimed:
    task_id: UUID
    at: datetime


@dataclass(frozen=True, slots=True)
class Assigned:
    task_id: UUID
    assignee: str | None
    at: datetime


@dataclass(frozen=True, slots=True)
class TaskCompleted:
    task_id: UUID
    instance_id: UUID
    root_id: UUID
    at: datetime
    next_task_id: UUID | None = None  # a task of the same case that this command opened and assigned to the actor


@dataclass(frozen=True, slots=True)
class InstanceStarted:
    instance_id: UUID
    definition_id: UUID
    key: str
    version: int
    ended: bool = False
    next_task_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class InstanceCancelled:
    instance_id: UUID
    finishing: bool = False  # too large for one transaction: marked, and a job ends it in steps


@dataclass(frozen=True, slots=True)
class CaseShrunk:
    """One step of a large cancel was taken, under a lease that goes on."""

    item_id: UUID
    rows: int


@dataclass(frozen=True, slots=True)
class InstanceSuspended:
    instance_id: UUID
    finishing: bool = False  # so large that a job holds the rest of its work


@dataclass(frozen=True, slots=True)
class InstanceResumed:
    instance_id: UUID
    finishing: bool = False  # so large that a job frees the rest of its work


@dataclass(frozen=True, slots=True)
class DefinitionSuspended:
    """`with_cases`: a job suspends its running cases, one after another."""

    definition_id: UUID
    key: str
    version: int
    with_cases: bool = False


@dataclass(frozen=True, slots=True)
class DefinitionResumed:
    """`with_cases`: a job lets those go on that were suspended with it."""

    definition_id: UUID
    key: str
    version: int
    with_cases: bool = False


@dataclass(frozen=True, slots=True)
class WorkPaused:
    """`kind`, `topic`: as asked (engine.commands.pause)."""

    kind: str
    topic: str


@dataclass(frozen=True, slots=True)
class WorkUnpaused:
    kind: str
    topic: str


@dataclass(frozen=True, slots=True)
class DestinationSaved:
    """`salt`: of the signing secret that was made, which may be shown this once; None if none was."""

    name: str
    salt: str | None = None


@dataclass(frozen=True, slots=True)
class DestinationRemoved:
    name: str


@dataclass(frozen=True, slots=True)
class TrialWritten:
    """A delivery to a destination, of no process."""

    delivery_id: UUID
    destination: str


@dataclass(frozen=True, slots=True)
class ItemsHeld:
    """One step of a large suspension, pause or resumption was taken, under a lease that goes on."""

    item_id: UUID
    rows: int


@dataclass(frozen=True, slots=True)
class SignalThrown:
    signal_id: UUID


@dataclass(frozen=True, slots=True)
class SignalSpread:
    """One step of a signal's way was taken, under a lease that goes on: so many more have their delivery job."""

    item_id: UUID
    rows: int


@dataclass(frozen=True, slots=True)
class ItemDone:
    """A leased item (job, external task, delivery) was completed under its lease."""

    item_id: UUID
    lease_number: int
    instance_id: UUID | None = None
    repeated: bool = False  # this very completion had landed before


@dataclass(frozen=True, slots=True)
class ItemFailed:
    item_id: UUID
    lease_number: int
    attempts: int
    status: str  # available (will be retried) | failed (incident)
    available_at: datetime | None = None
    incident_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class ItemReleased:
    item_id: UUID


@dataclass(frozen=True, slots=True)
class ItemRetried:
    item_id: UUID
    attempts_left: int


@dataclass(frozen=True, slots=True)
class Renewed:
    expires_at: Mapping[UUID, datetime]  # item id -> new expiry
    lost: frozenset[UUID] = frozenset()


@dataclass(frozen=True, slots=True)
class FeedSaved:
    name: str
    destination: str


@dataclass(frozen=True, slots=True)
class FeedRemoved:
    name: str


@dataclass(frozen=True, slots=True)
class Reported:
    """An attempt said `lines` more lines, of which the first of all are kept."""

    item_id: UUID
    lines: int


@dataclass(frozen=True, slots=True)
class DeployedDefinition:
    id: UUID
    key: str
    version: int
    name: str
    file: str
    unchanged: bool = False  # identical to the latest version: no new one was made
    warnings: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class DeployedDecision:
    id: UUID
    key: str
    version: int
    name: str
    file: str
    unchanged: bool = False  # its file is identical to that of the latest version
    warnings: tuple[Problem, ...] = ()  # of the whole file, with its first decision


@dataclass(frozen=True, slots=True)
class DeployedForm:
    id: UUID
    key: str
    version: int
    name: str  # a form has none but its key
    file: str
    unchanged: bool = False
    warnings: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Deployed:
    deployment_id: UUID | None  # None: nothing was new
    definitions: tuple[DeployedDefinition, ...]
    decisions: tuple[DeployedDecision, ...] = ()
    forms: tuple[DeployedForm, ...] = ()


@dataclass(frozen=True, slots=True)
class VersionDeleted:
    """`newest`: the version that is the newest now, whose start events count again; None: nothing has changed there."""

    definition_id: UUID
    key: str
    version: int
    newest: int | None = None


@dataclass(frozen=True, slots=True)
class MessagePublished:
    outcome: str  # correlated | stored
    message_id: UUID | None = None
    instance_id: UUID | None = None
    started: bool = False


@dataclass(frozen=True, slots=True)
class MessageKnown:
    """This message was sent before, under the same id: nothing was done. `first`: what it did then."""

    first: MessagePublished


@dataclass(frozen=True, slots=True)
class PersonSaved:
    person_id: UUID
    username: str


@dataclass(frozen=True, slots=True)
class ApiKeyAdded:
    """`token` is shown this once: a repeated request is answered without it. `ending`: what lists show of it."""

    key_id: UUID
    token: str
    ending: str
    expires_at: datetime | None = None
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class ApiKeyRevoked:
    key_id: UUID


# ---- who asks, and under which lease


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts. `roles`: user, operator, administrator (one of them). The engine itself acts as SYSTEM."""

    username: str
    role: str = "user"
    groups: frozenset[str] = frozenset()
    display_name: str = ""
    tenant_id: str = ""


SYSTEM = Actor("engine", role="administrator", display_name="Baton")


@dataclass(frozen=True, slots=True)
class Lease:
    """A leased item. Fences completion, failure and renewal (R4). `kind`: job | external_task | delivery."""

    kind: str
    item_id: UUID
    number: int
    owner: str
    expires_at: datetime | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)
