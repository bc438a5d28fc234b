"""The processes that the machine runs, what it sees of their rows, and what must hold of these after every step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple
from uuid import UUID

import psycopg

from engine.expressions import parse
from tests.cast import engage
from tests.commands import cases
from tests.core.models import boundary, call, catch, model, par, service, throw, user

Connection = psycopg.Connection[Any]
TABLES = ("job", "external_task", "delivery")
_BILLING = (parse("${'billing'}"),)
MODELS = {
    "work": model(
        "start -> score -> end",
        "oops -> sorry -> end2",
        score=service("work"),
        oops=boundary("score", error="NO"),
        sorry=user(candidate_groups=_BILLING),
    ),
    "outside": model(
        "start -> ext -> end",
        "oops -> sorry -> end2",
        ext=service("ext", work="external"),
        oops=boundary("ext", error="NO"),
        sorry=user(candidate_groups=_BILLING),
    ),
    "reminded": model(
        "start -> ask -> end",
        "late -> remind -> end2",
        ask=user(candidate_groups=_BILLING),
        late=boundary("ask", after="R3/PT5M", interrupting=False),
        remind=service("work"),
    ),
    "letter": model("start -> letter -> check -> end", letter=catch(on="PAID"), check=user(candidate_groups=_BILLING)),
    "both": model(
        "start -> par -> a -> par2 -> end",
        "par -> b -> par2",
        "par -> c -> par2",
        par=par(),
        par2=par(),
        a=user(candidate_groups=_BILLING),
        b=service("work"),
        c=service("ext", work="external"),
    ),
    "calls": model("start -> inner -> wait -> end", inner=call("work"), wait=catch(after="PT10M")),
    "sends": model("start -> tell -> end", tell=throw(sends="hello")),
}
KEYS = tuple(MODELS)


class Item(NamedTuple):
    """A row of durable work."""

    table: str
    status: str
    number: int
    attempts: int
    maximum: int
    root_id: UUID | None


class Task(NamedTuple):
    status: str
    assignee: str | None
    root_id: UUID


def furnish(conn: Connection) -> None:
    engage(conn)
    for key, each in MODELS.items():
        cases.deployed(conn, replace(each, key=key))


def items(conn: Connection) -> dict[UUID, Item]:
    """All durable work, oldest first."""
    columns = "status, lease_number, attempts, max_attempts, root_id"
    each = " UNION ALL ".join(f"SELECT id, '{table}', {columns} FROM {table}" for table in TABLES)
    return {row[0]: Item(*row[1:]) for row in conn.execute(f"{each} ORDER BY 1".encode()).fetchall()}


def tasks(conn: Connection) -> dict[UUID, Task]:
    return {row[0]: Task(*row[1:]) for row in conn.execute("SELECT id, status, assignee, root_id FROM user_task ORDER BY id").fetchall()}


def roots(conn: Connection) -> dict[UUID, tuple[str, str | None]]:
    """Case -> status and mark."""
    found = conn.execute("SELECT id, status, mark FROM process_instance WHERE parent_id IS NULL ORDER BY id").fetchall()
    return {row[0]: row[1:] for row in found}


_RUNNING = "EXISTS (SELECT FROM process_instance i WHERE i.id = {alias}.instance_id AND i.status = 'running')"
_ENDS = "('completed', 'failed', 'recovered', 'released')"
_WRONG = {
    "a token of no running instance": f"SELECT t.id FROM token t WHERE NOT {_RUNNING.format(alias='t')}",
    "a scope of no running instance": f"SELECT s.id FROM scope s WHERE NOT {_RUNNING.format(alias='s')}",
    "a subscription of no running instance": f"SELECT s.id FROM subscription s WHERE kind = 'catch' AND NOT {_RUNNING.format(alias='s')}",
    "a job of no running instance": f"SELECT j.id FROM job j WHERE instance_id IS NOT NULL AND NOT {_RUNNING.format(alias='j')}",
    "an external task of no running instance": f"SELECT j.id FROM external_task j WHERE NOT {_RUNNING.format(alias='j')}",
    "a live task of no running instance": "SELECT u.id FROM user_task u WHERE u.status IN ('open', 'claimed')"
    f" AND NOT {_RUNNING.format(alias='u')}",
    "a job without its token": "SELECT id FROM job j WHERE kind IN ('service', 'timer')"
    " AND NOT EXISTS (SELECT FROM token t WHERE t.id = j.token_id)",
    "a live task without its token": "SELECT id FROM user_task u WHERE status IN ('open', 'claimed')"
    " AND NOT EXISTS (SELECT FROM token t WHERE t.id = u.token_id)",
    "a subscription without its token": "SELECT id FROM subscription s WHERE kind = 'catch'"
    " AND NOT EXISTS (SELECT FROM token t WHERE t.id = s.token_id)",
    "an inbox entry of no live task": "SELECT task_id FROM inbox_entry e"
    " WHERE NOT EXISTS (SELECT FROM user_task u WHERE u.id = e.task_id AND u.status IN ('open', 'claimed'))",
    "a waiting token that nothing can move": "SELECT t.id FROM token t WHERE t.status = 'waiting'"
    " AND NOT EXISTS (SELECT FROM job j WHERE j.token_id = t.id) AND NOT EXISTS (SELECT FROM external_task j WHERE j.token_id = t.id)"
    " AND NOT EXISTS (SELECT FROM user_task u WHERE u.token_id = t.id AND u.status IN ('open', 'claimed'))"
    " AND NOT EXISTS (SELECT FROM subscription s WHERE s.token_id = t.id) AND NOT EXISTS (SELECT FROM scope s WHERE s.token_id = t.id)",
    "a running case without a token": "SELECT i.id FROM process_instance i WHERE i.status = 'running'"
    " AND NOT EXISTS (SELECT FROM token t WHERE t.instance_id = i.id AND t.status IN ('waiting', 'failed'))",
    "a failed token without an incident": "SELECT t.id FROM token t WHERE t.status = 'failed'"
    " AND NOT EXISTS (SELECT FROM incident n WHERE n.token_id = t.id)",
    "an event that happened twice to one thing": "SELECT item_id, kind FROM history WHERE item_id IS NOT NULL AND kind IN ('job_created',"
    " 'external_task_created', 'delivery_created', 'job_completed', 'timer_fired', 'external_task_completed', 'delivery_completed',"
    " 'error_caught', 'task_created', 'task_completed', 'task_cancelled') GROUP BY 1, 2 HAVING count(*) > 1",
    "a case that began or ended twice": "SELECT instance_id, kind FROM history WHERE kind IN ('instance_started', 'instance_completed',"
    " 'instance_cancelled') GROUP BY 1, 2 HAVING count(*) > 1",
    "a lease that ended twice": "SELECT item_id, data->>'lease_number' FROM history WHERE data ? 'lease_number' AND (kind IN"
    f" ('timer_fired', 'error_caught', 'message_correlated') OR substring(kind FROM '^(?:job|external_task|delivery)_(.*)$') IN {_ENDS})"
    " GROUP BY 1, 2 HAVING count(*) > 1",
}
_INCIDENTS = {
    f"{what} of {table}": f"SELECT {side}.id FROM {table} j FULL JOIN incident n ON n.{table}_id = j.id AND j.status = 'failed'"
    f" WHERE {where}"
    for table in TABLES
    for what, side, where in (
        ("an incident that is not of a failed row", "n", f"n.{table}_id IS NOT NULL AND j.id IS NULL"),
        ("a failed row without an incident", "j", "j.status = 'failed' AND n.id IS NULL"),
    )
}


def wrong(conn: Connection) -> list[str]:
    """Everything that must not be, one sentence each; all are looked for in one statement."""
    each = {**_WRONG, **_INCIDENTS}
    texts = [f"SELECT '{what}', string_agg(x::text, ' ') FROM ({sql}) x HAVING count(*) > 0" for what, sql in each.items()]
    return [f"{what}: {which}" for what, which in conn.execute(" UNION ALL ".join(texts).encode()).fetchall()]


def left_over(conn: Connection) -> Iterator[str]:
    """What is there after everything has ended, and should not."""
    for table in ("token", "scope", "variable", "job", "external_task", "subscription", "incident", "inbox_entry"):
        row = conn.execute(f"SELECT count(*) FROM {table}".encode()).fetchone()
        if row and row[0]:
            yield f"{row[0]} rows of {table} are left"
    for table, final in (("process_instance", "completed cancelled"), ("user_task", "completed cancelled"), ("delivery", "completed")):
        row = conn.execute(f"SELECT count(*) FROM {table} WHERE status <> ALL (%s)".encode(), (final.split(),)).fetchone()
        if row and row[0]:
            yield f"{row[0]} rows of {table} have not ended"
