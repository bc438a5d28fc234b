"""Leases in hand: renew them, hand them back, take one away. Fenced by id, status and lease number (R4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from psycopg import errors

from engine.commands.may import may
from engine.commands.outcome import Actor, ItemReleased, Lease, Refusal, Rejected, Renewed
from engine.commands.requests import WRITE_REQUEST, encode, is_repeat, recorded, refuse, request_for
from engine.commands.transaction import Connection, command, transaction
from engine.core.effects import InvariantBroken
from engine.db.acquire import WORK, renew_leases
from engine.db.locks import EXCLUSIVE, GIVES_UP, TURN
from engine.db.pauses import row_is_paused
from engine.db.session import cursor_of
from engine.db.taken_back import FRONT, release_by_operator_sql
from engine.failpoints import commit_point
from engine.ids import new_id
from engine.text import shortened

REASON_LENGTH = 500
LATER = 10.0  # seconds until what was refused for its case's sake is free again
LOOKS = 20  # how often a lease may change hands between a write that missed and the read that says why


@command
def renew(conn: Connection, leases: Iterable[Lease], *, lease_seconds: float | None = None) -> Renewed:
    """Move the expiry of leases on, by as long as they were acquired for or by `lease_seconds`.

    A lease that is neither renewed nor lost has its row locked by somebody right now: renew it at the next tick.
    Locks: the leased rows, SKIP LOCKED. Refuses: nothing; what is gone is in `lost`.
    """
    wanted: dict[str, list[Lease]] = {}
    for lease in leases:
        wanted.setdefault(lease.kind, []).append(lease)
    expires_at: dict[UUID, datetime] = {}
    lost: set[UUID] = set()
    for kind, held in wanted.items():
        asked = [(lease.item_id, lease.number, lease_seconds, lease.expires_at) for lease in held]
        extended = renew_leases(conn, WORK[kind], asked)
        expires_at |= extended.expires_at
        lost |= extended.lost
    return Renewed(expires_at, frozenset(lost))


@command
def release(
    conn: Connection, lease: Lease, *, actor: str = "engine", because: Refusal | None = None, started: bool = False
) -> ItemReleased | Rejected:
    """Hand back an item that was not started: the attempt is given back, so a rolling deployment spends none (R5).

    It goes to the front, as what was recovered does: it has waited already, and is due from now on.

    `because`: it may not go on now (its case is suspended or being cancelled, its definition suspended). That is no
    attempt either, even if the handler ran; it is free again after `LATER` seconds, in its place.

    Locks: the item. Refuses: LEASE_LOST.
    """
    to_front = because is None and not started
    if release_item(conn, lease, actor, because=because, started=started, to_front=to_front) or was_released(conn, lease):
        return ItemReleased(lease.item_id)
    rejected: Rejected = refuse(conn, "release", actor, "", Rejected(Refusal.LEASE_LOST, item_id=lease.item_id))
    return rejected


@command
def release_by_operator(
    conn: Connection, kind: str, item_id: UUID, *, actor: Actor, reason: str, request_id: str | None
) -> ItemReleased | Rejected:
    """Take a lease from its holder, who may be running: the attempt is spent, as by an expiry.

    Locks: the item; before it the root, for exclusive work in its last attempt. Refuses: NOT_ALLOWED, NOT_FOUND, NOT_LEASED.
    """
    if not may(actor, "release", kind):
        return Rejected(Refusal.NOT_ALLOWED)
    request = request_for(actor, request_id, "release", [kind, item_id], reason)
    values: dict[str, Any] = {
        "item_id": item_id,
        "tenant_id": actor.tenant_id,
        "actor": actor.username,
        "reason": shortened(reason, REASON_LENGTH),
        "incidents": [new_id()],
    }
    if request is not None:
        values.update(request.params(), outcome=encode(ItemReleased(item_id)))
    for _ in range(LOOKS):
        if _take_away(conn, kind, values, request is not None):
            return ItemReleased(item_id)
        answer: ItemReleased | Rejected | None = recorded(conn, request)
        if answer is not None:
            return answer
        found = conn.execute(_STATUS[kind], (item_id, actor.tenant_id)).fetchone()
        if found is None:
            return Rejected(Refusal.NOT_FOUND)
        if found[1] and _take_away_in_turn(conn, kind, values, request is not None):
            return ItemReleased(item_id)
        if found[0] != "leased":
            rejected = Rejected(Refusal.NOT_LEASED, f"expected leased, found {found[0]}", item_id=item_id)
            first: ItemReleased | Rejected = refuse(conn, "release", actor.username, actor.tenant_id, rejected, request)
            return first
        # Leased again while we waited, under a number that our statement's snapshot did not have.
    raise InvariantBroken(f"release of {kind} {item_id}: expected a lease or none within {LOOKS} looks, found neither")


def _take_away(conn: Connection, kind: str, values: dict[str, Any], requested: bool) -> bool:
    """Run the one statement. False: its guard found nothing, or this request was done before."""
    try:
        with commit_point(conn, "command.before_commit"):
            return cursor_of(conn).execute(_TAKE_AWAY[kind][requested], values).fetchone() is not None
    except errors.UniqueViolation as error:
        if not is_repeat(error):
            raise
        return False


def _take_away_in_turn(conn: Connection, kind: str, values: dict[str, Any], requested: bool) -> bool:
    """The same of exclusive work in its last attempt: the next one's turn has come."""
    try:
        with transaction(conn):
            row = cursor_of(conn).execute(_TAKE_AWAY_IN_TURN[kind][requested], values).fetchone()
            if row is not None:
                cursor_of(conn).execute(TURN, {"root_id": row[3]})
    except errors.UniqueViolation as error:
        if not is_repeat(error):
            raise
        return False
    return row is not None


def release_item(
    conn: Connection, lease: Lease, actor: str, *, because: Refusal | None = None, started: bool = False, to_front: bool = False
) -> bool:
    """Hand it back if it is still held under this lease. Work of a case that is being cancelled is held from then on.

    `to_front`: not for whoever chooses what to do; it would be given the same again and again.
    """
    values = {
        "item_id": lease.item_id,
        "number": lease.number,
        "actor": actor,
        "wait": 0.0 if because is None else LATER,
        "because": because and because.value,
        "unstarted": not started,
        "to_front": to_front,
    }
    with commit_point(conn, "command.before_commit"):
        return cursor_of(conn).execute(_RELEASE[lease.kind], values).fetchone() is not None


def was_released(conn: Connection, lease: Lease) -> bool:
    """Whether this very lease was handed back before: a repeat after a lost connection is harmless."""
    row = conn.execute(
        "SELECT FROM history WHERE item_id = %s AND kind = %s AND (data->>'lease_number')::bigint = %s",
        (lease.item_id, f"{lease.kind}_released", lease.number),
    ).fetchone()
    return row is not None


# A cancel is never taken back, so the mark may be read unlocked. Deliveries are still sent, and the cancel's own job goes on.
_CANCELLING = "'cancelling' FROM process_instance r WHERE r.id = j.root_id AND r.mark = 'cancelling'"
# A pause may be: who takes it back looks again after a while (baton_free_paused).
_PAUSED = " || ARRAY(SELECT 'paused' WHERE NOT j.held @> '{{paused}}' AND {paused})"
_HELD = {
    "job": f"j.held || ARRAY(SELECT {_CANCELLING} AND j.kind <> 'cancel')",
    "external_task": f"j.held || ARRAY(SELECT {_CANCELLING})",
    "delivery": "j.held",
}
_HELD = {table: held + _PAUSED.format(paused=row_is_paused(table, "j")) for table, held in _HELD.items()}
_RELEASE = {
    table: f"""
WITH leaf AS (
  UPDATE {table} j SET status = 'available', attempts = j.attempts - 1, held = {_HELD[table]},
    available_at = baton_clock() + make_interval(secs => %(wait)s::float8),
    level = CASE WHEN %(to_front)s::boolean THEN {FRONT} ELSE j.level END, lease_owner = NULL, lease_expires_at = NULL, leased_at = NULL
  WHERE j.id = %(item_id)s AND j.status COLLATE "C" = 'leased' AND j.lease_number = %(number)s
  RETURNING j.*
), event AS (
  INSERT INTO history (at, tenant_id, root_id, instance_id, definition_id, kind, element_id, actor, item_id, data)
  SELECT baton_clock(), tenant_id, root_id, instance_id, definition_id, '{table}_released', element_id, %(actor)s, id,
    jsonb_strip_nulls(jsonb_build_object('lease_number', lease_number, 'attempt', attempts + 1,
      'unstarted', %(unstarted)s::boolean, 'because', %(because)s::text))
  FROM leaf
)
SELECT id FROM leaf
"""
    for table in WORK
}

_STATUS = {
    table: f"SELECT j.status, {GIVES_UP.format(alias='j') if table in EXCLUSIVE else 'false'} FROM {table} j"
    " WHERE j.id = %s AND j.tenant_id = %s"
    for table in WORK
}


def _with_request(statement: Callable[[str], str]) -> tuple[str, str]:
    """Without and with a request row."""
    return statement(""), statement(f", press AS ({WRITE_REQUEST.format(outcome='%(outcome)s::jsonb', source='back')})")


_TAKE_AWAY = {table: _with_request(partial(release_by_operator_sql, table)) for table in WORK}
_TAKE_AWAY_IN_TURN = {table: _with_request(partial(release_by_operator_sql, table, in_turn=True)) for table in EXCLUSIVE}
