"""Rows put straight into the tables, for tests of one command at a time. Each builds on the state before it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import psycopg
from psycopg import sql

from engine.ids import new_id

Connection = psycopg.Connection[Any]


def insert(conn: Connection, table: str, **values: Any) -> UUID:
    """One row; its id is made unless given."""
    row = {"id": new_id(), **values}
    conn.execute(
        sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
            sql.Identifier(table), sql.SQL(", ").join(map(sql.Identifier, row)), sql.SQL(", ").join(sql.Placeholder() * len(row))
        ),
        list(row.values()),
    )
    key: UUID = row["id"]
    return key


def definition(conn: Connection, key: str = "invoice", version: int = 1, **values: Any) -> UUID:
    deployment = insert(conn, "deployment", deployed_by="op")
    row = {"deployment_id": deployment, "resource_name": f"{key}.bpmn", "content_hash": b"", "xml": b"", **values}
    return insert(conn, "process_definition", key=key, version=version, **row)


def instance(conn: Connection, definition_id: UUID | None = None, **values: Any) -> UUID:
    """A running root instance with its process scope."""
    key = new_id()
    row = {"root_id": key, "definition_id": definition_id or definition(conn, f"key-{key}"), "started_by": "ada", **values}
    insert(conn, "process_instance", id=key, **row)
    scope = new_id()
    insert(conn, "scope", id=scope, instance_id=key, path=[scope])
    return key


def token(conn: Connection, instance_id: UUID, element_id: str = "check", **values: Any) -> UUID:
    row = conn.execute(
        "SELECT i.root_id, s.id FROM process_instance i JOIN scope s ON s.instance_id = i.id WHERE i.id = %s", (instance_id,)
    ).fetchone()
    assert row is not None
    return insert(conn, "token", instance_id=instance_id, root_id=row[0], scope_id=row[1], element_id=element_id, **values)


def _of_case(conn: Connection, instance_id: UUID | None, token_id: UUID | None) -> dict[str, Any]:
    instance_id = instance_id or instance(conn)
    row = conn.execute("SELECT root_id, definition_id FROM process_instance WHERE id = %s", (instance_id,)).fetchone()
    assert row is not None
    return {
        "instance_id": instance_id,
        "root_id": row[0],
        "definition_id": row[1],
        "token_id": token_id or token(conn, instance_id),
    }


def task(conn: Connection, instance_id: UUID | None = None, *, groups: tuple[str, ...] = ("billing",), **values: Any) -> UUID:
    """An open task for the given groups (and `candidate_users`), with its inbox entries."""
    users = values.pop("candidate_users", [])
    row = {"element_id": "check", "name": "Check", "sort_key": "check", **_of_case(conn, instance_id, None), **values}
    key = insert(conn, "user_task", candidate_groups=list(groups), candidate_users=list(users), **row)
    conn.execute(
        "INSERT INTO inbox_entry (task_id, tenant_id, kind, name, created_at)"
        " SELECT id, tenant_id, 'group', unnest(candidate_groups), created_at FROM user_task WHERE id = %(id)s"
        " UNION ALL SELECT id, tenant_id, 'user', unnest(candidate_users), created_at FROM user_task WHERE id = %(id)s",
        {"id": key},
    )
    return key


def job(conn: Connection, instance_id: UUID | None = None, *, overdue: float = 1.0, token_id: UUID | None = None, **values: Any) -> UUID:
    """A free service job of handler `score`, due `overdue` seconds ago."""
    row = {"kind": "service", "topic": "score", "element_id": "score", **_of_case(conn, instance_id, token_id), **values}
    key = insert(conn, "job", due_at="-infinity", available_at="-infinity", **row)
    _due(conn, "job", key, overdue)
    return key


def external_task(conn: Connection, instance_id: UUID | None = None, *, overdue: float = 1.0, **values: Any) -> UUID:
    row = {"topic": "score", "element_id": "score", **_of_case(conn, instance_id, None), **values}
    key = insert(conn, "external_task", due_at="-infinity", available_at="-infinity", **row)
    _due(conn, "external_task", key, overdue)
    return key


def delivery(conn: Connection, instance_id: UUID | None = None, *, overdue: float = 1.0, **values: Any) -> UUID:
    case = _of_case(conn, instance_id, None)
    case.pop("token_id")
    row = {"kind": "http", "destination": "stock", "request": "{}", **case, **values}
    key = insert(conn, "delivery", due_at="-infinity", available_at="-infinity", **row)
    _due(conn, "delivery", key, overdue)
    return key


MAKERS = {"job": job, "external_task": external_task, "delivery": delivery}


def _due(conn: Connection, table: str, key: UUID, overdue: float) -> None:
    at = "baton_clock() - make_interval(secs => %s)"
    conn.execute(f"UPDATE {table} SET due_at = {at}, available_at = {at} WHERE id = %s", (overdue, overdue, key))


def one(conn: Connection, query: str, *params: Any) -> Any:
    """The first column of the only row."""
    rows = conn.execute(query, params).fetchall()
    assert len(rows) == 1, f"expected one row, found {len(rows)}: {query}"
    return rows[0][0]


def columns(conn: Connection, table: str, key: UUID, *names: str) -> tuple[Any, ...]:
    """The named columns of one row."""
    row = conn.execute(f"SELECT {', '.join(names)} FROM {table} WHERE id = %s", (key,)).fetchone()
    assert row is not None, f"expected a row of {table}, found none: {key}"
    return tuple(row)


def history(conn: Connection, item_id: UUID) -> list[tuple[str, str]]:
    """(kind, actor) of everything that happened to an item, oldest first."""
    return conn.execute("SELECT kind, actor FROM history WHERE item_id = %s ORDER BY id", (item_id,)).fetchall()


WATCHED = (
    "process_instance", "scope", "token", "variable", "completed_execution", "user_task", "inbox_entry", "job", "external_task", "delivery",
    "subscription", "message", "incident", "history", "audit", "process_definition", "deployment",
    "suspension", "pause",
)  # fmt: skip


def everything(conn: Connection) -> dict[str, list[Any]]:
    """All rows of everything that a refusal must not touch, with the transactions that wrote them."""
    return {name: conn.execute(f"SELECT xmin, t.* FROM {name} t ORDER BY t::text").fetchall() for name in WATCHED}
