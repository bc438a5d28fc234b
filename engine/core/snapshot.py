"""What the pure core is shown: rows read by one statement, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Any
from uuid import UUID

from engine.core.values import Variable
from engine.frozen import dataclass


@dataclass(frozen=True, slots=True)
class TokenState:
    """Where an instance is. `flow_id`: the sequence flow it came by, needed by joins. `status`: lifecycle.TOKEN.

    `memory`: what it must know of what it waits for beyond the rows that hang off it (conditions: what they were last).
    """

    id: UUID
    scope_id: UUID
    element_id: str
    flow_id: str | None = None
    status: str = "waiting"
    memory: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ScopeState:
    """An active scope: the process (`element_id` None), or a subprocess, owned by a token outside it.

    Also the body of a looped activity, owned by its token, with counters, and the iterations in it, which no token owns.
    The process scope of a called instance is owned by the token that called it. `instance_id` None: the snapshot's instance.
    """

    id: UUID
    parent_id: UUID | None = None
    element_id: str | None = None
    token_id: UUID | None = None
    variables: Mapping[str, Variable] = field(default_factory=dict)
    counters: Mapping[str, Any] = field(default_factory=dict)
    instance_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class InstanceState:
    """Another running instance of the case that the snapshot reaches into."""

    id: UUID
    definition_id: UUID
    business_key: str | None = None
    started_by: str | None = None


@dataclass(frozen=True, slots=True)
class OpenTask:
    """A user task that is open or claimed, loaded only in a whole snapshot."""

    id: UUID
    token_id: UUID
    element_id: str


@dataclass(frozen=True, slots=True)
class OpenSignal:
    """A subscription to a signal, loaded only in a whole snapshot: a signal thrown in this very step reaches it at once."""

    id: UUID
    token_id: UUID
    element_id: str
    name: str


@dataclass(frozen=True, slots=True)
class ExecutionState:
    """A completed execution that can be compensated: in a scope, or within that of the subprocess around it."""

    id: UUID
    scope_id: UUID | None
    within_id: UUID | None
    element_id: str
    number: int
    variables: Mapping[str, Variable] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One instance, as much of it as the command loaded, and what it reaches of the others of its case (`others`).

    Narrow (`whole` False): `scopes` is the chain from the token's scope up to the process, and on through the tokens that
    called to the root's process; `tokens` the triggering token, the tokens that own the scopes of the chain, and every token
    that is `joining` or `listening` in a scope of the chain; `others` the callers. `crowded` names the scopes of the chain
    that hold a token which is not in `tokens` (so these do not count).
    `other_leaves`: the triggering token has leaves besides the one that triggered (boundary events, gateway siblings).
    `tasks`: the triggering token's open task, if the command loaded it; a boundary event that interrupts needs it.
    `executions`: of each compensating scope of the chain the last one, with those within it.
    Whole: every scope, token, open task, signal subscription and completed execution of the case, `others` all its running
    instances but one; `crowded` is empty.
    """

    tenant_id: str
    instance_id: UUID
    root_id: UUID
    definition_id: UUID
    business_key: str | None
    revision: int
    scopes: Mapping[UUID, ScopeState]
    tokens: Mapping[UUID, TokenState]
    crowded: frozenset[UUID] = frozenset()
    other_leaves: bool = False
    whole: bool = False
    tasks: tuple[OpenTask, ...] = ()
    signals: tuple[OpenSignal, ...] = ()  # oldest first, without the one that triggered
    executions: tuple[ExecutionState, ...] = ()
    started_by: str | None = None
    others: tuple[InstanceState, ...] = ()
    takes_turns: bool = False  # some work of the case is exclusive (engine.db.apply)


class NeedsWholeInstance(Exception):
    """The core met something outside a narrow snapshot. The command locks the root, loads all and asks again."""


# ---- triggers: what happened


@dataclass(frozen=True, slots=True)
class Started:
    """A new instance begins at `element_id` (a start event). The snapshot is empty but for ids."""

    element_id: str
    variables: Mapping[str, Variable]
    what: str = "none"  # none | timer | message | signal


@dataclass(frozen=True, slots=True)
class Completed:
    """The work of the token's element ended well: a user task, a job of a service task, an external task.

    `local`: seen by the outputs of a service task alone. `keeps`: `variables` are set besides what its outputs make of them.
    """

    token_id: UUID
    variables: Mapping[str, Variable]
    event: str  # history kind: task_completed, job_completed, external_task_completed
    detail: Mapping[str, Any] = field(default_factory=dict)  # into that history event: item id, lease number, attempt
    local: Mapping[str, Variable] = field(default_factory=dict)
    keeps: bool = False


@dataclass(frozen=True, slots=True)
class EventOccurred:
    """A timer fired, a message or a signal arrived for `element_id`: a boundary or catch event, one behind an event-based gateway, a
    receive task, or the start event of an event subprocess (then the token is the one that listens).

    The command removes the leaf that triggered (job, subscription); what must stay open (a boundary event that does not
    interrupt) comes back as a new row in the effects.
    """

    token_id: UUID
    element_id: str
    what: str  # timer | message | signal | condition
    variables: Mapping[str, Variable] = field(default_factory=dict)
    detail: Mapping[str, Any] = field(default_factory=dict)
    occurrence: Mapping[str, Any] = field(default_factory=dict)  # timers: the job's payload (remaining repeats, anchor)
    due_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ErrorThrown:
    """The work of the token's element ended in a BPMN error."""

    token_id: UUID
    code: str
    message: str = ""
    variables: Mapping[str, Variable] = field(default_factory=dict)
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Retried:
    """A person asks a `failed` token to try its element again."""

    token_id: UUID


@dataclass(frozen=True, slots=True)
class Cancelled:
    """A person cancels the case. Needs a whole snapshot of its root."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Continued:
    """A job of kind `continue` goes on with what one step could not begin: further instances of the token's activity.

    The scope that the token owns is in the snapshot, as the innermost of the chain.
    """

    token_id: UUID
    detail: Mapping[str, Any] = field(default_factory=dict)


Trigger = Started | Completed | EventOccurred | ErrorThrown | Retried | Cancelled | Continued


class CannotContinue(Exception):
    """What a `continue` job needs cannot be had: the collection was changed. The command fails the job, with an incident."""


class NoHandlerForError(Exception):
    """No boundary event catches the code. The command fails the item with an incident instead."""
