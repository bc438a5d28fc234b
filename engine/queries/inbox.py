"""The inbox: lists of user tasks for one actor, their counts, one row, and the next free task of a kind.

Every list has a total order. Blanks stand last in both directions, and the id breaks ties, so that paging shows each
task that stays open exactly once (S47). The open tasks come from `inbox_entry` or a partial index, never from behind
the finished ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.exc import DataError

from engine.commands.may import is_operator, may_params, task_candidate, task_visible
from engine.commands.outcome import Actor
from engine.queries.rows import BadCursor, Connection, rows
from engine.queries.rows import row as one_row
from engine.queries.sort import Key, cursor, keyset, order
from engine.text import forms, sort_key

PAGE = 25
CAP = 999
VIEWS = ("mine", "groups", "today", "overdue", "all", "done")
ASSIGNEES = ("any", "free", "claimed", "me")
DUES = ("any", "overdue", "today", "week", "none")


@dataclass(frozen=True, slots=True)
class InboxRow:
    """One task in a list. `may_claim`: it is free and the actor is a candidate; `mine`: the actor holds it."""

    id: UUID
    name: str
    about: str
    process_name: str
    business_key: str | None
    status: str
    assignee: str | None
    assignee_name: str | None
    assigned_at: datetime | None
    priority: int
    due_at: datetime | None
    created_at: datetime
    ended_at: datetime | None
    version: int
    instance_id: UUID
    may_claim: bool
    mine: bool
    place: Mapping[str, Any]  # the sort values, for cursors


@dataclass(frozen=True, slots=True)
class InboxFilter:
    """What a list was asked for. Unknown words are the caller's to refuse; `zone` is where a day begins."""

    view: str = "groups"
    q: str = ""
    process: str = ""
    assignee: str = "any"
    due: str = "any"
    sort: str = "priority"
    descending: bool = True
    after: str | None = None
    before: str | None = None
    zone: str = "UTC"
    limit: int = PAGE

    @property
    def is_narrowed(self) -> bool:
        return bool(self.q or self.process or self.assignee != "any" or self.due != "any")


@dataclass(frozen=True, slots=True)
class InboxPage:
    items: tuple[InboxRow, ...]
    total: int  # of the filter, at most CAP + 1
    next_cursor: str | None
    previous_cursor: str | None


@dataclass(frozen=True, slots=True)
class InboxCounts:
    """Beside the views; each at most CAP + 1."""

    mine: int
    groups: int
    today: int
    overdue: int
    all: int


@dataclass(frozen=True, slots=True)
class Offer:
    """A free task of the same kind, for whoever came too late."""

    id: UUID
    name: str
    about: str
    business_key: str | None
    due_at: datetime | None


# ---- order: column -> keys, most significant first; the id always ends the list

DUE = (Key("due_blank", "t.due_at IS NULL", "boolean"), Key("due", "coalesce(t.due_at, '-infinity')", "timestamptz", turns=True))
ID = Key("id", "t.id", "uuid")
SORTS: Mapping[str, tuple[Key, ...]] = {
    "task": (Key("task", 't.sort_key COLLATE "C"', "text", turns=True), *DUE),
    "process": (Key("process", 'd.sort_key COLLATE "C"', "text", turns=True), *DUE),
    "key": (
        Key("key_blank", "t.business_key IS NULL", "boolean"),
        Key("key", "coalesce(t.business_key, '') COLLATE \"C\"", "text", turns=True),
    ),
    "assignee": (
        Key("who_blank", "t.assignee IS NULL", "boolean"),
        Key("who", "coalesce(p.sort_key, t.assignee, '') COLLATE \"C\"", "text", turns=True),
    ),
    "priority": (
        Key("priority", "t.priority", "smallint", turns=True),
        DUE[0],
        replace(DUE[1], turns=False),
        Key("age", "t.created_at", "timestamptz"),
    ),
    "due": (*DUE, Key("priority", "-t.priority", "integer")),
    "age": (Key("age", "t.created_at", "timestamptz", turns=True),),
    "ended": (Key("ended", "coalesce(t.ended_at, '-infinity')", "timestamptz", turns=True),),
}

COLUMNS = """
    t.id, t.name, t.about, t.process_name, t.business_key, t.status, t.assignee, p.display_name AS assignee_name, t.assigned_at,
    t.priority, t.due_at, t.created_at, t.ended_at, t.version, t.instance_id
"""
DEFINITION = "JOIN process_definition d ON d.id = t.definition_id"
ASSIGNEE = "LEFT JOIN person p ON p.tenant_id = t.tenant_id AND p.username = t.assignee"


def bind(name: str) -> str:
    """A placeholder of SQLAlchemy's text()."""
    return f":{name}"


CANDIDATE = task_candidate("t", bind=bind)
MAY_CLAIM = f"(t.status = 'open' AND {CANDIDATE}) AS may_claim"
MINE = "(t.status = 'claimed' AND t.assignee = :may_user) AS mine"

HELD = "SELECT id FROM user_task WHERE tenant_id = :may_tenant AND assignee = :may_user AND status = 'claimed'"
# One probe for each name the actor answers to, from its low watermark on (engine.db.watermarks). As an array, so that the
# tasks are read by key, however small the table was when the planner last looked, and a task named twice counts once.
OFFERED = """
    SELECT e.task_id
    FROM (SELECT 'group' AS kind, unnest(CAST(:may_groups AS text[])) AS name UNION ALL SELECT 'user', :may_user) mine
    LEFT JOIN watermark w ON w.name = 'inbox ' || mine.kind || ' ' || :may_tenant || ' ' || mine.name
    CROSS JOIN LATERAL (
      SELECT i.task_id FROM inbox_entry i
      WHERE i.tenant_id = :may_tenant AND i.kind = mine.kind AND i.name = mine.name AND i.created_at >= coalesce(w.at, '-infinity')
      OFFSET 0) e
"""
LIVE = "t.tenant_id = :may_tenant AND t.status IN ('open', 'claimed')"
DAY = "(date_trunc('day', baton_now() AT TIME ZONE :zone) + interval '{} days') AT TIME ZONE :zone"
TODAY = f"t.due_at >= {DAY.format(0)} AND t.due_at < {DAY.format(1)}"
OVERDUE = "t.due_at < baton_now()"


def inbox_page(conn: Connection, actor: Actor, wanted: InboxFilter) -> InboxPage:
    """One page of one list. Raises BadCursor for a cursor that this list did not make."""
    keys = (*SORTS[wanted.sort], ID)
    backward = wanted.before is not None
    params = _params(actor, wanted)
    where = _where(actor, wanted)
    place, place_params = keyset(keys, wanted.before if backward else wanted.after, descending=wanted.descending, backward=backward)
    in_order = order(keys, descending=wanted.descending, backward=backward)
    found = _listed(
        conn,
        wanted,
        # Whose it is, by name, is asked for the rows of the page alone.
        f"SELECT {COLUMNS}, {MAY_CLAIM}, {MINE}, t.place FROM ("
        f"SELECT t.*, {_place(keys)}, row_number() OVER (ORDER BY {in_order}) AS number {_tasks(wanted)} WHERE {where} AND {place}"
        f" ORDER BY {in_order} LIMIT :limit) t {ASSIGNEE} ORDER BY t.number",
        {**params, **place_params, "limit": wanted.limit + 1},
    )
    more = len(found) > wanted.limit
    items = found[: wanted.limit]
    if backward:
        items.reverse()
    total = conn.execute(text(f"SELECT count(*) FROM (SELECT 1 {_tasks(wanted)} WHERE {where} LIMIT {CAP + 1}) c"), params).scalar_one()
    has_next, has_previous = (True, more) if backward else (more, wanted.after is not None)
    return InboxPage(
        tuple(items),
        total,
        cursor(keys, items[-1].place) if items and has_next else None,
        cursor(keys, items[0].place) if items and has_previous else None,
    )


def inbox_counts(conn: Connection, actor: Actor, *, zone: str) -> InboxCounts:
    """The numbers beside the views, in one statement."""
    wanted = InboxFilter(zone=zone)

    def count(view: str) -> str:
        return f'(SELECT count(*) FROM (SELECT 1 FROM user_task t WHERE {_view(actor, view)} LIMIT {CAP + 1}) c) AS "{view}"'

    sql = "SELECT " + ", ".join(count(view) for view in ("mine", "groups", "today", "overdue", "all"))
    found = one_row(conn, InboxCounts, sql, _params(actor, wanted))
    assert found is not None, "a SELECT of scalars has one row"
    return found


def inbox_row(conn: Connection, actor: Actor, task_id: UUID) -> InboxRow | None:
    """One task as a row, or None if it is not there or not for this actor's eyes."""
    sql = (
        f"SELECT {COLUMNS}, {MAY_CLAIM}, {MINE}, CAST('{{}}' AS jsonb) AS place FROM user_task t {ASSIGNEE}"
        f" WHERE t.id = :id AND {task_visible('t', bind=bind)}"
    )
    found = _rows(conn, sql, {**may_params(actor), "id": task_id})
    return found[0] if found else None


def next_free(conn: Connection, actor: Actor, task_id: UUID) -> Offer | None:
    """The best free task of the same step of the same process that this actor could claim instead."""
    sql = f"""
        SELECT t.id, t.name, t.about, t.business_key, t.due_at
        FROM user_task lost JOIN process_definition ld ON ld.id = lost.definition_id
        JOIN process_definition d ON d.tenant_id = ld.tenant_id AND d.key = ld.key
        JOIN user_task t ON t.definition_id = d.id AND t.element_id = lost.element_id
        JOIN process_instance root ON root.id = t.root_id
        WHERE lost.id = :id AND t.id <> lost.id AND t.tenant_id = :may_tenant AND t.status = 'open' AND root.mark IS NULL
          AND {CANDIDATE}
        ORDER BY t.priority DESC, t.due_at ASC NULLS LAST, t.created_at, t.id LIMIT 1
    """
    return one_row(conn, Offer, sql, {**may_params(actor), "id": task_id})


def process_choices(conn: Connection, actor: Actor) -> list[tuple[str, str]]:
    """(key, name) of every process, for the filter, in the order of names."""
    sql = """
        SELECT key, name FROM (
          SELECT DISTINCT ON (key) key, coalesce(nullif(name, ''), key) AS name, sort_key FROM process_definition
          WHERE tenant_id = :tenant ORDER BY key, version DESC) latest
        ORDER BY sort_key COLLATE "C", key LIMIT 200
    """
    return [(found.key, found.name) for found in conn.execute(text(sql), {"tenant": actor.tenant_id})]


# ---- conditions


def _tasks(wanted: InboxFilter) -> str:
    """The tasks, with what the list sorts or filters by and no more: each join is one look for every task of the list."""
    definition = DEFINITION if wanted.process or wanted.sort == "process" else ""
    return f"FROM user_task t {definition} {ASSIGNEE if wanted.sort == 'assignee' else ''}"


def _view(actor: Actor, view: str) -> str:
    """Which tasks a view holds. Operators may see all; for others the lists begin at their own entries."""
    everything = LIVE if is_operator(actor) else f"{LIVE} AND t.id = ANY (ARRAY({OFFERED} UNION {HELD}))"
    match view:
        case "mine":
            return "t.tenant_id = :may_tenant AND t.assignee = :may_user AND t.status = 'claimed'"
        case "groups":
            return f"{LIVE} AND t.id = ANY (ARRAY({OFFERED}))"
        case "today":
            return f"{everything} AND {TODAY}"
        case "overdue":
            return f"{everything} AND {OVERDUE}"
        case "all":
            return everything
        case "done":
            return "t.tenant_id = :may_tenant AND t.ended_by = :may_user AND t.status = 'completed'"
    raise ValueError(f"expected one of {', '.join(VIEWS)}, found {view!r}")


def _where(actor: Actor, wanted: InboxFilter) -> str:
    parts = [_view(actor, wanted.view)]
    if wanted.q:
        written = " OR ".join(f"t.{column} ILIKE ANY(:q)" for column in ("name", "about", "business_key"))
        parts.append(f"(t.sort_key LIKE :folded OR {written})")
    if wanted.process:
        parts.append("d.key = :process")
    match wanted.assignee:
        case "free":
            parts.append("t.status = 'open'")
        case "claimed":
            parts.append("t.assignee IS NOT NULL")
        case "me":
            parts.append("t.assignee = :may_user")
    match wanted.due:
        case "overdue":
            parts.append(OVERDUE)
        case "today":
            parts.append(TODAY)
        case "week":
            parts.append(f"t.due_at < {DAY.format(7)}")
        case "none":
            parts.append("t.due_at IS NULL")
    return " AND ".join(parts)


def _params(actor: Actor, wanted: InboxFilter) -> dict[str, Any]:
    folded = sort_key(wanted.q)  # nothing is left of an accent alone
    searched = {"q": [_within(form) for form in forms(wanted.q)], "folded": _within(folded) if folded else None}
    return {**may_params(actor), **searched, "process": wanted.process, "zone": wanted.zone}


def _within(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


def _place(keys: Sequence[Key]) -> str:
    return "jsonb_build_object(" + ", ".join(f"'{key.name}', {key.expression}" for key in keys) + ") AS place"


def _listed(conn: Connection, wanted: InboxFilter, sql: str, params: dict[str, Any]) -> list[InboxRow]:
    """A cursor's values are cast by the server; what it cannot cast was not made by this list."""
    try:
        return _rows(conn, sql, params)
    except DataError as error:
        if wanted.after is None and wanted.before is None:
            raise
        raise BadCursor("expected a cursor of this list") from error


def _rows(conn: Connection, sql: str, params: dict[str, Any]) -> list[InboxRow]:
    return rows(conn, InboxRow, sql, params)
