"""A step of a signal's way costs the same among ROWS subscribers, at its beginning and in its middle, as among a few."""

from __future__ import annotations

import pytest

from engine.commands.outcome import SignalThrown
from engine.commands.signals import broadcast_signal, spread_signal
from engine.db import locks
from engine.db.explain import Plan, explain
from engine.ids import new_id
from tests.cast import OP, engage
from tests.commands.cases import acquired
from tests.plans import crowd
from tests.plans.crowd import DEFINITION, INSTANCE, TOKEN, Connection

STEP = 50


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    engage(committed_db)
    committed_db.execute("DELETE FROM person WHERE username = 'ada'")  # crowd has its own
    crowd.a_case(committed_db)
    return committed_db


def subscribed(conn: Connection, many: int, name: str, *, kind: str = "signal") -> None:
    conn.execute(
        "INSERT INTO subscription (id, kind, message_name, instance_id, root_id, definition_id, token_id, element_id)"
        f" SELECT {crowd.NEW_ID}, %s, %s, {INSTANCE}, {INSTANCE}, {DEFINITION}, {TOKEN}, 'work' FROM generate_series(1, %s)",
        (kind, name, many),
    )


def a_step(conn: Connection, name: str, *, after: int = 0) -> Plan:
    """One step of a signal that is thrown now, after so many others; it is rolled back."""
    assert isinstance(broadcast_signal(conn, "GO", actor=OP, variables={}), SignalThrown)
    (lease,) = acquired(conn)
    for _ in range(after):
        spread_signal(conn, lease)
    sql = locks.SPREAD_SIGNAL.replace("%s", "%({})s").format("job", "number", "most", "ids")
    plan = explain(conn, name, sql, {"job": lease.item_id, "number": lease.number, "most": STEP, "ids": [new_id() for _ in range(STEP)]})
    conn.execute("DELETE FROM job")
    return plan


def test_a_step_of_a_signal_does_not_wade_through_other_subscribers(conn: Connection) -> None:
    subscribed(conn, 2 * STEP, "GO")
    conn.execute("ANALYZE subscription")
    small = a_step(conn, "alone")
    subscribed(conn, crowd.ROWS, "OTHER")
    subscribed(conn, crowd.ROWS, "GO")
    conn.execute("ANALYZE subscription")
    for plan in (a_step(conn, "among many"), a_step(conn, "in the middle", after=20)):
        print(f"{plan.name}: {plan.buffers} buffers, alone {small.buffers}")  # pytest -rP shows it
        assert plan.buffers <= 1.5 * small.buffers, f"{plan.name}: {plan.buffers} buffers, alone {small.buffers}"
