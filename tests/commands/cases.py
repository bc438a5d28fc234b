"""Cases for tests of commands: a definition put in as its compiled self, started, and moved on by the real commands."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import psycopg

from engine.bpmn.definition import ProcessDefinition
from engine.commands.outcome import Actor, InstanceStarted, Lease
from engine.commands.start import start_instance
from engine.db.acquire import Acquired, acquire_jobs
from engine.db.definitions import keep
from tests.cast import ADA
from tests.rows import definition

Connection = psycopg.Connection[Any]
KINDS = (
    ("service", "work"),
    ("timer", ""),
    ("start_timer", ""),
    ("message", ""),
    ("throw", "signal"),
    ("throw", "message"),
    ("signal", ""),
)


def deployed(conn: Connection, model: ProcessDefinition, **values: Any) -> UUID:
    """A definition row whose compiled form is `model`: no XML is read."""
    key = definition(conn, model.key, **values)
    keep(key, model)
    return key


def started(conn: Connection, key: str = "model", *, actor: Actor = ADA, **values: Any) -> InstanceStarted:
    outcome = start_instance(
        conn, key, actor=actor, variables=values.pop("variables", {}), request_id=values.pop("request_id", None), **values
    )
    assert isinstance(outcome, InstanceStarted), outcome
    return outcome


def acquired(conn: Connection, *, owner: str = "worker-1", limit: int = 10, lease_seconds: float = 30) -> list[Lease]:
    """What is due now, leased."""
    found = acquire_jobs(conn, owner=owner, capabilities=KINDS, limit=limit, lease_seconds=lease_seconds, workers=1)
    return [lease_of(item) for item in found]


def lease_of(item: Acquired) -> Lease:
    return Lease(item.kind, item.item_id, item.number, item.owner, item.expires_at)


def the_task(conn: Connection, element_id: str, *, instance_id: UUID | None = None) -> UUID:
    """The one live task at an element."""
    rows = conn.execute(
        "SELECT id FROM user_task WHERE element_id = %s AND status IN ('open', 'claimed') AND (%s::uuid IS NULL OR instance_id = %s)",
        (element_id, instance_id, instance_id),
    ).fetchall()
    assert len(rows) == 1, f"expected one live task at {element_id}, found {len(rows)}"
    return rows[0][0]


def places(conn: Connection, instance_id: UUID) -> list[tuple[str, str]]:
    """Where an instance is: (element, status) of its tokens."""
    return conn.execute("SELECT element_id, status FROM token WHERE instance_id = %s ORDER BY element_id", (instance_id,)).fetchall()


def status(conn: Connection, instance_id: UUID) -> str:
    row = conn.execute("SELECT status FROM process_instance WHERE id = %s", (instance_id,)).fetchone()
    assert row is not None
    return str(row[0])


def kinds(conn: Connection, instance_id: UUID) -> list[str]:
    """What happened to an instance, in order."""
    rows = conn.execute("SELECT kind FROM history WHERE instance_id = %s ORDER BY id", (instance_id,)).fetchall()
    return [row[0] for row in rows]


def variables(conn: Connection, instance_id: UUID) -> dict[str, Any]:
    """The variables of a running instance's process scope."""
    rows = conn.execute(
        "SELECT v.name, v.value FROM variable v JOIN scope s ON s.id = v.scope_id WHERE s.instance_id = %s AND s.parent_id IS NULL",
        (instance_id,),
    ).fetchall()
    return dict(rows)
