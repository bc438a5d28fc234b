"""Multi-instance activities over data, with collected results and behavior, as read from a file and with rows."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import psycopg
import pytest

from engine.commands.complete_task import complete_task
from engine.commands.deploy import deploy
from engine.commands.jobs import complete_job
from engine.commands.outcome import Deployed, ItemDone, TaskCompleted
from engine.db.load import load_batch
from tests.bpmn.models import MODELS
from tests.cast import ADA, OP, engage
from tests.commands.cases import acquired, kinds, started, status, the_task, variables
from tests.rows import one

Connection = psycopg.Connection[Any]
FILE = "several_offers.bpmn"
PRICES = {"Alder": 30, "Birch": 7, "Cedar": 12}


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    engage(committed_db)
    assert isinstance(deploy(committed_db, [(FILE, (MODELS / FILE).read_bytes())], actor=OP), Deployed)
    return committed_db


def asked(conn: Connection, prices: dict[str, int]) -> UUID:
    """All firms have answered, the last one first."""
    case = started(conn, "several_offers", variables={"firms": [*prices]}, business_key="7").instance_id
    leases = acquired(conn)
    firms = {job_id: work.variables["firm"] for job_id, work in load_batch(conn, [lease.item_id for lease in leases]).items()}
    assert sorted(firms.values()) == sorted(prices)
    for lease in reversed(leases):
        assert isinstance(complete_job(conn, lease, variables={"price": prices[firms[lease.item_id]]}), ItemDone)
    return case


def done(conn: Connection, element: str) -> None:
    outcome = complete_task(conn, the_task(conn, element), actor=ADA, variables={}, request_id=None)
    assert isinstance(outcome, TaskCompleted), outcome


def open_at(conn: Connection, element: str) -> int:
    sql = "SELECT count(*) FROM user_task WHERE element_id = %s AND status IN ('open', 'claimed')"
    return int(one(conn, sql, element))


def test_results_come_in_the_order_of_the_items_and_each_completion_is_announced(conn: Connection) -> None:
    case = asked(conn, PRICES)
    assert variables(conn, case)["prices"] == [30, 7, 12]
    assert open_at(conn, "note") == 3
    assert kinds(conn, case).count("signal_caught") == 3
    assert one(conn, "SELECT count(*) FROM scope WHERE instance_id = %s AND counters ? 'kept'", case) == 0


def test_an_escalation_of_one_that_completes_ends_the_round(conn: Connection) -> None:
    case = asked(conn, PRICES)
    done(conn, "compare")
    assert open_at(conn, "compare") == 1, "30 is not cheap"
    done(conn, "compare")
    assert open_at(conn, "compare") == 0, "7 is: nobody looks at 12"
    left = conn.execute("SELECT element_id FROM history WHERE instance_id = %s AND kind = 'element_left'", (case,)).fetchall()
    assert ("take_it",) in left and ("none_cheap",) not in left


def test_without_a_cheap_one_the_normal_way_is_taken(conn: Connection) -> None:
    case = asked(conn, {"Alder": 30, "Cedar": 12})
    done(conn, "compare")
    done(conn, "compare")
    for task, *_ in conn.execute("SELECT id FROM user_task WHERE element_id = 'note' AND status = 'claimed'").fetchall():
        complete_task(conn, task, actor=ADA, variables={}, request_id=None)
    assert status(conn, case) == "completed"
    assert one(conn, "SELECT final_variables->'prices'->'value' FROM process_instance WHERE id = %s", case) == [30, 12]


def test_no_firm_makes_no_offer(conn: Connection) -> None:
    case = started(conn, "several_offers", variables={"firms": []}, business_key="8").instance_id
    assert status(conn, case) == "completed"
    assert one(conn, "SELECT final_variables->'prices'->'value' FROM process_instance WHERE id = %s", case) == []
