"""Pausing work: what is of a kind and topic, of a process, or at an element is not begun until somebody takes the pause back.

A pause is a row, with who and why. It takes effect when it commits: acquisition does not look at a paused topic, what is written
from then on is written held, and the worker's read hands back unspent what it had just leased. What is running ends as it would.
A pause that stops no whole branch of acquisition (of a process, an element, or by another tenant than '') holds what is free already by
a job of kind `hold`, in bounded steps; until that comes to an item, the worker's read is what stops it.
To take one back deletes the row; the same kind of job frees what no other pause covers.
"""

from __future__ import annotations

from typing import Any

import orjson
from psycopg import errors

from engine.commands.may import may
from engine.commands.outcome import Actor, FieldProblem, Refusal, Rejected, WorkPaused, WorkUnpaused
from engine.commands.requests import WRITE_REQUEST, Request, encode, is_repeat, recorded, request_for
from engine.commands.step import answer
from engine.commands.suspend import ATTEMPTS
from engine.commands.transaction import Connection, command
from engine.commands.whole_case import MAX_REASON
from engine.core.effects import InvariantBroken
from engine.db.session import cursor_of
from engine.failpoints import commit_point
from engine.ids import new_id

WITH_TOPIC = ("service", "external_task")  # the name of a handler or topic, or `*` for all
WITHOUT = ("timer", "start_timer", "http", "mail")  # the kind is all there is to say
TO_A_DESTINATION = ("http", "mail")  # or the topic is the name of a registered destination
OF_A_PROCESS = ("definition", "element")  # key, key/element
KINDS = (*WITH_TOPIC, *WITHOUT, *OF_A_PROCESS)
MAX_TOPIC = 600  # characters
LOOKS = 20  # how often a pause may come and go between the write and the look that says why not


@command
def pause_work(
    conn: Connection, kind: str, topic: str, *, actor: Actor, reason: str = "", request_id: str | None = None
) -> WorkPaused | Rejected:
    """Pause work. `kind`: service or external_task, with a topic or `*`; timer, start_timer, http or mail, without (or a delivery's
    kind with the name of a destination); definition with the key of a process; element with key/element.

    Locks: nothing. Refuses: NOT_ALLOWED, INVALID, NOT_FOUND (no such process or destination), ALREADY_PAUSED (by whom, and when).
    """
    request = request_for(actor, request_id, "pause_work", [kind, topic], reason)
    outcome: WorkPaused | Rejected = _settled(conn, "pause_work", kind, topic, actor, reason, request)
    return outcome


@command
def unpause_work(
    conn: Connection, kind: str, topic: str, *, actor: Actor, reason: str = "", request_id: str | None = None
) -> WorkUnpaused | Rejected:
    """Take a pause back: what it held is free again, but for what another pause or a suspension holds.

    Locks: nothing. Refuses: NOT_ALLOWED, INVALID, NOT_PAUSED (who took it back last, and when).
    """
    request = request_for(actor, request_id, "unpause_work", [kind, topic], reason)
    outcome: WorkUnpaused | Rejected = _settled(conn, "unpause_work", kind, topic, actor, reason, request)
    return outcome


def _settled(conn: Connection, name: str, kind: str, topic: str, actor: Actor, reason: str, request: Request | None) -> Any:
    if not may(actor, "pause", "work"):
        return Rejected(Refusal.NOT_ALLOWED)
    if problems := _problems(kind, topic, reason):
        return Rejected(Refusal.INVALID, "; ".join(f"{p.field}: {p.message}" for p in problems), problems=problems)
    pauses = name == "pause_work"
    done: Any = WorkPaused(kind, topic) if pauses else WorkUnpaused(kind, topic)
    one_destination = kind in TO_A_DESTINATION and topic != ""
    told = {"what": "hold_paused", "kind": kind, "topic": topic} if pauses else {"what": "free_paused"}
    values: dict[str, Any] = {
        "tenant_id": actor.tenant_id,
        "kind": kind,
        "topic": topic,
        "actor": actor.username,
        "reason": reason,
        "process": topic.split("/")[0] if kind in OF_A_PROCESS else None,
        "of_destination": topic if one_destination else None,
        "job_id": new_id(),
        "attempts": ATTEMPTS,
        "told": orjson.dumps(told).decode(),
        # Acquisition looks away from the whole branch: nothing has to be held.
        "holds": not one_destination and (not pauses or kind in OF_A_PROCESS or (actor.tenant_id != "" and kind != "external_task")),
    }
    if request is not None:
        values.update(request.params(), outcome=encode(done))
    for _ in range(LOOKS):
        if _write(conn, (_PAUSE if pauses else _UNPAUSE)[request is not None], values):
            return done
        if (first := recorded(conn, request)) is not None:
            return first
        if (refused := _why_not(conn, values, pauses)) is not None:
            return answer(conn, name, actor, refused, request)
    raise InvariantBroken(f"{name} {kind} {topic}: expected a write or a reason within {LOOKS} looks, found neither")


def _write(conn: Connection, statement: str, values: dict[str, Any]) -> bool:
    try:
        with commit_point(conn, "command.before_commit"):
            return cursor_of(conn).execute(statement, values).fetchone() is not None
    except errors.UniqueViolation as error:
        if not is_repeat(error):
            raise
        return False


def _why_not(conn: Connection, values: dict[str, Any], pauses: bool) -> Rejected | None:
    """None: it changed between the write and this look; once more."""
    known, by, at, reason, last_by, last_at = conn.execute(_STANDING, values).fetchone() or (False, *[None] * 5)
    if pauses and not known:
        return Rejected(Refusal.NOT_FOUND)
    if pauses:
        return None if by is None else Rejected(Refusal.ALREADY_PAUSED, reason, by, at=at)
    return Rejected(Refusal.NOT_PAUSED, "", last_by, at=last_at) if by is None else None


def _problems(kind: str, topic: str, reason: str) -> tuple[FieldProblem, ...]:
    problems = []
    if kind not in KINDS:
        problems.append(FieldProblem("kind", f"expected one of {', '.join(KINDS)}, found {kind!r}"))
    elif kind in WITHOUT and topic and kind not in TO_A_DESTINATION:
        problems.append(FieldProblem("topic", f"expected none for {kind}, found {topic!r}"))
    elif kind not in WITHOUT and not topic.strip():
        problems.append(FieldProblem("topic", "expected the name of a topic, or * for all" if kind in WITH_TOPIC else "expected a process"))
    elif kind == "definition" and "/" in topic:
        problems.append(FieldProblem("topic", f"expected a process, found {topic!r}"))
    elif kind == "element" and (topic.count("/") > 1 or not all(topic.partition("/"))):
        problems.append(FieldProblem("topic", f"expected PROCESS/ELEMENT, found {topic!r}"))
    if len(topic) > MAX_TOPIC or "\x00" in topic:
        problems.append(FieldProblem("topic", f"expected at most {MAX_TOPIC} characters of text, found {len(topic)}"))
    if len(reason) > MAX_REASON or "\x00" in reason:
        problems.append(FieldProblem("reason", f"expected at most {MAX_REASON} characters of text, found {len(reason)}"))
    return tuple(problems)


# ---- the statements

_KNOWN = (
    "(%(of_destination)s::text IS NULL OR EXISTS (SELECT FROM destination t"
    " WHERE t.tenant_id = %(tenant_id)s AND t.kind = %(kind)s AND t.name = %(of_destination)s AND t.removed_at IS NULL)) AND "
    "(%(process)s::text IS NULL OR EXISTS (SELECT FROM process_definition d"
    " WHERE d.tenant_id = %(tenant_id)s AND d.key = %(process)s AND d.status <> 'deleting'))"
)
_STANDING = f"""
SELECT {_KNOWN}, p.paused_by, p.paused_at, p.reason, h.actor, h.at
FROM (SELECT) one
LEFT JOIN pause p ON p.tenant_id = %(tenant_id)s AND p.kind = %(kind)s AND p.topic = %(topic)s
LEFT JOIN LATERAL (
  SELECT a.actor, a.at FROM audit a
  WHERE a.tenant_id = %(tenant_id)s AND a.action = 'unpause' AND a.object_kind = 'work' AND a.object_id = %(kind)s || ' ' || %(topic)s
  ORDER BY a.at DESC LIMIT 1) h ON true
"""
_TOLD = """, event AS (
  INSERT INTO history (at, tenant_id, kind, actor, data)
  SELECT at, %(tenant_id)s, 'work_{done}', %(actor)s,
    jsonb_build_object('kind', %(kind)s::text, 'topic', %(topic)s::text, 'reason', %(reason)s::text)
  FROM moved
), noted AS (
  INSERT INTO audit (at, tenant_id, actor, action, object_kind, object_id, reason)
  SELECT at, %(tenant_id)s, %(actor)s, '{action}', 'work', %(kind)s || ' ' || %(topic)s, %(reason)s FROM moved
), going AS (
  INSERT INTO job (id, tenant_id, kind, element_id, due_at, available_at, priority, level, max_attempts, payload)
  SELECT %(job_id)s, %(tenant_id)s, 'hold', '', at, at, 9, 9, %(attempts)s, %(told)s::jsonb FROM moved WHERE %(holds)s
)"""
_PAUSING = f"""
WITH moved AS (
  INSERT INTO pause (tenant_id, kind, topic, paused_by, paused_at, reason)
  SELECT %(tenant_id)s, %(kind)s, %(topic)s, %(actor)s, baton_clock(), %(reason)s WHERE {_KNOWN}
  ON CONFLICT ON CONSTRAINT pk_pause DO NOTHING RETURNING paused_at AS at
){_TOLD.format(done="paused", action="pause")}"""
_UNPAUSING = f"""
WITH moved AS (
  DELETE FROM pause p WHERE p.tenant_id = %(tenant_id)s AND p.kind = %(kind)s AND p.topic = %(topic)s RETURNING baton_clock() AS at
){_TOLD.format(done="unpaused", action="unpause")}"""
_PRESS = f", press AS ({WRITE_REQUEST.format(outcome='%(outcome)s::jsonb', source='moved')})"
_END = " SELECT at FROM moved"
_PAUSE = (_PAUSING + _END, _PAUSING + _PRESS + _END)
_UNPAUSE = (_UNPAUSING + _END, _UNPAUSING + _PRESS + _END)
