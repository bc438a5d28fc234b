"""Request ids (R10): the same press twice has one effect and one answer.

A `request` row is keyed by (tenant, actor, id, hash of command, target and payload) and holds the outcome as JSON.
A win writes it in the command's own transaction, as the last member of the writing statement (`WRITE_REQUEST`, where
23505 means a repeat) or right after the root lock (`reserve`, then `SETTLE_REQUEST`). A refusal writes it in a
transaction of its own, after the rollback (`refuse`). Whichever row was inserted first is the answer.

Not recorded: invalid input, and refusals that `may` gives, because `may` is asked again before any replay.
"""

from __future__ import annotations

import hashlib
import json
import types
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from datetime import datetime
from enum import Enum
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints
from uuid import UUID

import orjson
from psycopg import errors

from engine.bpmn.definition import Problem
from engine.commands import outcome as outcomes
from engine.commands.outcome import Actor, Refusal, Rejected
from engine.commands.transaction import Connection, transaction
from engine.core.values import Variable
from engine.frozen import dataclass

_ASKED = orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_DATACLASS
_OUTCOME = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_NON_STR_KEYS

JUDGED_AFRESH = frozenset({Refusal.INVALID, Refusal.UNSUPPORTED, Refusal.NOT_FOUND, Refusal.NOT_ALLOWED})
SUSPENDED = frozenset({Refusal.INSTANCE_SUSPENDED, Refusal.ALREADY_SUSPENDED, Refusal.DEFINITION_SUSPENDED})

# Members and statements for writers. Parameters: `Request.params()`, and `outcome`, a jsonb document.
WRITE_REQUEST = (
    "INSERT INTO request (tenant_id, actor, id, hash, outcome, created_at)"
    " SELECT %(request_tenant)s, %(request_actor)s, %(request_id)s, %(request_hash)s, {outcome}, baton_clock() FROM {source}"
)
SETTLE_REQUEST = (
    "UPDATE request SET outcome = {outcome} WHERE tenant_id = %(request_tenant)s AND actor = %(request_actor)s"
    " AND id = %(request_id)s AND hash = %(request_hash)s"
)
_FIND = (
    "SELECT outcome FROM request WHERE tenant_id = %(request_tenant)s AND actor = %(request_actor)s"
    " AND id = %(request_id)s AND hash = %(request_hash)s"
)
_INSERT = (
    "INSERT INTO request (tenant_id, actor, id, hash, outcome, created_at)"
    " VALUES (%(request_tenant)s, %(request_actor)s, %(request_id)s, %(request_hash)s, %(outcome)s::jsonb, baton_clock())"
    " ON CONFLICT ON CONSTRAINT pk_request DO NOTHING RETURNING 1"
)
_REFUSAL = (
    "INSERT INTO refusal (at, tenant_id, actor, command, item_id, reason, detail) VALUES (baton_clock(), %s, %s, %s, %s, %s, %s::jsonb)"
)
# `id`: a version or a root instance, or something that belongs to one.
_BY_WHOM = """
SELECT s.suspended_by, p.display_name, s.suspended_at, s.reason
FROM suspension s LEFT JOIN person p ON p.tenant_id = s.tenant_id AND p.username = s.suspended_by
WHERE s.object_id = coalesce((SELECT root_id FROM process_instance WHERE id = %(id)s),
  (SELECT root_id FROM user_task WHERE id = %(id)s), (SELECT root_id FROM job WHERE id = %(id)s),
  (SELECT root_id FROM external_task WHERE id = %(id)s), (SELECT root_id FROM subscription WHERE id = %(id)s),
  (SELECT root_id FROM token WHERE id = %(id)s), %(id)s)
"""


@dataclass(frozen=True, slots=True)
class Request:
    """The key of one request."""

    tenant_id: str
    actor: str
    id: str
    hash: str

    def params(self) -> dict[str, str]:
        """What `WRITE_REQUEST` and `SETTLE_REQUEST` take, `outcome` apart."""
        return {
            "request_tenant": self.tenant_id,
            "request_actor": self.actor,
            "request_id": self.id,
            "request_hash": self.hash,
        }


def request_for(actor: Actor, request_id: str | None, command: str, target: Any, payload: Any = None) -> Request | None:
    """The key of this request, or None without an id. `target`: what it is done to; `payload`: JSON values, ids, dates."""
    if request_id is None:
        return None
    asked = [command, target, payload]
    try:
        text = orjson.dumps(asked, default=_jsonable, option=_ASKED)
    except TypeError:
        # What orjson cannot write, such as whole numbers beyond 64 bits, is refused later; its hash must exist all the same.
        text = json.dumps(asked, default=_jsonable, sort_keys=True).encode()
    return Request(actor.tenant_id, actor.username, request_id, hashlib.sha256(text).hexdigest())


def recorded(conn: Connection, request: Request | None) -> Any | None:
    """The outcome recorded under this key, or None. Ask `may` before it is given to anyone."""
    if request is None:
        return None
    row = conn.execute(_FIND, request.params()).fetchone()
    return None if row is None else decode(row[0])


def reserve(conn: Connection, request: Request) -> Any | None:
    """Insert the row inside the open transaction, its outcome to be settled before the commit; None: it is ours.

    Otherwise the outcome that was recorded first: nothing may be done. Waits while a repeat is in flight.
    """
    if conn.execute(_INSERT, {**request.params(), "outcome": "{}"}).fetchone() is not None:
        return None
    # A new statement, so that it sees what it waited for. Rolled back meanwhile cannot be: then the INSERT had gone in.
    return recorded(conn, request)


def refuse(conn: Connection, command: str, actor: str, tenant_id: str, rejected: Rejected, request: Request | None = None) -> Any:
    """Record a refusal after the rollback, in a transaction of its own, and return what the caller must answer.

    With a request id that is the outcome under this key, which may be that of a repeat that came first. Without one
    the refusal is counted in `refusal`.
    """
    if rejected.refusal in JUDGED_AFRESH:
        return rejected
    if rejected.refusal in SUSPENDED:
        rejected = _by_whom(conn, rejected)
    if request is None:
        detail = orjson.dumps({"detail": rejected.detail, "by": rejected.by}).decode()
        conn.execute(_REFUSAL, (tenant_id, actor, command, rejected.item_id, rejected.refusal.value, detail))
        return rejected
    return record(conn, request, rejected)


def _by_whom(conn: Connection, rejected: Rejected) -> Rejected:
    """Who suspended it, when and why. Read when the refusal is told, and only then: no command that succeeds pays for it."""
    row = conn.execute(_BY_WHOM, {"id": rejected.item_id}).fetchone()
    if row is None:
        return rejected
    by, by_name, at, reason = row
    return replace(rejected, by=by, by_name=by_name, at=at, detail=rejected.detail or reason)


def record(conn: Connection, request: Request | None, outcome: Any) -> Any:
    """Record an outcome that changed nothing, in a transaction of its own; returns the one that came first."""
    if request is None or conn.execute(_INSERT, {**request.params(), "outcome": encode(outcome)}).fetchone() is not None:
        return outcome
    return recorded(conn, request) or outcome


def once(conn: Connection, request: Request | None, write: Callable[[], Any]) -> Any:
    """What `write` answers in a transaction of its own, or the answer of a repeat that came first.

    `write` inserts the request row together with what it changes: a repeat undoes both.
    """
    try:
        with transaction(conn):
            return write()
    except errors.UniqueViolation as error:
        if not is_repeat(error):
            raise
    first = recorded(conn, request)
    return first if first is not None else once(conn, request, write)  # cleared away between the two: judged afresh


def is_repeat(error: errors.UniqueViolation) -> bool:
    """Whether a 23505 says that this request was done before (and not that some other key is taken)."""
    return error.diag.constraint_name == "pk_request"


# ---- outcomes as JSON, both ways


def encode(outcome: Any) -> str:
    """An outcome as JSON text: {"type": class name, field: value, …}."""
    return orjson.dumps(_fields(outcome), default=_plain, option=_OUTCOME).decode()


def decode(document: Mapping[str, Any]) -> Any:
    """The outcome that `encode` made this of. Raises KeyError for a type that outcome.py does not have."""
    cls = _classes()[document["type"]]
    hints = _hints(document["type"])
    return cls(**{name: _typed(hints[name], value) for name, value in document.items() if name != "type"})


@cache
def _classes() -> dict[str, type[Any]]:
    found = {name: cls for name, cls in vars(outcomes).items() if isinstance(cls, type) and is_dataclass(cls)}
    return {**found, "Problem": Problem}


@cache
def _hints(name: str) -> dict[str, Any]:
    return get_type_hints(_classes()[name])


def _plain(value: Any) -> Any:
    """What orjson does not write by itself, or not as we want it. Ids, times and enums it does."""
    if is_dataclass(value) and not isinstance(value, type):
        return _fields(value)
    match value:
        case Mapping():
            return {str(key): item for key, item in value.items()}
        case frozenset():
            return sorted(value)
    raise TypeError(f"expected part of an outcome, found {type(value).__name__}")


def _fields(value: Any) -> dict[str, Any]:
    cls = value.__class__
    return {"type": cls.__name__, **{name: getattr(value, name) for name in _names(cls)}}


@cache
def _names(cls: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(cls))


def _typed(hint: Any, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, dict) and "type" in value and value["type"] in _classes():
        return decode(value)
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _typed(next(kind for kind in inner if kind is not type(None)), value)
    if origin is tuple:
        return tuple(_typed(inner[0], item) for item in value)
    if origin is frozenset:
        return frozenset(_typed(inner[0], item) for item in value)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {_typed(inner[0], key): _typed(inner[1], item) for key, item in value.items()}
    if hint is UUID:
        return UUID(value)
    if hint is datetime:
        return datetime.fromisoformat(value)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint(value)
    return value


def _jsonable(value: Any) -> Any:
    if isinstance(value, Variable):
        return [value.type, value.value]
    if isinstance(value, frozenset | set):
        return sorted(map(str, value))
    return str(value)
