"""What a command must know before it decides, read by ONE statement: a leaf, its instance, the scope chain of its token.

`read_case` reads unlocked (the optimistic way), `lock_case` locks the root and the leaf first, inside one VOLATILE
function, and reads in the next statement. Both return the same `Loaded`. Also `load_batch`: what the handlers of an
acquired batch need, in one statement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
import psycopg
from psycopg.types.json import set_json_loads

from engine.core.snapshot import ExecutionState, InstanceState, OpenSignal, OpenTask, ScopeState, Snapshot, TokenState
from engine.core.values import Later, Variable, native
from engine.db import locks, straight
from engine.db.pauses import row_is_paused
from engine.db.session import cursor_of
from engine.db.single_rows import ids
from engine.frozen import dataclass
from engine.ids import id_of

# Documents come back by the thousand. Integers are kept within 64 bits by `engine.core.values`, so nothing is lost.
set_json_loads(orjson.loads)

_READ = "SELECT baton_read_case(%(kind)s, %(leaf_id)s, %(whole)s, %(lean)s)"
_LOCK = "SELECT baton_lock_case(%s, %s, %s, %s)"


@dataclass(frozen=True, slots=True)
class Leaf:
    """The row that a command starts from. `fence`: the assignee of a task, the lease number of leased work.

    `detail`: the rest of the row that commands of its kind need, as JSON values (baton_read_case.sql lists them).
    """

    kind: str
    id: UUID
    status: str
    fence: str | int | None
    element_id: str
    token_id: UUID | None
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Loaded:
    """One leaf with its case. `snapshot` is None when there is no instance (start timers, start subscriptions)."""

    leaf: Leaf
    snapshot: Snapshot | None
    now: datetime
    instance_status: str | None = None
    root_status: str | None = None
    mark: str | None = None
    ended_at: datetime | None = None
    ended_by: str | None = None


def read_case(conn: psycopg.Connection[Any], kind: str, leaf_id: UUID, *, whole: bool = False, lean: bool = False) -> Loaded | None:
    """Read a leaf and its case, unlocked. None: there is no such leaf (it ended, or never was).

    `lean`: large variables of a narrow snapshot are left in the database (`engine.core.values.Later`).
    """
    statement = _READ if whole else straight.READ.get(kind, _READ)
    parameters = {"kind": kind, "leaf_id": leaf_id, "whole": whole, "lean": lean}
    return case_in(cursor_of(conn).execute(statement, parameters).fetchone(), kind, leaf_id, whole)


def lock_case(conn: psycopg.Connection[Any], kind: str, leaf_id: UUID, *, whole: bool = False, lean: bool = False) -> Loaded | None:
    """Lock the root, then the leaf, then read. Inside a transaction that the caller opened."""
    return case_in(cursor_of(conn).execute(_LOCK, (kind, leaf_id, whole, lean)).fetchone(), kind, leaf_id, whole)


@dataclass(frozen=True, slots=True)
class Waiting:
    """A subscription under its lock. `kind`: catch | start."""

    id: UUID
    kind: str
    element_id: str
    token_id: UUID | None
    definition_id: UUID
    definition_status: str
    definition_version: int


@dataclass(frozen=True, slots=True)
class Stored:
    """The oldest stored message for it, looked at, not yet taken."""

    id: UUID
    variables: Mapping[str, Variable]
    correlation_key: str


@dataclass(frozen=True, slots=True)
class Delivery:
    """A delivery job under its locks. No subscription: it received meanwhile, or its definition was replaced."""

    case: Loaded
    subscription: Waiting | None
    message: Stored | None


def lock_delivery(conn: psycopg.Connection[Any], job_id: UUID, *, whole: bool = False) -> Delivery | None:
    """Lock what a delivery of a stored message needs, then read. Inside a transaction that the caller opened."""
    row = cursor_of(conn).execute(locks.DELIVERY, (job_id, whole)).fetchone()
    if row is None or row[0] is None:
        return None
    document = row[0]
    case = case_in((document["case"],), "job", job_id, whole)
    if case is None:
        return None
    return Delivery(case, _waiting(document["subscription"]), _stored(document["message"]))


def _waiting(row: Mapping[str, Any] | None) -> Waiting | None:
    if row is None:
        return None
    token = row["token_id"]
    return Waiting(
        id_of(row["id"]),
        row["kind"],
        row["element_id"],
        None if token is None else id_of(token),
        id_of(row["definition_id"]),
        row["definition_status"],
        row["definition_version"],
    )


def _stored(row: Mapping[str, Any] | None) -> Stored | None:
    if row is None:
        return None
    variables = {name: Variable(value["type"], value["value"]) for name, value in row["variables"].items()}
    return Stored(id_of(row["id"]), variables, row["correlation_key"])


@dataclass(frozen=True, slots=True)
class Reception:
    """The job that brings a signal or a thrown message, under its locks, with who is to have it.

    `case`: of the subscription; None if that is gone, or starts instances. `receiver`: the subscription, if it is still there.
    """

    job: Mapping[str, Any]  # status, lease_number, attempts, tenant_id, element_id, instance_id, payload
    now: datetime
    case: Loaded | None
    receiver: UUID | None
    element_id: str | None  # of the subscription
    definition_id: UUID | None
    definition_status: str | None

    @property
    def variables(self) -> dict[str, Variable]:
        """What came along."""
        return {name: _variable(value) for name, value in self.job["payload"]["variables"].items()}


def lock_reception(conn: psycopg.Connection[Any], job_id: UUID, receiver: UUID | None, *, whole: bool = False) -> Reception | None:
    """Lock what a reception needs, then read. Inside a transaction that the caller opened. None: there is no such job."""
    row = cursor_of(conn).execute(locks.RECEPTION, (job_id, receiver, whole)).fetchone()
    if row is None or row[0] is None:
        return None
    found = row[0]
    subscription = found["subscription"] and id_of(found["subscription"])
    case = None if subscription is None else case_in((found["case"],), "subscription", subscription, whole)
    definition = found["definition_id"] and id_of(found["definition_id"])
    now = datetime.fromisoformat(found["now"])
    return Reception(found["job"], now, case, subscription, found["element_id"], definition, found["definition_status"])


# ---- the batch of a worker


@dataclass(frozen=True, slots=True)
class Work:
    """What the handler of one leased job sees. `idempotency_key` is the same for every attempt (R7).

    `ahead` is the case as the batch was read: with it in the lease's detail (`detail`) a completion need not read again,
    because its write compares the revision.
    """

    job_id: UUID
    kind: str
    topic: str
    element_id: str
    definition_id: UUID | None
    instance_id: UUID | None
    root_id: UUID | None
    business_key: str | None
    tenant_id: str
    variables: Mapping[str, Any]
    inputs: Mapping[str, Any]
    headers: Mapping[str, str]
    attempt: int
    max_attempts: int
    lease_number: int
    lock_first: bool
    held: tuple[str, ...]
    idempotency_key: str
    ahead: Loaded | None = field(default=None, repr=False)

    @property
    def detail(self) -> dict[str, Any]:
        """For `Lease.detail`: how the job is best completed."""
        return {"lock_first": self.lock_first, "ahead": self.ahead}


# By key, as a guard does (locks.py): the index of leases would be read from end to end.
_BATCH = f"""
SELECT l.id, l.kind, l.topic, l.element_id, l.definition_id, l.instance_id, l.root_id, l.tenant_id, l.payload, l.attempts, l.max_attempts,
       l.lease_number, l.lock_first, CASE WHEN {row_is_paused("job", "l")} THEN l.held || '{{paused}}' ELSE l.held END,
       CASE WHEN l.kind IN ('service', 'timer', 'message') AND l.instance_id IS NOT NULL THEN {straight.document("job", "%(lean)s")} END
{straight.leaf_and_case("job")} WHERE l.id = ANY (%(ids)s::uuid[]) AND l.status COLLATE "C" = 'leased'
"""


def load_batch(conn: psycopg.Connection[Any], job_ids: Sequence[UUID]) -> dict[UUID, Work]:
    """What the handlers of these leased jobs need, by job id. A job that is no longer leased is not in it.

    A large variable costs those jobs that see it a second statement, but for the collection of a multi-instance activity:
    in its iterations only an input brings it along (S37).

    `held` not empty: it slipped past a suspension or a pause, and the worker hands it back unspent.
    """
    found: dict[UUID, Work] = {}
    unread: dict[UUID, frozenset[str]] = {}  # jobs with the names of what they shall not see
    for row in cursor_of(conn).execute(_BATCH, {"lean": True, "ids": ids(job_ids)}).fetchall():
        ahead = case_in((row[-1],), "job", row[0], False)
        seen, hidden = _seen(ahead)
        if any(isinstance(variable, Later) for variable in seen.values()):
            unread[row[0]] = hidden
        else:
            found[row[0]] = _work(row, ahead, seen)
    if unread:
        for row in cursor_of(conn).execute(_BATCH, {"lean": False, "ids": ids(unread)}).fetchall():
            ahead = case_in((row[-1],), "job", row[0], False)
            seen, _ = _seen(ahead)
            found[row[0]] = _work(row, ahead, {name: variable for name, variable in seen.items() if name not in unread[row[0]]})
    return found


def _work(row: Sequence[Any], ahead: Loaded | None, seen: Mapping[str, Variable]) -> Work:
    job_id, kind, topic, element_id, definition_id, instance_id, root_id, tenant_id, payload, *rest = row
    attempts, most, number, lock_first, held, _ = rest
    snapshot = ahead.snapshot if ahead is not None else None
    return Work(
        job_id=job_id,
        kind=kind,
        topic=topic,
        element_id=element_id,
        definition_id=definition_id,
        instance_id=instance_id,
        root_id=root_id,
        business_key=snapshot.business_key if snapshot is not None else None,
        tenant_id=tenant_id,
        variables={name: native(variable) for name, variable in seen.items()},
        inputs={name: native(_variable(value)) for name, value in payload.get("inputs", {}).items()},
        headers=payload.get("headers", {}),
        attempt=attempts,
        max_attempts=most,
        lease_number=number,
        lock_first=lock_first,
        held=tuple(held),
        idempotency_key=str(job_id),
        ahead=ahead,
    )


def _seen(ahead: Loaded | None) -> tuple[dict[str, Variable], frozenset[str]]:
    """The variables that the token sees, those of an inner scope hiding those of an outer one; and the names left out.

    Left out are the large collections of the loops around it.
    """
    seen: dict[str, Variable] = {}
    collections: set[str] = set()
    snapshot = ahead.snapshot if ahead is not None else None
    token = snapshot.tokens.get(ahead.leaf.token_id) if snapshot is not None and ahead is not None and ahead.leaf.token_id else None
    scope = snapshot.scopes.get(token.scope_id) if snapshot is not None and token is not None else None
    while snapshot is not None and scope is not None:
        seen = {**scope.variables, **seen}
        collections.update(scope.counters.get("over", ()))
        scope = snapshot.scopes.get(scope.parent_id) if scope.parent_id is not None else None
    hidden = frozenset(name for name, variable in seen.items() if name in collections and isinstance(variable, Later))
    return {name: variable for name, variable in seen.items() if name not in hidden}, hidden


# ---- documents into values


def case_in(row: Sequence[Any] | None, kind: str, leaf_id: UUID, whole: bool) -> Loaded | None:
    """The case in the document of a read; None if there is none."""
    if row is None or row[0] is None:
        return None
    document = row[0]
    leaf, instance = document["leaf"], document["instance"]
    token_id = leaf.get("token_id")
    return Loaded(
        leaf=Leaf(
            kind=kind,
            id=leaf_id,
            status=leaf["status"],
            fence=leaf.get("fence"),
            element_id=leaf.get("element_id", ""),
            token_id=None if token_id is None else id_of(token_id),
            detail=leaf,
        ),
        snapshot=None if instance is None else _snapshot(document, instance, whole),
        now=datetime.fromisoformat(document["now"]),
        instance_status=instance and instance["status"],
        root_status=instance and instance["root_status"],
        mark=instance and instance["mark"],
        ended_at=moment(instance["ended_at"]) if instance else None,
        ended_by=instance and instance["ended_by"],
    )


def _snapshot(document: Mapping[str, Any], instance: Mapping[str, Any], whole: bool) -> Snapshot:
    scopes = [_scope(*row, home=(document.get("homes") or {}).get(row[0])) for row in document["scopes"] or ()]
    remembered = {**(document.get("memories") or {}), **(document.get("quiet_memories") or {})}
    tokens = [_token(*row, memory=remembered.get(row[0])) for row in (*(document["tokens"] or ()), *(document.get("joining") or ()))]
    return Snapshot(
        tenant_id=instance["tenant_id"],
        instance_id=id_of(instance["id"]),
        root_id=id_of(instance["root_id"]),
        definition_id=id_of(instance["definition_id"]),
        business_key=instance["business_key"],
        revision=instance["revision"],
        scopes={scope.id: scope for scope in scopes},
        tokens={token.id: token for token in tokens},
        crowded=frozenset(map(id_of, document.get("crowded") or ())),
        other_leaves=bool(document.get("other_leaves")),
        whole=whole,
        tasks=tuple(OpenTask(id_of(row[0]), id_of(row[1]), row[2]) for row in document.get("tasks") or ()),
        signals=tuple(OpenSignal(id_of(row[0]), id_of(row[1]), row[2], row[3]) for row in document.get("signals") or ()),
        started_by=instance["started_by"],
        executions=tuple(_execution(*row) for row in document.get("executions") or ()),
        others=tuple(InstanceState(id_of(row[0]), id_of(row[1]), row[2], row[3]) for row in document.get("others") or ()),
        takes_turns=bool(instance.get("takes_turns")),
    )


def _scope(
    id: str,
    parent_id: str | None,
    element_id: str | None,
    token_id: str | None,
    variables: Mapping[str, Any] | None,
    counters: Mapping[str, Any],
    *,
    home: str | None,
) -> ScopeState:
    return ScopeState(
        id=id_of(id),
        parent_id=None if parent_id is None else id_of(parent_id),
        element_id=element_id,
        token_id=None if token_id is None else id_of(token_id),
        variables={name: Variable(*typed) if len(typed) == 2 else Later(typed[0]) for name, typed in (variables or {}).items()},
        counters=counters,
        instance_id=None if home is None else id_of(home),
    )


def _token(id: str, scope_id: str, element_id: str, flow_id: str | None, status: str, *, memory: Mapping[str, Any] | None) -> TokenState:
    return TokenState(id_of(id), id_of(scope_id), element_id, flow_id, status, memory)


def _execution(
    id: str, scope_id: str | None, within_id: str | None, element_id: str, number: int, variables: Mapping[str, Any]
) -> ExecutionState:
    return ExecutionState(
        id=id_of(id),
        scope_id=None if scope_id is None else id_of(scope_id),
        within_id=None if within_id is None else id_of(within_id),
        element_id=element_id,
        number=number,
        variables={name: _variable(value) for name, value in variables.items()},
    )


def _variable(value: Any) -> Variable:
    """An input as the core stored it in the payload, or a variable of an execution: {"type", "value"}."""
    return Variable(value["type"], value["value"])


def moment(text: str | None) -> datetime | None:
    """A timestamp out of a JSON document."""
    return None if text is None else datetime.fromisoformat(text)
