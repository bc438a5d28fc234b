"""Who changes a variable at the same time as others: each change is looked at once, in the order of the commits."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from engine.commands.complete_task import complete_task
from engine.commands.jobs import fire_timer
from engine.commands.outcome import ItemDone, Refusal, Rejected, TaskCompleted
from engine.expressions import parse
from tests.cast import ADA, engage
from tests.commands import cases
from tests.conftest import Clock
from tests.core.models import boundary, catch, first_event, model, user
from tests.races.contest import Act, Connection, contest

ROOT_ROW = "SELECT 1 FROM process_instance WHERE id = %s FOR UPDATE"
ADAS = user(assignee=parse("${'ada'}"))


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    engage(committed_db)
    return committed_db


def completing(conn: Connection, element: str, **variables: Any) -> Act:
    task = cases.the_task(conn, element)
    return lambda c: complete_task(c, task, actor=ADA, variables=variables, request_id=element)


def met(conn: Connection, case: UUID) -> int:
    return cases.kinds(conn, case).count("condition_met")


BRANCHES = ("start -> par -> a -> end", "par -> b -> end2")


def test_two_changes_that_only_together_make_a_condition_true_let_it_occur_once(conn: Connection, database_url: str) -> None:
    flows = (*BRANCHES, "par -> wait -> c -> end3")
    cases.deployed(conn, model(*flows, a=ADAS, b=ADAS, c=ADAS, wait=catch(when="${x and y}")))
    case = cases.started(conn, variables={"x": False, "y": False}).instance_id
    both = contest(database_url, ROOT_ROW, (case,), completing(conn, "a", x=True), completing(conn, "b", y=True))
    assert all(isinstance(outcome, TaskCompleted) for outcome in both)
    assert met(conn, case) == 1 and cases.places(conn, case) == [("c", "waiting")]


def test_two_changes_that_both_make_a_condition_true_let_it_occur_once(conn: Connection, database_url: str) -> None:
    flows = (*BRANCHES, "par -> c -> end3", "rich -> d -> end4")
    rich = boundary("c", when="${x > 1}", interrupting=False)
    cases.deployed(conn, model(*flows, a=ADAS, b=ADAS, c=ADAS, d=ADAS, rich=rich))
    case = cases.started(conn, variables={"x": 0}).instance_id
    contest(database_url, ROOT_ROW, (case,), completing(conn, "a", x=2), completing(conn, "b", x=3))
    assert met(conn, case) == 1 and cases.places(conn, case) == [("c", "waiting"), ("d", "waiting")]


def test_a_change_that_takes_back_what_the_other_one_made_true_comes_too_late(conn: Connection, database_url: str) -> None:
    flows = (*BRANCHES, "par -> c -> end3", "rich -> d -> end4")
    cases.deployed(conn, model(*flows, a=ADAS, b=ADAS, c=ADAS, d=ADAS, rich=boundary("c", when="${x}")))
    case = cases.started(conn, variables={"x": False}).instance_id
    contest(database_url, ROOT_ROW, (case,), completing(conn, "a", x=True), completing(conn, "b", x=False))
    assert cases.places(conn, case) == [("d", "waiting")]


def test_an_activity_that_is_completed_while_a_condition_interrupts_it_is_refused(conn: Connection, database_url: str) -> None:
    flows = (*BRANCHES, "rich -> d -> end4")
    cases.deployed(conn, model(*flows, a=ADAS, b=ADAS, d=ADAS, rich=boundary("b", when="${x}")))
    case = cases.started(conn, variables={"x": False}).instance_id
    first, second = contest(database_url, ROOT_ROW, (case,), completing(conn, "a", x=True), completing(conn, "b"))
    assert isinstance(first, TaskCompleted)
    assert isinstance(second, Rejected) and second.refusal is Refusal.ALREADY_CANCELLED
    assert cases.places(conn, case) == [("d", "waiting")]


def choice(conn: Connection, clock: Clock) -> tuple[UUID, Act, Act]:
    """A gateway whose timer is due, and whose condition a task is about to make true."""
    flows = ("start -> par -> choice -> rich -> c -> end", "choice -> late -> d -> end2", "par -> a -> end3")
    nodes = {"choice": first_event(), "rich": catch(when="${x}"), "late": catch(after="PT1H")}
    cases.deployed(conn, model(*flows, a=ADAS, c=ADAS, d=ADAS, **nodes))
    case = cases.started(conn, variables={"x": False}).instance_id
    clock.advance(hours=2)
    (lease,) = cases.acquired(conn)
    return case, completing(conn, "a", x=True), lambda c: fire_timer(c, lease)


def test_a_condition_that_is_faster_than_the_timer_withdraws_it(conn: Connection, database_url: str, clock: Clock) -> None:
    case, change, fire = choice(conn, clock)
    completed, fired = contest(database_url, ROOT_ROW, (case,), change, fire)
    assert isinstance(completed, TaskCompleted)
    assert isinstance(fired, Rejected) and fired.refusal is Refusal.LEASE_LOST
    assert cases.places(conn, case) == [("c", "waiting")]


def test_a_timer_that_is_faster_than_the_condition_takes_the_token(conn: Connection, database_url: str, clock: Clock) -> None:
    case, change, fire = choice(conn, clock)
    fired, completed = contest(database_url, ROOT_ROW, (case,), fire, change)
    assert isinstance(fired, ItemDone) and isinstance(completed, TaskCompleted)
    assert cases.places(conn, case) == [("d", "waiting")] and met(conn, case) == 0
