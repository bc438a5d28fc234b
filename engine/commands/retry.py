"""A person gives new attempts to what rests as failed beside an incident.

A job, an external task or a delivery is one leaf and one statement: the attempts, the incident, the history and the
audit change together or not at all, so a job without attempts is never free and an incident never stands alone. A token
that could not go on tries again in a step of its case.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from psycopg import errors

from engine.commands.audit import Audit
from engine.commands.may import may
from engine.commands.outcome import Actor, FieldProblem, ItemRetried, Refusal, Rejected
from engine.commands.requests import WRITE_REQUEST, Request, encode, is_repeat, recorded, request_for
from engine.commands.step import Repeated, Step, answer, marked, take
from engine.commands.transaction import Connection, command, transaction
from engine.core.snapshot import Retried
from engine.db.acquire import WORK
from engine.db.load import Loaded
from engine.db.locks import EXCLUSIVE, ROOT_OF_ITEM, TURN
from engine.db.session import cursor_of
from engine.failpoints import commit_point

MOST_ATTEMPTS = 100


@command
def retry_item(
    conn: Connection, kind: str, item_id: UUID, *, actor: Actor, attempts: int = 1, request_id: str | None = None
) -> ItemRetried | Rejected:
    """Let what failed be tried again, `attempts` times at least once. `kind`: job | external_task | delivery | token.

    Locks: the item; for a token, and for exclusive work, the root before it. Refuses: NOT_ALLOWED, INVALID, NOT_FOUND, INSTANCE_… (tokens),
    NOT_FAILED with whoever was first.
    """
    if not may(actor, "retry", kind):
        return Rejected(Refusal.NOT_ALLOWED)
    if not 1 <= attempts <= MOST_ATTEMPTS:
        problem = FieldProblem("attempts", f"expected 1 to {MOST_ATTEMPTS}, found {attempts}")
        return Rejected(Refusal.INVALID, problem.message, problems=(problem,), item_id=item_id)
    request = request_for(actor, request_id, "retry_item", [kind, item_id], attempts)
    retry = _retry_token if kind == "token" else _retry_work
    outcome: ItemRetried | Rejected = retry(conn, kind, item_id, actor, attempts, request)
    return outcome


# ---- leased work


def _retry_work(conn: Connection, kind: str, item_id: UUID, actor: Actor, attempts: int, request: Request | None) -> Any:
    values: dict[str, Any] = {"item_id": item_id, "tenant_id": actor.tenant_id, "actor": actor.username, "attempts": attempts}
    if request is not None:
        values.update(request.params(), outcome=encode(ItemRetried(item_id, attempts)))
    try:
        with commit_point(conn, "command.before_commit"):
            row = cursor_of(conn).execute(_RETRY[kind][request is not None], values).fetchone()
        if row is not None and row[1]:
            row = _retry_in_turn(conn, kind, values, request is not None)
    except errors.UniqueViolation as error:
        if not is_repeat(error):
            raise
        row = None
    if row is not None:
        return ItemRetried(item_id, attempts)
    first = recorded(conn, request)
    return first or answer(conn, "retry_item", actor, _not_failed(conn, kind, item_id, actor), request)


def _retry_in_turn(conn: Connection, kind: str, values: dict[str, Any], requested: bool) -> Any:
    """Exclusive work waits for its turn, which it may have at once: decided under the root's lock."""
    with transaction(conn):
        row = cursor_of(conn).execute(_RETRY_IN_TURN[kind][requested], values).fetchone()
        if row is not None:
            cursor_of(conn).execute(TURN, {"root_id": row[2]})
    return row


def _not_failed(conn: Connection, kind: str, item_id: UUID, actor: Actor) -> Rejected:
    """Why not: there is, or was, no such item; or it is not failed any more, and who gave it attempts."""
    found = conn.execute(f"SELECT status FROM {WORK[kind].table} WHERE id = %s AND tenant_id = %s", (item_id, actor.tenant_id)).fetchone()
    before = conn.execute(
        _BEFORE, (item_id, actor.tenant_id, [f"{kind}_{what}" for what in ("retried", "completed", "skipped")])
    ).fetchone()
    if found is None and before is None:
        return Rejected(Refusal.NOT_FOUND)
    state = found[0] if found else "ended"
    by, at = before or (None, None)
    return Rejected(Refusal.NOT_FAILED, f"expected failed, found {state}", by, at=at, item_id=item_id)


_BEFORE = "SELECT actor, at FROM history WHERE item_id = %s AND tenant_id = %s AND kind = ANY (%s) ORDER BY id DESC LIMIT 1"


def _statements(table: str, *, in_turn: bool = False) -> tuple[str, str]:
    """Without and with a request row. The new attempts come on top of those that are spent: the count never goes back.

    `in_turn`: of exclusive work, under the root's lock; else that is left alone, and told.
    """
    which = "l.id = %(item_id)s AND l.tenant_id = %(tenant_id)s AND l.status = 'failed'"
    root, waits, keeps, told = "", "", "", ""
    if in_turn:
        root = f"{ROOT_OF_ITEM.format(table=table)},\n"
        waits = ", held = array_append(l.held, 'exclusive') FROM root"
    elif table in EXCLUSIVE:
        keeps, told = " AND NOT l.exclusive", f" UNION ALL SELECT l.id, true, l.root_id FROM {table} l WHERE {which} AND l.exclusive"
    text = f"""
WITH {root}leaf AS (
  UPDATE {table} l SET status = 'available', max_attempts = l.attempts + %(attempts)s, available_at = baton_clock(),
    level = l.priority{waits}
  WHERE {which}{keeps} RETURNING l.*
), resolved AS (
  DELETE FROM incident i USING leaf WHERE i.{table}_id = leaf.id RETURNING i.id
), event AS (
  INSERT INTO history (at, tenant_id, root_id, instance_id, definition_id, kind, element_id, actor, item_id, data)
  SELECT available_at, tenant_id, root_id, instance_id, definition_id, e.kind, element_id, %(actor)s, id,
    jsonb_build_object('attempts_left', %(attempts)s::int, 'attempt', attempts, 'lease_number', lease_number,
      'incident_id', (SELECT id FROM resolved))
  FROM leaf CROSS JOIN LATERAL (VALUES ('{table}_retried'), ('incident_resolved')) AS e (kind)
  WHERE e.kind <> 'incident_resolved' OR EXISTS (SELECT FROM resolved)
), noted AS (
  INSERT INTO audit (at, tenant_id, actor, action, object_kind, object_id, detail)
  SELECT available_at, tenant_id, %(actor)s, 'retry', '{table}', id::text, jsonb_build_object('attempts', %(attempts)s::int) FROM leaf
)"""
    request = f", press AS ({WRITE_REQUEST.format(outcome='%(outcome)s::jsonb', source='leaf')})"
    end = f" SELECT id, false, root_id FROM leaf{told}"
    return text + end, text + request + end


_RETRY = {table: _statements(table) for table in WORK}
_RETRY_IN_TURN = {table: _statements(table, in_turn=True) for table in EXCLUSIVE}


# ---- tokens


def _retry_token(conn: Connection, kind: str, item_id: UUID, actor: Actor, attempts: int, request: Request | None) -> Any:
    step = Step(
        kind="token",
        leaf_id=item_id,
        actor=actor.username,
        judge=lambda loaded: _judge_token(loaded, item_id, actor),
        trigger=lambda _: Retried(item_id),
        outcome=lambda _, __: ItemRetried(item_id, attempts),
        request=request,
        lock_first=True,
        audit=Audit("retry", "token", item_id, detail={"attempts": attempts}),
    )
    match take(conn, step):
        case Rejected() as rejected:
            first = recorded(conn, request)
            return first or answer(conn, "retry_item", actor, _moved_on(conn, item_id, actor, rejected), request)
        case Repeated() as repeated:
            return repeated.outcome
        case _:
            return ItemRetried(item_id, attempts)


def _moved_on(conn: Connection, item_id: UUID, actor: Actor, rejected: Rejected) -> Rejected:
    """A token that is not failed, or not there any more, because somebody let it go on: who, and when."""
    if rejected.refusal not in (Refusal.NOT_FAILED, Refusal.NOT_FOUND):
        return rejected
    before = conn.execute(_BEFORE, (item_id, actor.tenant_id, ["incident_resolved"])).fetchone()
    if before is None:
        return rejected
    return Rejected(Refusal.NOT_FAILED, rejected.detail or "expected failed, found ended", before[0], at=before[1], item_id=item_id)


def _judge_token(loaded: Loaded | None, item_id: UUID, actor: Actor) -> Rejected | None:
    if loaded is None or loaded.snapshot is None or loaded.snapshot.tenant_id != actor.tenant_id:
        return Rejected(Refusal.NOT_FOUND)
    if refused := marked(loaded):
        return refused
    if loaded.leaf.status != "failed":
        return Rejected(Refusal.NOT_FAILED, f"expected failed, found {loaded.leaf.status}", item_id=item_id)
    return None
