"""Destinations of deliveries: registered, changed, given another secret, tried, removed. Operators only.

What is written for an address from then on belongs to the destination that covers it; what was written before keeps its way. Secrets are
derived from a salt (engine.webhooks): a salt leaves here once, for whoever made it. To pause one is engine.commands.pause.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import orjson
from psycopg import errors

from engine.bpmn.retries import EXPECTED, parse_retry
from engine.bpmn.times import TimerError
from engine.commands.may import may
from engine.commands.outcome import Actor, DestinationRemoved, DestinationSaved, FieldProblem, Refusal, Rejected, TrialWritten
from engine.commands.requests import WRITE_REQUEST, Request, encode, is_repeat, recorded, request_for
from engine.commands.step import answer
from engine.commands.transaction import Connection, command
from engine.commands.whole_case import MAX_REASON
from engine.db.session import cursor_of
from engine.destinations import ALL_MAIL, EXPECTED_NAME, NAME, address_of_mail, address_of_url, covers, resolved
from engine.failpoints import commit_point
from engine.frozen import dataclass
from engine.ids import new_id
from engine.webhooks import new_salt

KINDS = ("http", "mail")
MOST_AT_A_TIME, MOST_REDIRECTS, MOST_SECONDS, MOST_BYTES = 1_000, 3, 600.0, 100_000_000
LONGEST_OVERLAP = 7 * 86_400.0  # seconds that an old secret goes on signing beside the new one
MAX_ADDRESS = 1_000
DEFAULT_ATTEMPTS = 8


@dataclass(frozen=True, slots=True)
class Wanted:
    """A destination as somebody wants it. `address`: a URL, or a domain of mail (`*`: all mail). None, "" : as Baton has it."""

    kind: str
    address: str
    concurrency: int | None = None
    retry: str = ""
    redirects: int = 0
    seconds: float | None = None
    max_bytes: int | None = None


@command
def add_destination(
    conn: Connection, name: str, wanted: Wanted, *, actor: Actor, reason: str = "", request_id: str | None = None
) -> DestinationSaved | Rejected:
    """Register a destination, and make its signing secret.

    Locks: nothing that waits but the unique keys. Refuses: NOT_ALLOWED; INVALID (also for a name or an address that is taken).
    """
    values = {**_values(wanted), "id": new_id(), "salt": new_salt()}
    done = DestinationSaved(name, values["salt"] if wanted.kind == "http" else None)
    problems = _problems(name, wanted, reason)
    asked = request_for(actor, request_id, "add_destination", name, [_plain(wanted), reason])
    outcome: DestinationSaved | Rejected = _settled(conn, "add_destination", _ADD, name, actor, reason, problems, values, done, asked)
    return outcome


@command
def change_destination(
    conn: Connection,
    name: str,
    wanted: Wanted,
    *,
    actor: Actor,
    as_of: datetime | None = None,
    reason: str = "",
    request_id: str | None = None,
) -> DestinationSaved | Rejected:
    """Give a destination other limits. `as_of`: when it was changed last, as whoever changes it now has seen it.

    Locks: the destination. Refuses: NOT_ALLOWED, INVALID, NOT_FOUND, DESTINATION_CHANGED (by whom, and when).
    """
    values = {**_values(wanted), "as_of": as_of}
    problems = _problems(name, wanted, reason)
    asked = request_for(actor, request_id, "change_destination", name, [_plain(wanted), reason])
    done = DestinationSaved(name)
    outcome: DestinationSaved | Rejected = _settled(conn, "change_destination", _CHANGE, name, actor, reason, problems, values, done, asked)
    return outcome


@command
def rotate_secret(
    conn: Connection, name: str, *, actor: Actor, overlap: float = 86_400.0, reason: str = "", request_id: str | None = None
) -> DestinationSaved | Rejected:
    """Make another signing secret. The old ones sign beside it for `overlap` seconds, so that the receiver can change over.

    Locks: the destination. Refuses: NOT_ALLOWED, INVALID, NOT_FOUND (also mail, which is not signed).
    """
    salt = new_salt()
    problems = _reason(reason)
    if not 0 <= overlap <= LONGEST_OVERLAP:
        problems += (FieldProblem("overlap", f"expected 0 to {LONGEST_OVERLAP:g} seconds, found {overlap:g}"),)
    asked = request_for(actor, request_id, "rotate_secret", name, [overlap, reason])
    values, done = {"salt": salt, "overlap": overlap}, DestinationSaved(name, salt)
    outcome: DestinationSaved | Rejected = _settled(conn, "rotate_secret", _ROTATE, name, actor, reason, problems, values, done, asked)
    return outcome


@command
def remove_destination(
    conn: Connection, name: str, *, actor: Actor, reason: str = "", request_id: str | None = None
) -> DestinationRemoved | Rejected:
    """Nothing is written for it any more. What was written for it is still sent as it says; its pause is taken back.

    Locks: the destination. Refuses: NOT_ALLOWED, INVALID, NOT_FOUND.
    """
    asked = request_for(actor, request_id, "remove_destination", name, reason)
    done = DestinationRemoved(name)
    outcome: DestinationRemoved | Rejected = _settled(
        conn, "remove_destination", _REMOVE, name, actor, reason, _reason(reason), {}, done, asked
    )
    return outcome


@command
def send_test(conn: Connection, name: str, *, actor: Actor, to: str = "", request_id: str | None = None) -> TrialWritten | Rejected:
    """Write a delivery to it that says it is a test, with one attempt. `to`: a path below its address, or the recipient of a mail.

    It goes the way of every other: by a worker, signed, with the same checks and limits; it waits where the destination is paused.

    Locks: nothing. Refuses: NOT_ALLOWED, INVALID (`to`), NOT_FOUND.
    """
    asked = request_for(actor, request_id, "send_test", name, to)
    found = conn.execute(_FIND, {"tenant_id": actor.tenant_id, "name": name}).fetchone()
    problems: tuple[FieldProblem, ...] = ()
    values: dict[str, Any] = {"id": new_id(), "request": "{}", "destination": "", "address": ""}
    if found is not None:
        kind, address = found
        values |= _a_test(kind, address, name, to, actor)
        if not covers(address, values["address"]) or (kind == "mail" and "@" not in to):
            problems = (FieldProblem("to", f"expected a path below {address}" if kind == "http" else "expected an address that it covers"),)
    done = TrialWritten(values["id"], name)
    outcome: TrialWritten | Rejected = _settled(conn, "send_test", _TEST, name, actor, "", problems, values, done, asked)
    return outcome


def _settled(
    conn: Connection,
    command: str,
    statement: tuple[str, str],
    name: str,
    actor: Actor,
    reason: str,
    problems: tuple[FieldProblem, ...],
    values: dict[str, Any],
    done: Any,
    request: Request | None,
) -> Any:
    if not may(actor, "change", "destination"):
        return Rejected(Refusal.NOT_ALLOWED)
    if problems:
        return Rejected(Refusal.INVALID, "; ".join(f"{each.field}: {each.message}" for each in problems), problems=problems)
    values |= {"tenant_id": actor.tenant_id, "name": name, "actor": actor.username, "reason": reason}
    if request is not None:
        values |= {**request.params(), "outcome": encode(done)}
    try:
        with commit_point(conn, "command.before_commit"):
            if cursor_of(conn).execute(statement[request is not None], values).fetchone() is not None:
                return done
    except errors.UniqueViolation as error:
        if not is_repeat(error) and not str(error.diag.constraint_name).startswith("uq_destination_"):
            raise
    if (first := recorded(conn, request)) is not None:
        return first
    return answer(conn, command, actor, _why_not(conn, command, values), request)


def _why_not(conn: Connection, command: str, values: dict[str, Any]) -> Rejected:
    address = values.get("address", "")
    rows = conn.execute(_STANDING, {**values, "address": address}).fetchall()
    own = next((row for row in rows if row[0] == values["name"]), None)
    if command == "add_destination":
        field, whose = ("name", "it is taken") if own else ("address", f"it is that of {rows[0][0] if rows else 'another'}")
        return Rejected(Refusal.INVALID, f"{field}: {whose}", problems=(FieldProblem(field, whose),))
    if own is None or command != "change_destination":
        return Rejected(Refusal.NOT_FOUND)
    if values["as_of"] is not None and own[2] != values["as_of"]:
        return Rejected(Refusal.DESTINATION_CHANGED, "it was changed meanwhile", own[1], at=own[2])
    whose = "it is that of another destination, or of the other kind"
    return Rejected(Refusal.INVALID, f"address: {whose}", problems=(FieldProblem("address", whose),))


# ---- what is asked


def _problems(name: str, wanted: Wanted, reason: str) -> tuple[FieldProblem, ...]:
    found = list(_reason(reason))

    def expect(field: str, good: bool, what: str) -> None:
        if not good:
            found.append(FieldProblem(field, f"expected {what}, found {getattr(wanted, field, name)!r:.100}"))

    expect("name", NAME.fullmatch(name) is not None, EXPECTED_NAME)
    expect("kind", wanted.kind in KINDS, " or ".join(KINDS))
    what = "an http:// or https:// URL without user and query" if wanted.kind == "http" else "a domain, or *"
    expect("address", _address(wanted) != "", what)
    expect("concurrency", wanted.concurrency is None or 1 <= wanted.concurrency <= MOST_AT_A_TIME, f"1 to {MOST_AT_A_TIME}, or none")
    expect("redirects", 0 <= wanted.redirects <= MOST_REDIRECTS, f"0 to {MOST_REDIRECTS}")
    expect("seconds", wanted.seconds is None or 0.1 <= wanted.seconds <= MOST_SECONDS, f"0.1 to {MOST_SECONDS:g}, or none")
    expect("max_bytes", wanted.max_bytes is None or 1 <= wanted.max_bytes <= MOST_BYTES, f"1 to {MOST_BYTES}, or none")
    try:
        parse_retry(wanted.retry or "1")
    except TimerError as error:
        found.append(FieldProblem("retry", f"{error}; expected {EXPECTED}"))
    return tuple(found)


def _reason(reason: str) -> tuple[FieldProblem, ...]:
    if len(reason) > MAX_REASON or "\x00" in reason:
        return (FieldProblem("reason", f"expected at most {MAX_REASON} characters of text, found {len(reason)}"),)
    return ()


def _address(wanted: Wanted) -> str:
    """In its one form; "" for what is none."""
    given = wanted.address.strip()
    if len(given) > MAX_ADDRESS or "\x00" in given:
        return ""
    if wanted.kind == "mail":
        found = ALL_MAIL if given == "*" else address_of_mail(given)
        return found if given == "*" or found != ALL_MAIL else ""
    return "" if any(sign in given for sign in "@?#\\ ") else address_of_url(given)


def _values(wanted: Wanted) -> dict[str, Any]:
    try:
        retry = parse_retry(wanted.retry) if wanted.retry.strip() else None
    except TimerError:
        retry = None  # a problem, by which nothing is written
    return {
        **_plain(wanted),
        "address": _address(wanted),
        "retry": None if retry is None else retry.text,
        "max_attempts": DEFAULT_ATTEMPTS if retry is None else retry.attempts,
        "detail": orjson.dumps(_plain(wanted)).decode(),
    }


def _plain(wanted: Wanted) -> dict[str, Any]:
    return {name: getattr(wanted, name) for name in ("kind", "address", "concurrency", "retry", "redirects", "seconds", "max_bytes")}


def _a_test(kind: str, address: str, name: str, to: str, actor: Actor) -> dict[str, Any]:
    about = f"A test of the destination {name}, sent by {actor.display_name or actor.username}. Nothing needs to be done."
    if kind == "mail":
        request: dict[str, Any] = {"to": to, "subject": f"Test of {name}", "text": about}
        return {"request": _json(request, name), "destination": to, "address": address_of_mail(to) if to else ""}
    url = resolved(address, to)
    request = {"method": "POST", "url": url, "headers": {}, "body": {"type": "baton.test", "about": about}}
    return {"request": _json(request, name), "destination": url, "address": address_of_url(url)}


def _json(request: dict[str, Any], name: str) -> str:
    return orjson.dumps({**request, "destination": name, "test": True}).decode()


# ---- the statements

_FIND = "SELECT kind, address FROM destination WHERE tenant_id = %(tenant_id)s AND name = %(name)s AND removed_at IS NULL"
_STANDING = """
SELECT name, changed_by, changed_at FROM destination
WHERE tenant_id = %(tenant_id)s AND removed_at IS NULL AND (name = %(name)s OR address = %(address)s) ORDER BY name LIMIT 2
"""
_OWN = "d.tenant_id = %(tenant_id)s AND d.name = %(name)s AND d.removed_at IS NULL"
_SALT = "jsonb_build_array(jsonb_build_object('salt', %(salt)s::text))"


def _noted(statement: str, action: str, detail: str = "'{}'::jsonb") -> tuple[str, str]:
    """Without and with a request row. `moved` says when it was done, if it was."""
    text = f"""
WITH {statement}, noted AS (
  INSERT INTO audit (at, tenant_id, actor, action, object_kind, object_id, reason, detail)
  SELECT at, %(tenant_id)s, %(actor)s, '{action}', 'destination', %(name)s, %(reason)s, {detail} FROM moved
)"""
    press = f", press AS ({WRITE_REQUEST.format(outcome='%(outcome)s::jsonb', source='moved')})"
    return text + " SELECT at FROM moved", text + press + " SELECT at FROM moved"


_ADD = _noted(
    f"""moved AS (
  INSERT INTO destination (id, tenant_id, name, kind, address, concurrency, retry, max_attempts, redirects, seconds, max_bytes, salts,
    created_by, created_at, changed_by, changed_at)
  SELECT %(id)s, %(tenant_id)s, %(name)s, %(kind)s, %(address)s, %(concurrency)s, %(retry)s, %(max_attempts)s, %(redirects)s, %(seconds)s,
    %(max_bytes)s, CASE %(kind)s::text WHEN 'http' THEN {_SALT} ELSE '[]' END, %(actor)s, at, %(actor)s, at
  FROM (SELECT baton_clock() AS at) clock ON CONFLICT DO NOTHING RETURNING created_at AS at
)""",
    "add",
    "%(detail)s::jsonb",
)
_CHANGE = _noted(
    f"""moved AS (
  UPDATE destination d SET address = %(address)s, concurrency = %(concurrency)s, retry = %(retry)s, max_attempts = %(max_attempts)s,
    redirects = %(redirects)s, seconds = %(seconds)s, max_bytes = %(max_bytes)s, changed_by = %(actor)s, changed_at = baton_clock()
  WHERE {_OWN} AND d.kind = %(kind)s AND (%(as_of)s::timestamptz IS NULL OR d.changed_at = %(as_of)s)
    AND NOT EXISTS (SELECT FROM destination o
      WHERE o.tenant_id = d.tenant_id AND o.address = %(address)s AND o.id <> d.id AND o.removed_at IS NULL)
  RETURNING d.changed_at AS at
)""",
    "change",
    "%(detail)s::jsonb",
)
_ROTATE = _noted(
    f"""moved AS (
  UPDATE destination d SET changed_by = %(actor)s, changed_at = baton_clock(), salts = {_SALT} || coalesce((
    SELECT jsonb_agg(jsonb_build_object('salt', s->>'salt',
      'until', least((s->>'until')::timestamptz, baton_clock() + make_interval(secs => %(overlap)s))) ORDER BY n)
    FROM jsonb_array_elements(d.salts) WITH ORDINALITY AS o (s, n)
    WHERE %(overlap)s > 0 AND (s->>'until' IS NULL OR (s->>'until')::timestamptz > baton_clock())), '[]')
  WHERE {_OWN} AND d.kind = 'http' RETURNING d.changed_at AS at
)""",
    "rotate_secret",
    "jsonb_build_object('overlap', %(overlap)s::float8)",
)
_REMOVE = _noted(
    f"""moved AS (
  UPDATE destination d SET removed_at = baton_clock(), changed_by = %(actor)s, changed_at = baton_clock()
  WHERE {_OWN} RETURNING d.removed_at AS at, d.kind
), goes_on AS (
  DELETE FROM pause p USING moved WHERE p.tenant_id = %(tenant_id)s AND p.kind = moved.kind AND p.topic = %(name)s
)""",
    "remove",
)
_TEST = _noted(
    f"""moved AS (
  INSERT INTO delivery (id, tenant_id, kind, destination, address, route, due_at, available_at, created_at, max_attempts, request)
  SELECT %(id)s, d.tenant_id, d.kind, %(destination)s, %(address)s, d.id::text, at, at, at, 1, %(request)s::jsonb
  FROM destination d CROSS JOIN (SELECT baton_clock() AS at) clock WHERE {_OWN} RETURNING created_at AS at
), event AS (
  INSERT INTO history (at, tenant_id, kind, actor, item_id, data)
  SELECT at, %(tenant_id)s, 'delivery_created', %(actor)s, %(id)s, jsonb_build_object('destination', %(name)s::text, 'test', true)
  FROM moved
)""",
    "test",
    "jsonb_build_object('delivery', %(id)s::uuid)",
)
