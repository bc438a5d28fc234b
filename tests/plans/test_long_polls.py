"""The look for all who wait for external tasks costs the same behind a crowd; it comes twice a second at every web process."""

from __future__ import annotations

import re

import pytest

from engine.db.acquire import EXTERNAL_TASK
from engine.db.explain import Plan, explain
from engine.db.marks import move_watermarks
from engine.queries.external_tasks import FREE
from tests.plans import crowd
from tests.plans.crowd import LIVE, NOW, Connection
from tests.plans.test_nothing_wades import assert_flat, conn

__all__ = ["conn"]

TOPIC = ("", "score")


def looked(conn: Connection) -> Plan:
    move_watermarks(conn, EXTERNAL_TASK, [TOPIC], sweep=True)
    sql = re.sub(r"(?<!:):(tenants|topics|limit)\b", r"%(\1)s", FREE)
    return explain(conn, "who waits", sql, {"tenants": [TOPIC[0]], "topics": [TOPIC[1]], "limit": 200})


@pytest.mark.parametrize("case", ["consumed", "held", "later", "paused"])
def test_a_look_for_who_waits_costs_the_same_behind_a_crowd(conn: Connection, case: str) -> None:
    crowd.fill(conn, lambda: crowd.work_rows(conn, "external_task", LIVE, at=NOW))
    small = looked(conn)
    crowd.empty(conn, "external_task")
    crowd.fill(conn, lambda: crowd.in_front(conn, "external_task", case), lambda: crowd.work_rows(conn, "external_task", LIVE, at=NOW))
    assert_flat(small, looked(conn), "ix_external_task_due")
