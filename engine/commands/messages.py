"""Publisher meets subscriber.

A publisher takes the exclusive lock of its message key, looks in the next statement who waits, and if nobody does it
stores the message with its time to live, all in one transaction that holds nothing else. If somebody does, it rolls
that transaction back and correlates in the ordinary order: root, subscription, re-check, keys. When the subscription is
gone by then, it looks again.

One order, documented: an instance that waits wins over a start event, and among several the oldest subscription wins.
Keys are compared as text: the number 42 and the text "42" are one key. A start event takes a message of any key, which
becomes the business key. Who waits in a suspended case, or a start event of a
suspended version, has it neither now nor later: the sender is told. A message has
expired when its time says so, whether or not upkeep has deleted it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any
from uuid import UUID

import orjson
from psycopg import errors

from engine.commands.correlation import LOOK_START, Criteria, ambiguous, criteria_of
from engine.commands.may import may
from engine.commands.outcome import Actor, FieldProblem, MessageKnown, MessagePublished, Refusal, Rejected
from engine.commands.receipts import FIND_KNOWN, LOOK_UNKNOWN, Receipt, id_problem, is_known, known, receipt_of
from engine.commands.requests import WRITE_REQUEST, Request, encode, is_repeat, record, recorded, request_for
from engine.commands.start import MAX_BUSINESS_KEY, Begun, NewCase, begin
from engine.commands.step import Repeated, Step, Taken, answer, marked, take
from engine.commands.transaction import Connection, command, transaction
from engine.core.effects import Event, InvariantBroken
from engine.core.reading import as_text
from engine.core.snapshot import EventOccurred
from engine.core.values import Variable, accept
from engine.db.definitions import DefinitionRefused, compiled
from engine.db.load import Loaded
from engine.db.locks import PUBLISHER_KEYS
from engine.db.receipts import receipt
from engine.db.session import cursor_of
from engine.ids import new_id

LOOKS = 100  # how often the one who waits may be gone when it is to receive
MAX_NAME = 255  # characters of a message name
MAX_TIME_TO_LIVE = 366 * 24 * 3600.0  # seconds
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@command
def publish_message(
    conn: Connection,
    name: str,
    *,
    actor: Actor,
    correlation_key: Any = "",
    variables: Mapping[str, Any],
    time_to_live_seconds: float | None = None,
    message_id: str | None = None,
    business_key: str | None = None,
    instance_id: UUID | None = None,
    correlation_variables: Mapping[str, Any] | None = None,
    request_id: str | None = None,
) -> MessagePublished | MessageKnown | Rejected:
    """Give a message to who waits for it; else store it for `time_to_live_seconds`; without any, refuse it.

    `message_id`: of two with the same name and id the second does nothing (`receipts.py`). `business_key`, `instance_id`,
    `correlation_variables`: criteria for one receiver (`correlation.py`), instead of the key or besides it.

    Locks: the message key, and nothing else; or the root and the subscription; or the definition and its start subscription.
    Refuses: NOT_ALLOWED, INVALID, NO_SUBSCRIPTION, AMBIGUOUS (several meet the criteria), INSTANCE_SUSPENDED and
    DEFINITION_SUSPENDED (of whoever would have it: it is not stored), UNSUPPORTED (the receiver's stored model).
    """
    if not may(actor, "publish", "message"):
        return Rejected(Refusal.NOT_ALLOWED)
    key = as_text(correlation_key)
    criteria = criteria_of(business_key, instance_id, correlation_variables, key)
    accepted, wrong = accept(variables)
    problems = (
        *_problems(name, key, time_to_live_seconds),
        *id_problem(message_id),
        *(criteria.problems(time_to_live_seconds) if criteria else ()),
        *(FieldProblem(f"variables.{field}", text) for field, text in wrong),
    )
    if problems:
        return Rejected(Refusal.INVALID, "; ".join(f"{p.field}: {p.message}" for p in problems), problems=problems)
    # Without an id and criteria the key of a request is what an older release makes of it.
    more = [message_id, criteria.asked() if criteria else None] if message_id or criteria else []
    request = request_for(actor, request_id, "publish_message", [name, key], [variables, time_to_live_seconds, *more])
    kept = receipt_of(name, message_id, key, time_to_live_seconds)
    message = _Message(new_id(), actor, name, key, accepted, time_to_live_seconds or None, request, kept, criteria)
    outcome = _publish(conn, message)
    if isinstance(outcome, Rejected):
        # A repeat of what was correlated finds nobody who waits any more.
        outcome = recorded(conn, request) or answer(conn, "publish_message", actor, outcome, request)
    elif isinstance(outcome, MessageKnown):
        outcome = record(conn, request, outcome)
    result: MessagePublished | MessageKnown | Rejected = outcome
    return result


def name_problem(name: str) -> tuple[FieldProblem, ...]:
    """What is wrong with the name of a message or signal."""
    if not name.strip() or len(name) > MAX_NAME or _CONTROL.search(name):
        return (FieldProblem("name", f"expected 1 to {MAX_NAME} characters without control characters"),)
    return ()


def _problems(name: str, key: str, time_to_live: float | None) -> list[FieldProblem]:
    problems = list(name_problem(name))
    if len(key) > MAX_BUSINESS_KEY or _CONTROL.search(key):
        problems.append(FieldProblem("correlation_key", f"expected at most {MAX_BUSINESS_KEY} characters without control characters"))
    if time_to_live is not None and not 0 <= time_to_live <= MAX_TIME_TO_LIVE:
        problems.append(FieldProblem("time_to_live_seconds", f"expected 0 to {MAX_TIME_TO_LIVE:.0f} seconds, found {time_to_live}"))
    return problems


@dataclass(frozen=True, slots=True)
class _Message:
    id: UUID
    actor: Actor
    name: str
    key: str
    variables: Mapping[str, Variable]
    time_to_live: float | None
    request: Request | None
    receipt: Receipt | None
    criteria: Criteria | None

    @property
    def params(self) -> dict[str, Any]:
        asked = {"tenant_id": self.actor.tenant_id, "name": self.name, "key": self.key}
        return {
            **asked,
            **(self.receipt.asked if self.receipt else {}),
            **(self.criteria.params() if self.criteria else {}),
        }

    def receipt_params(self, outcome: MessagePublished) -> dict[str, Any]:
        """The parameters of the receipt that is written with the effect; none without an id."""
        return self.receipt.params(outcome) if self.receipt else {}

    def event_data(self, subscription_id: UUID) -> dict[str, Any]:
        """What the event of its arrival carries."""
        return {
            "item_id": str(subscription_id),
            "subscription_id": str(subscription_id),
            "message_id": str(self.id),
            "message": self.name,
            "key": self.key,
            **({"sent_id": self.receipt.id} if self.receipt else {}),
            **({"by": self.criteria.shown()} if self.criteria else {}),
        }


@dataclass(frozen=True, slots=True)
class _Receiver:
    """Who waits. `instance_id` None: a start event."""

    subscription_id: UUID
    instance_id: UUID | None
    definition_id: UUID
    element_id: str
    now: datetime
    revision: int | None = None  # of the root when criteria were met; what a variable was is judged by it


def _publish(conn: Connection, message: _Message) -> Any:
    for _ in range(LOOKS):
        try:
            met = _look_or_store(conn, message) if message.criteria is None else _look_by(conn, message, message.criteria)
            if not isinstance(met, _Receiver):
                return met
            receive = _start if met.instance_id is None else _correlate
            outcome = receive(conn, message, met)
        except errors.UniqueViolation as error:
            if is_known(error):
                continue  # the next look finds what the other publisher did
            if not is_repeat(error):
                raise
            return recorded(conn, message.request)
        if outcome is not None:
            return outcome
    raise InvariantBroken(f"message {message.name}: expected a receiver that stays or none within {LOOKS} looks, found neither")


# ---- the publisher's own transaction


class _SomebodyWaits(Exception):
    """Rolls the publisher's transaction back: it must hold nothing while it correlates."""

    def __init__(self, receiver: _Receiver) -> None:
        self.receiver = receiver


def _look_or_store(conn: Connection, message: _Message) -> MessagePublished | MessageKnown | Rejected | _Receiver:
    try:
        with transaction(conn):
            cursor = cursor_of(conn)
            cursor.execute(PUBLISHER_KEYS, message.params)
            # A statement of its own: it sees the subscription that was opened while we waited for the key.
            document, who = _seen(cursor.execute(_LOOK[message.receipt is not None], message.params).fetchone(), message)
            if document is not None:
                return known(document)
            if who is not None and who[-1]:
                return Rejected(Refusal.DEFINITION_SUSPENDED, item_id=who[2])
            if who is not None:
                raise _SomebodyWaits(_Receiver(*who[:-1]))
            if message.time_to_live is None:
                return Rejected(Refusal.NO_SUBSCRIPTION, f"nobody waits for {message.name} with the key {message.key!r}")
            return _store(conn, message)
    except _SomebodyWaits as found:
        return found.receiver


def _seen(row: Any, message: _Message) -> tuple[Any, Any]:
    """(what this very message did before, who waits for it): at most one of them."""
    if message.receipt is None:
        return None, row
    return row[0], row[1:] if row[1] is not None else None


def _look_by(conn: Connection, message: _Message, criteria: Criteria) -> MessageKnown | Rejected | _Receiver:
    """Who meets the criteria. Unlocked: nothing is stored, and who correlates looks at the same revision of the case."""
    cursor = cursor_of(conn)
    if message.receipt is not None and (row := cursor.execute(FIND_KNOWN, message.params).fetchone()) is not None:
        return known(row[0])
    found = cursor.execute(criteria.look, message.params).fetchall()
    if len(found) > 1:
        return ambiguous(message.name, criteria, [(row[1], row[3], *row[-2:]) for row in found])
    if not found and criteria.may_start:
        found = cursor.execute(LOOK_START, message.params).fetchall()
    if not found:
        return Rejected(Refusal.NO_SUBSCRIPTION, f"nobody waits for {message.name} with {criteria.shown()}")
    subscription, instance, definition, element, now, suspended, revision, _, _ = found[0]
    if suspended:
        return Rejected(Refusal.DEFINITION_SUSPENDED, item_id=definition)
    return _Receiver(subscription, instance, definition, element, now, revision if criteria.variables else None)


def _store(conn: Connection, message: _Message) -> MessagePublished:
    """One statement: the request row comes after the look, else it would deadlock with its own repeat."""
    outcome = MessagePublished("stored", message.id)
    values = {
        **message.params,
        "id": message.id,
        "variables": _document(message.variables),
        "actor": message.actor.username,
        "seconds": message.time_to_live,
    }
    if message.request is not None:
        values.update(message.request.params(), outcome=encode(outcome))
    values.update(message.receipt_params(outcome))
    cursor_of(conn).execute(_store_statement(message.request is not None, message.receipt is not None), values)
    return outcome


def _document(variables: Mapping[str, Variable]) -> str:
    return orjson.dumps({name: {"type": v.type, "value": v.value} for name, v in variables.items()}).decode()


# ---- who waits receives, in the ordinary order of locks


def _correlate(conn: Connection, message: _Message, receiver: _Receiver) -> Any:
    """A waiting instance goes on. None: its subscription is gone, or its case is being cancelled; look again."""

    def trigger(loaded: Loaded) -> EventOccurred:
        assert loaded.leaf.token_id is not None, "a catch subscription hangs from a token"
        data = message.event_data(receiver.subscription_id)
        return EventOccurred(loaded.leaf.token_id, loaded.leaf.element_id, "message", message.variables, data)

    done = MessagePublished("correlated", message.id, receiver.instance_id)
    step = Step(
        kind="subscription",
        leaf_id=receiver.subscription_id,
        actor=message.actor.username,
        judge=lambda loaded: _judge(loaded, receiver),
        trigger=trigger,
        outcome=lambda _, __: done,
        request=message.request,
        lock_first=True,
        parameters=message.receipt_params(done),
    )
    match take(conn, step):
        case Taken():
            return done
        case Repeated() as repeated:
            return repeated.outcome
        case Rejected(refusal=Refusal.UNSUPPORTED | Refusal.INSTANCE_SUSPENDED) as rejected:
            return rejected
        case _:
            return None


def _judge(loaded: Loaded | None, receiver: _Receiver) -> Rejected | None:
    if loaded is None or loaded.snapshot is None:
        return Rejected(Refusal.NO_SUBSCRIPTION)
    if receiver.revision is not None and loaded.snapshot.revision != receiver.revision:
        return Rejected(Refusal.NO_SUBSCRIPTION, "the case has moved since its variables were compared")
    return marked(loaded)


def _start(conn: Connection, message: _Message, receiver: _Receiver) -> Any:
    """A start event begins an instance. None: its definition is no longer active, or no longer the newest; look again."""
    try:
        definition = compiled(conn, receiver.definition_id)
    except DefinitionRefused as refused:
        return Rejected(Refusal.UNSUPPORTED, str(refused), problems=refused.problems)
    case = NewCase(
        definition_id=receiver.definition_id,
        definition=definition,
        tenant_id=message.actor.tenant_id,
        element_id=receiver.element_id,
        what="message",
        variables=message.variables,
        business_key=(message.criteria.business_key if message.criteria else message.key) or None,
        started_by=message.actor.username,
        now=receiver.now,
    )

    def outcome(begun: Begun) -> MessagePublished:
        return MessagePublished("correlated", message.id, begun.instance_id, started=True)

    because = Event("message_correlated", receiver.element_id, message.event_data(receiver.subscription_id))
    begun = begin(
        conn,
        case,
        leaf="start_by_message",
        leaf_id=receiver.subscription_id,
        because=because,
        request=message.request,
        outcome=outcome,
        beside=lambda b: message.receipt_params(outcome(b)),
    )
    return None if begun is None else outcome(begun)


# ---- the statements

_COLUMNS = "s.id, s.instance_id, s.definition_id, s.element_id, baton_now() AS now"
LOOK = (
    "SELECT id, instance_id, definition_id, element_id, now, suspended FROM ("
    f"(SELECT {_COLUMNS}, false AS suspended, s.kind FROM subscription s JOIN process_instance r ON r.id = s.root_id"
    " WHERE s.tenant_id = %(tenant_id)s AND s.message_name = %(name)s AND s.correlation_key = %(key)s AND s.kind = 'catch'"
    " AND r.mark IS DISTINCT FROM 'cancelling' ORDER BY s.created_at, s.id LIMIT 1)"
    f" UNION ALL (SELECT {_COLUMNS}, d.status = 'suspended', s.kind FROM subscription s JOIN process_definition d ON d.id = s.definition_id"
    " WHERE s.tenant_id = %(tenant_id)s AND s.message_name = %(name)s AND s.correlation_key = '' AND s.kind = 'start'"
    " ORDER BY d.status, s.created_at, s.id LIMIT 1)) who"  # one that is active first; those of a version that is deleted went with it
    " ORDER BY kind LIMIT 1"  # catch before start
)

_STORED = """
WITH stored AS (
  INSERT INTO message (id, tenant_id, name, correlation_key, variables, published_by, published_at, expires_at)
  SELECT %(id)s, %(tenant_id)s, %(name)s, %(key)s, %(variables)s::jsonb, %(actor)s, c.at, c.at + make_interval(secs => %(seconds)s)
  FROM (SELECT baton_clock() AS at) c RETURNING *
), event AS (
  INSERT INTO history (at, tenant_id, kind, actor, item_id, data)
  SELECT published_at, tenant_id, 'message_stored', published_by, id,
    jsonb_build_object('message', name, 'key', correlation_key, 'expires_at', expires_at)
  FROM stored
)"""
_LOOK = (LOOK, LOOK_UNKNOWN.format(look=LOOK))


@cache
def _store_statement(pressed: bool, has_id: bool) -> str:
    members = [
        f", press AS ({WRITE_REQUEST.format(outcome='%(outcome)s::jsonb', source='stored')})" if pressed else "",
        f", {receipt('stored', 'stored.published_at')}" if has_id else "",
    ]
    return f"{_STORED}{''.join(members)} SELECT id FROM stored"
