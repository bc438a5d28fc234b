"""The statements that suspend and resume, delete a version, or let work wait along, with each guard stale."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import psycopg
import pytest

from engine.commands import delete_version, suspend_definition
from engine.commands.outcome import Lease
from engine.commands.reception import wait_along
from engine.commands.suspend import _RESUME, _SUSPEND, suspend_instance
from engine.core.effects import InvariantBroken
from tests import rows
from tests.cast import OP
from tests.rows import columns, everything, one

Connection = psycopg.Connection[Any]
GIVEN = {"actor": "op", "reason": "", "suspension_id": UUID(int=1), "more": True, "job_id": UUID(int=2), "attempts": 10, "payload": "{}"}
REQUEST = {"request_tenant": "", "request_actor": "op", "request_id": "9", "request_hash": "", "outcome": "{}"}


@pytest.mark.parametrize("stale", [{"revision": 7}, {"mark": "cancelling"}, {"root_id": UUID(int=0)}], ids=lambda stale: next(iter(stale)))
@pytest.mark.parametrize("requested", [False, True])
@pytest.mark.parametrize("what", ["suspend", "resume"])
def test_a_mark_with_a_stale_guard_writes_nothing(committed_db: Connection, stale: dict[str, Any], requested: bool, what: str) -> None:
    conn = committed_db
    case = rows.instance(conn)
    if what == "resume":
        suspend_instance(conn, case, actor=OP)
    revision, mark, definition = columns(conn, "process_instance", case, "revision", "mark", "definition_id")
    row = {"root_id": case, "instance_id": case, "definition_id": definition, "tenant_id": "", "revision": revision, "mark": mark}
    values = {**row, **GIVEN, **REQUEST, "to": "suspended" if what == "suspend" else None}
    statement = (_SUSPEND if what == "suspend" else _RESUME)[requested]
    before = everything(conn), one(conn, "SELECT count(*) FROM request")
    assert conn.execute(statement, {**values, **stale}).fetchone() is None
    assert (everything(conn), one(conn, "SELECT count(*) FROM request")) == before
    assert conn.execute(statement, values).fetchone() is not None


VERSION = {"with_cases": True, "told": "{}", "per_case": 0.05, "spread": 30.0, "replaced": [], "restored": None}
STARTS = {"subscriptions": "[]", "timers": "[]"}
MOVES = {
    "suspend": (suspend_definition._SUSPEND, ("suspended", "deleting")),
    "resume": (suspend_definition._RESUME, ("active", "deleting")),
    "delete": (delete_version._DELETE, ("deleting",)),
}


@pytest.mark.parametrize("requested", [False, True])
@pytest.mark.parametrize(("what", "status"), [(what, status) for what, (_, others) in MOVES.items() for status in others])
def test_a_version_moves_from_no_status_but_those_that_the_statement_names(
    committed_db: Connection, what: str, status: str, requested: bool
) -> None:
    conn = committed_db
    version = rows.definition(conn, "a", status=status)
    rows.insert(conn, "job", kind="start_timer", definition_id=version, element_id="tick", due_at="2026-01-01", available_at="2026-01-01")
    before = everything(conn), one(conn, "SELECT count(*) FROM request")
    statement = MOVES[what][0][requested]
    assert conn.execute(statement, {**GIVEN, **REQUEST, **VERSION, **STARTS, "id": version}).fetchone() is None
    assert (everything(conn), one(conn, "SELECT count(*) FROM request")) == before


@pytest.mark.parametrize("why", ["taken back", "leased again"])
def test_R4_nothing_waits_along_under_a_lost_lease(committed_db: Connection, why: str) -> None:
    conn = committed_db
    lease = {"lease_owner": "w", "leased_at": "2026-01-01", "lease_expires_at": "2126-01-01", "status": "leased"}
    job = rows.job(conn, kind="throw", attempts=2, lease_number=5, **({} if why == "taken back" else lease))
    before = everything(conn)
    with pytest.raises(InvariantBroken), conn.transaction():
        wait_along(conn, Lease("job", job, 5 if why == "taken back" else 4, "w"), definition_id=UUID(int=7))
    assert everything(conn) == before
