"""Ad hoc subprocesses and a complex gateway with rows, as read from a file: what they remember outlives every command."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import psycopg
import pytest

from engine.commands.cancel import cancel_instance
from engine.commands.complete_task import complete_task
from engine.commands.deploy import deploy
from engine.commands.jobs import complete_job, fire_timer
from engine.commands.outcome import Deployed, InstanceCancelled, ItemDone, Refusal, Rejected, TaskCompleted
from tests.bpmn.models import MODELS
from tests.cast import ADA, OP, engage
from tests.commands.cases import acquired, kinds, places, started, status, the_task, variables
from tests.conftest import Clock

Connection = psycopg.Connection[Any]
FILE = "in_no_required_order.bpmn"


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    engage(committed_db)
    assert isinstance(deploy(committed_db, [(FILE, (MODELS / FILE).read_bytes())], actor=OP), Deployed)
    return committed_db


@pytest.fixture
def case(conn: Connection) -> UUID:
    return started(conn, "in_no_required_order", variables={"known": False, "path": ""}).instance_id


def done(conn: Connection, element: str, **values: Any) -> None:
    outcome = complete_task(conn, the_task(conn, element), actor=ADA, variables=values, request_id=None)
    assert isinstance(outcome, TaskCompleted), outcome


def tasks(conn: Connection) -> list[str]:
    rows = conn.execute("SELECT element_id FROM user_task WHERE status IN ('open', 'claimed') ORDER BY 1").fetchall()
    return [row[0] for row in rows]


def looked_at(conn: Connection) -> None:
    done(conn, "roof", known=True)


def test_everything_without_a_way_to_it_begins_and_what_is_enough_cancels_the_rest(conn: Connection, case: UUID) -> None:
    assert tasks(conn) == ["cellar", "roof"]
    done(conn, "cellar")
    assert tasks(conn) == ["pump", "roof"]
    (job,) = acquired(conn)
    pump = the_task(conn, "pump")
    looked_at(conn)
    assert variables(conn, case) == {"known": True, "path": "ab"}, "the sequential one ran in order, and once"
    assert tasks(conn) == ["mason", "painter", "plumber"]
    late = complete_task(conn, pump, actor=ADA, variables={}, request_id=None)
    assert isinstance(late, Rejected)
    assert late.refusal is Refusal.ALREADY_CANCELLED
    lost = complete_job(conn, job, variables={})
    assert isinstance(lost, Rejected)
    assert lost.refusal is Refusal.LEASE_LOST


def test_it_is_done_when_all_are_done_too(conn: Connection, case: UUID) -> None:
    done(conn, "roof")
    done(conn, "cellar")
    done(conn, "pump")
    (job,) = acquired(conn)
    assert isinstance(complete_job(conn, job, variables={}), ItemDone)
    assert tasks(conn) == ["mason", "painter", "plumber"]
    assert ("check", "waiting") not in places(conn, case)


def test_a_timer_at_its_border_ends_it(conn: Connection, case: UUID, clock: Clock) -> None:
    clock.advance(days=31)
    timer = next(lease for lease in acquired(conn) if _element(conn, lease.item_id) == "sold")
    assert isinstance(fire_timer(conn, timer), ItemDone)
    assert (tasks(conn), status(conn, case)) == ([], "completed")


def _element(conn: Connection, job: UUID) -> str:
    row = conn.execute("SELECT element_id FROM job WHERE id = %s", (job,)).fetchone()
    assert row is not None
    return str(row[0])


def test_two_of_three_go_on_and_the_third_resets_the_gateway(conn: Connection, case: UUID) -> None:
    looked_at(conn)
    done(conn, "painter")
    assert ("enough", "joining") in places(conn, case)
    done(conn, "mason")
    assert tasks(conn) == ["decide", "plumber"]
    assert [place for place in places(conn, case) if place[0] == "enough"] == [("enough", "listening")]
    done(conn, "plumber")
    assert tasks(conn) == ["decide", "file"]
    assert not [place for place in places(conn, case) if place[0] == "enough"]
    done(conn, "decide")
    done(conn, "file")
    assert status(conn, case) == "completed"
    assert kinds(conn, case).count("join_passed") == 2


def test_a_case_cancelled_while_the_gateway_remembers_leaves_nothing(conn: Connection, case: UUID) -> None:
    looked_at(conn)
    done(conn, "painter")
    done(conn, "mason")
    assert isinstance(cancel_instance(conn, case, actor=OP, reason="", request_id=None), InstanceCancelled)
    assert (places(conn, case), tasks(conn), status(conn, case)) == ([], [], "cancelled")
