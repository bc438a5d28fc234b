"""The statements that set and take away the mark of a suspension, with each guard stale."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import psycopg
import pytest

from engine.commands.suspend import _RESUME, _SUSPEND, suspend_instance
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
