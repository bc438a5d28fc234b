"""Who holds a user task: claim, unclaim, assign, take next. None of them moves the process.

Each is one guarded statement that locks one leaf and nothing else: the task row, with its history event and its request
row beside it. The root's mark is read unlocked in that statement. A refusal costs one more read, which says why.
`inbox_entry` rows stay while a task is open or claimed: they are about who may take it, not about who has it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from psycopg import errors

from engine.commands.may import TaskView, is_candidate, is_operator, may, may_params, task_candidate
from engine.commands.outcome import Actor, Assigned, Claimed, FieldProblem, Refusal, Rejected, Unclaimed
from engine.commands.requests import WRITE_REQUEST, Request, decode, encode, is_repeat, record, refuse, request_for
from engine.commands.transaction import Connection, command
from engine.core.effects import InvariantBroken
from engine.db.acquire import NEXT_TASK
from engine.db.session import cursor_of
from engine.db.single_rows import texts
from engine.failpoints import commit_point

LOOKS = 20  # how often a task may change hands between a write that missed and the read that says why
Outcome = Claimed | Unclaimed | Assigned


@command
def claim(conn: Connection, task_id: UUID, *, actor: Actor, request_id: str | None) -> Claimed | Rejected:
    """Take an open task; a task that is mine already is a harmless success.

    Locks: the task. Refuses: NOT_FOUND, ALREADY_COMPLETED, ALREADY_CANCELLED, ALREADY_CLAIMED, INSTANCE_….
    """

    def explain(task: _Task) -> Claimed | Rejected | None:
        if task.status == "claimed" and task.assignee == actor.username:
            return Claimed(task_id, actor.username, task.since, repeated=True)
        return task.over() or (task.refused(Refusal.ALREADY_CLAIMED) if task.status == "claimed" else task.marked())

    press = _Press("claim", actor, request_for(actor, request_id, "claim", task_id))
    result: Claimed | Rejected = _change(conn, press, task_id, _CLAIM, {}, Claimed(task_id, actor.username, _NEVER), explain)
    return result


@command
def unclaim(conn: Connection, task_id: UUID, *, actor: Actor, request_id: str | None) -> Unclaimed | Rejected:
    """Give a task back to its candidates. Its assignee may, and operators.

    Locks: the task. Refuses: NOT_FOUND, ALREADY_COMPLETED, ALREADY_CANCELLED, NOT_CLAIMED, NOT_YOURS.
    """

    def explain(task: _Task) -> Rejected | None:
        if task.status == "open":
            return task.refused(Refusal.NOT_CLAIMED)
        return task.over() or (None if task.is_held_for(actor) else task.refused(Refusal.NOT_YOURS))

    press = _Press("unclaim", actor, request_for(actor, request_id, "unclaim", task_id))
    result: Unclaimed | Rejected = _change(conn, press, task_id, _UNCLAIM, {}, Unclaimed(task_id, _NEVER), explain)
    return result


@command
def assign(conn: Connection, task_id: UUID, *, actor: Actor, assignee: str | None, request_id: str | None) -> Assigned | Rejected:
    """Hand a task to `assignee`, or with None back to its candidates. Whose it is already: a harmless success.

    Its assignee may hand it to a candidate, an operator to anybody who can sign in.
    Locks: the task. Refuses: NOT_FOUND, NOT_ALLOWED (not a candidate), INVALID (nobody of that name),
    ALREADY_COMPLETED, ALREADY_CANCELLED, INSTANCE_…, NOT_CLAIMED, NOT_YOURS.
    """
    target = None if assignee is None else _person(conn, actor.tenant_id, assignee)

    def explain(task: _Task) -> Assigned | Rejected | None:
        if assignee is not None and target is None:
            problem = FieldProblem("assignee", f"expected somebody who can sign in, found {assignee!r}")
            return Rejected(Refusal.INVALID, problem.message, problems=(problem,), item_id=task_id)
        if refusal := task.over() or task.marked():
            return refusal
        if not task.is_held_for(actor):
            return task.refused(Refusal.NOT_CLAIMED if task.status == "open" else Refusal.NOT_YOURS)
        if task.assignee == assignee:
            return Assigned(task_id, assignee, task.since)
        if target is not None and not is_operator(actor) and not is_candidate(target, task.view):
            return Rejected(Refusal.NOT_ALLOWED, f"{assignee} is not a candidate of this task", item_id=task_id)
        return None

    press = _Press("assign", actor, request_for(actor, request_id, "assign", task_id, assignee))
    params = {
        "assignee": assignee,
        "known": assignee is None or target is not None,
        "groups": sorted(target.groups) if target else [],
    }
    result: Assigned | Rejected = _change(conn, press, task_id, _ASSIGN, params, Assigned(task_id, assignee, _NEVER), explain)
    return result


@command
def take_next(conn: Connection, *, actor: Actor, request_id: str | None) -> Claimed | Rejected:
    """Claim the first open task that names me or a group of mine: by priority, then due date, then age.

    Locks: one task, SKIP LOCKED. Refuses: NOTHING_FREE.
    """
    press = _Press("take_next", actor, request_for(actor, request_id, "take_next", ""))
    row = _write(conn, press, _TAKE_NEXT, {}, Claimed(_NOBODY, actor.username, _NEVER))
    if row is not None:
        return Claimed(row[0], actor.username, row[1])
    answer: Claimed | Rejected = press.refuse(conn, Rejected(Refusal.NOTHING_FREE))
    if isinstance(answer, Claimed):
        task = _read(conn, answer.task_id, None)
        if task is None or not may(actor, "see", task.view):
            return Rejected(Refusal.NOT_FOUND)
    return answer


# ---- the common course: write; on a miss read, and say why


@dataclass(frozen=True, slots=True)
class _Press:
    """Who asks for what, and under which request id."""

    command: str
    actor: Actor
    request: Request | None

    def refuse(self, conn: Connection, rejected: Rejected) -> Any:
        return refuse(conn, self.command, self.actor.username, self.actor.tenant_id, rejected, self.request)


@dataclass(frozen=True, slots=True)
class _Task:
    """A task as the read that explains a refusal found it."""

    view: TaskView
    recorded: Mapping[str, Any] | None
    id: UUID
    status: str
    assignee: str | None
    assigned_at: datetime | None
    ended_by: str | None
    ended_at: datetime | None
    by_name: str | None  # what people call whoever ended it, else whoever has it
    mark: str | None

    @property
    def since(self) -> datetime:
        """When it got its assignee, or when it ended; a task that was never given to anybody has neither."""
        return self.assigned_at or self.ended_at or _NEVER

    def is_held_for(self, actor: Actor) -> bool:
        return is_operator(actor) or (self.status == "claimed" and self.assignee == actor.username)

    def over(self) -> Rejected | None:
        """Its final status as a refusal."""
        match self.status:
            case "completed":
                return Rejected(Refusal.ALREADY_COMPLETED, "", self.ended_by, self.by_name, self.ended_at, item_id=self.id)
            case "cancelled":
                return Rejected(Refusal.ALREADY_CANCELLED, "", self.ended_by, self.by_name, self.ended_at, item_id=self.id)
        return None

    def marked(self) -> Rejected | None:
        """What is being done to its case, as a refusal."""
        if self.mark is None:
            return None
        cancelling = self.mark == "cancelling"
        return Rejected(Refusal.INSTANCE_CANCELLING if cancelling else Refusal.INSTANCE_SUSPENDED, item_id=self.id)

    def refused(self, refusal: Refusal) -> Rejected:
        """Refused because of who holds it."""
        return Rejected(refusal, "", self.assignee, self.by_name if self.assignee else None, self.assigned_at, item_id=self.id)


def _change(
    conn: Connection,
    press: _Press,
    task_id: UUID,
    statements: tuple[str, str],
    params: Mapping[str, Any],
    done: Outcome,
    explain: Callable[[_Task], Outcome | Rejected | None],
) -> Any:
    """`explain` answers None when what it sees would have been taken: the task changed hands in between, so try again."""
    for _ in range(LOOKS):
        row = _write(conn, press, statements, {"task_id": task_id, **params}, done)
        if row is not None:
            return type(done)(**{**{name: getattr(done, name) for name in done.__dataclass_fields__}, "at": row[1]})
        task = _read(conn, task_id, press.request)
        if task is None or not may(press.actor, press.command, task.view):
            return Rejected(Refusal.NOT_FOUND)
        if task.recorded is not None:
            return decode(task.recorded)
        match explain(task):
            case None:
                continue
            case Rejected() as rejected:
                return press.refuse(conn, rejected)
            case harmless:
                return record(conn, press.request, harmless)
    raise InvariantBroken(f"{press.command} of task {task_id}: expected a write or a reason within {LOOKS} looks, found neither")


def _write(conn: Connection, press: _Press, statements: tuple[str, str], params: Mapping[str, Any], done: Outcome) -> Any:
    """Run the one statement: (task, when), or None when its guard found nothing or this request was done before."""
    values = {**may_params(press.actor), **params}
    values["may_groups"] = texts(values["may_groups"])
    if press.request is not None:
        values.update(press.request.params(), outcome=encode(done))
    try:
        with commit_point(conn, "command.before_commit"):
            return cursor_of(conn).execute(statements[press.request is not None], values).fetchone()
    except errors.UniqueViolation as error:
        if not is_repeat(error):
            raise
        return None


def _read(conn: Connection, task_id: UUID, request: Request | None) -> _Task | None:
    row = cursor_of(conn).execute(_READ, {"task_id": task_id, **(request or _NO_REQUEST).params()}).fetchone()
    if row is None:
        return None
    tenant, users, groups, recorded, *found = row
    return _Task(TaskView(tenant, found[2], tuple(users), tuple(groups)), recorded, *found)


def _person(conn: Connection, tenant_id: str, username: str) -> Actor | None:
    """Somebody who can sign in, with their groups."""
    row = cursor_of(conn).execute(_PERSON, (tenant_id, username)).fetchone()
    return None if row is None else Actor(username, groups=frozenset(row[0]), tenant_id=tenant_id)


# ---- the statements

_NEVER = datetime.min.replace(tzinfo=UTC)
_NOBODY = UUID(int=0)
_NO_REQUEST = Request("", "", "", "")

_FREE_CASE = "EXISTS (SELECT FROM process_instance r WHERE r.id = t.root_id AND r.mark IS NULL)"
_RETURNING = "t.id, t.tenant_id, t.root_id, t.instance_id, t.definition_id, t.element_id"


def _statements(leaf: str, *, kind: str, data: str) -> tuple[str, str]:
    """The one writing statement, without and with a request row. Every member reads from the guarded leaf."""
    event = (
        "event AS (INSERT INTO history (at, tenant_id, root_id, instance_id, definition_id, kind, element_id, actor, item_id, data)"
        f" SELECT at, tenant_id, root_id, instance_id, definition_id, '{kind}', element_id, %(may_user)s, id, {data} FROM leaf)"
    )
    outcome = "%(outcome)s::jsonb || jsonb_build_object('task_id', leaf.id, 'at', leaf.at)"
    request = f"press AS ({WRITE_REQUEST.format(outcome=outcome, source='leaf')})"
    return (
        f"WITH {leaf}, {event} SELECT id, at FROM leaf",
        f"WITH {leaf}, {event}, {request} SELECT id, at FROM leaf",
    )


_CLAIM = _statements(
    "leaf AS (UPDATE user_task t SET status = 'claimed', assignee = %(may_user)s, assigned_by = %(may_user)s,"
    " assigned_at = baton_clock(), version = t.version + 1"
    " WHERE t.id = %(task_id)s AND t.status COLLATE \"C\" = 'open' AND t.tenant_id = %(may_tenant)s"
    f" AND {task_candidate('t')} AND {_FREE_CASE}"
    f" RETURNING {_RETURNING}, t.assigned_at AS at)",
    kind="task_claimed",
    data="'{}'",
)

_TAKE_NEXT = _statements(
    f"next AS MATERIALIZED ({NEXT_TASK}),"
    " leaf AS (UPDATE user_task t SET status = 'claimed', assignee = %(may_user)s, assigned_by = %(may_user)s,"
    " assigned_at = baton_clock(), version = t.version + 1"
    f" FROM next WHERE t.id = next.id AND t.status = 'open' RETURNING {_RETURNING}, t.assigned_at AS at)",
    kind="task_claimed",
    data="""'{"next": true}'""",
)

# `held` is the task as the statement's snapshot has it: comparing the assignee makes sure that the event names whom it
# was really taken from. Changed meanwhile: nothing is written, and we look again.
_HELD = "FROM (SELECT id, assignee FROM user_task WHERE id = %(task_id)s) held"
_SAME = "t.id = held.id AND t.assignee IS NOT DISTINCT FROM held.assignee AND t.tenant_id = %(may_tenant)s"

_UNCLAIM = _statements(
    "leaf AS (UPDATE user_task t SET status = 'open', assignee = NULL, assigned_at = NULL, assigned_by = NULL,"
    f" version = t.version + 1 {_HELD} WHERE {_SAME}"
    " AND t.status COLLATE \"C\" = 'claimed' AND (%(may_all)s OR t.assignee = %(may_user)s)"
    f" RETURNING {_RETURNING}, baton_clock() AS at, held.assignee AS before)",
    kind="task_unclaimed",
    data="jsonb_build_object('from', before)",
)

_ASSIGN = _statements(
    "leaf AS (UPDATE user_task t SET status = CASE WHEN %(assignee)s::text IS NULL THEN 'open' ELSE 'claimed' END,"
    " assignee = %(assignee)s, assigned_by = CASE WHEN %(assignee)s::text IS NOT NULL THEN %(may_user)s END,"
    " assigned_at = CASE WHEN %(assignee)s::text IS NOT NULL THEN baton_clock() END, version = t.version + 1"
    f" {_HELD} WHERE {_SAME} AND t.status COLLATE \"C\" IN ('open', 'claimed') AND t.assignee IS DISTINCT FROM %(assignee)s AND %(known)s"
    " AND (%(may_all)s OR (t.assignee = %(may_user)s AND (%(assignee)s::text IS NULL OR %(assignee)s = ANY (t.candidate_users)"
    f" OR t.candidate_groups && %(groups)s::text[]))) AND {_FREE_CASE}"
    f" RETURNING {_RETURNING}, coalesce(t.assigned_at, baton_clock()) AS at, held.assignee AS before, t.assignee AS after)",
    kind="task_assigned",
    data="jsonb_build_object('from', before, 'to', after)",
)

_READ = (
    "SELECT t.tenant_id, t.candidate_users, t.candidate_groups,"
    " (SELECT q.outcome FROM request q WHERE q.tenant_id = %(request_tenant)s AND q.actor = %(request_actor)s"
    " AND q.id = %(request_id)s AND q.hash = %(request_hash)s),"
    " t.id, t.status, t.assignee, t.assigned_at, t.ended_by, t.ended_at, p.display_name, r.mark"
    " FROM user_task t JOIN process_instance r ON r.id = t.root_id"
    " LEFT JOIN person p ON p.tenant_id = t.tenant_id AND p.username = coalesce(t.ended_by, t.assignee)"
    " WHERE t.id = %(task_id)s"
)

_PERSON = (
    "SELECT coalesce(array_agg(g.group_key) FILTER (WHERE g.group_key IS NOT NULL), '{}') FROM person p"
    " LEFT JOIN person_group g ON g.person_id = p.id"
    " WHERE p.tenant_id = %s AND p.username = %s AND p.disabled_at IS NULL GROUP BY p.id"
)
