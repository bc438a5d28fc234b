"""Who waits is found by business key or instance among ROWS that wait for the same message as among a few."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from engine.commands.correlation import Criteria
from engine.db.explain import Plan, explain
from tests import rows
from tests.plans import crowd
from tests.plans.crowd import DEFINITION, TOKEN, Connection

GENERIC = "SET LOCAL plan_cache_mode = force_generic_plan"


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    crowd.a_case(committed_db)
    return committed_db


def waiting(conn: Connection, many: int) -> None:
    """So many cases that wait for one message, each with a business key of its own."""
    conn.execute(
        "WITH begun AS (INSERT INTO process_instance (id, root_id, definition_id, started_by, business_key)"
        f" SELECT k, k, {DEFINITION}, 'op', k::text FROM (SELECT {crowd.NEW_ID} AS k FROM generate_series(1, %s)) each RETURNING id)"
        " INSERT INTO subscription (id, kind, message_name, correlation_key, instance_id, root_id, definition_id, token_id, element_id)"
        f" SELECT {crowd.NEW_ID}, 'catch', 'PAID', id::text, id, id, {DEFINITION}, {TOKEN}, 'work' FROM begun",
        (many,),
    )
    conn.execute("ANALYZE subscription, process_instance")


def found(conn: Connection, name: str, criteria: Criteria) -> Plan:
    params: dict[str, Any] = {"tenant_id": "", "name": "PAID", **criteria.params()}
    conn.execute("DEALLOCATE ALL")
    prepared = criteria.look
    order = [key for key in params if f"%({key})s" in prepared]
    for number, key in enumerate(order, 1):
        prepared = prepared.replace(f"%({key})s", f"${number}")
    types = ", ".join("uuid" if key == "wanted_instance" else "text" for key in order)
    conn.execute(f"PREPARE looking ({types}) AS {prepared}")
    values = ", ".join(f"'{params[key]}'" for key in order)
    return explain(conn, name, f"EXECUTE looking ({values})", {}, settings=GENERIC)


@pytest.mark.parametrize("by", ["business_key", "instance_id", "key"])
def test_one_that_waits_is_found_without_wading_through_the_others(conn: Connection, by: str) -> None:
    waiting(conn, 10)
    case: UUID = rows.one(conn, "SELECT instance_id FROM subscription LIMIT 1")
    criteria = {
        "business_key": Criteria(business_key=str(case)),
        "instance_id": Criteria(instance_id=case),
        "key": Criteria(key=str(case)),
    }[by]
    small = found(conn, "alone", criteria)
    waiting(conn, crowd.ROWS)
    large = found(conn, "among many", criteria)
    assert (small.rows, large.rows) == (1, 1)
    assert large.buffers <= 3 * small.buffers + 20, f"{large.buffers} buffers, alone {small.buffers}, by {large.indexes} {large.seq_scans}"
