"""Conditional events with rows: what was true last is stored, whoever changes a variable."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from engine.commands.cancel import cancel_instance
from engine.commands.complete_task import complete_task
from engine.commands.deploy import deploy
from engine.commands.jobs import complete_job, fire_timer
from engine.commands.messages import publish_message
from engine.commands.outcome import Deployed, InstanceCancelled, ItemDone, ItemRetried, MessagePublished, TaskCompleted
from engine.commands.retry import retry_item
from engine.expressions import parse
from tests.bpmn.models import MODELS
from tests.cast import ADA, OP, engage
from tests.commands.cases import acquired, deployed, kinds, places, started, status, the_task
from tests.conftest import Clock
from tests.core.models import boundary, by_event, catch, model, on_event, service, user
from tests.rows import one

Connection = psycopg.Connection[Any]
ADAS = {"assignee": parse("${'ada'}")}
FALSE = {"total": 1, "paid": False, "gift": False, "fragile": False, "cancelled": False}


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    engage(committed_db)
    return committed_db


def done(conn: Connection, element: str, **variables: Any) -> None:
    outcome = complete_task(conn, the_task(conn, element), actor=ADA, variables=variables, request_id=None)
    assert isinstance(outcome, TaskCompleted), outcome


def tasks(conn: Connection) -> list[str]:
    found = conn.execute("SELECT element_id FROM user_task WHERE status IN ('open', 'claimed') ORDER BY 1").fetchall()
    return [row[0] for row in found]


def order(conn: Connection, **variables: Any) -> Any:
    file = "when_it_becomes_true.bpmn"
    assert isinstance(deploy(conn, [(file, (MODELS / file).read_bytes())], actor=OP), Deployed)
    return started(conn, "when_it_becomes_true", variables={**FALSE, **variables}, business_key="7").instance_id


def test_an_order_in_which_nothing_becomes_true(conn: Connection, clock: Clock) -> None:
    case = order(conn)
    assert tasks(conn) == ["enter"]
    done(conn, "enter", total=2)
    done(conn, "correct", total=3)
    clock.advance(hours=2)
    (lease,) = acquired(conn)
    assert isinstance(fire_timer(conn, lease), ItemDone)
    assert "condition_met" not in kinds(conn, case) and status(conn, case) == "running"
    assert places(conn, case) == [("alarm", "listening"), ("gift", "listening"), ("pack", "waiting"), ("paid", "waiting")]


def test_each_condition_of_an_order_occurs_where_it_stands(conn: Connection) -> None:
    case = order(conn)
    done(conn, "enter", total=101, gift=True, fragile=True, paid=True)
    assert tasks(conn) == ["approve", "correct", "label", "ribbon", "wrap"]
    assert one(conn, "SELECT count(*) FROM job") == 0, "the timer behind the gateway is withdrawn"
    done(conn, "correct", cancelled=True)
    assert tasks(conn) == ["approve", "label", "unpack"]
    done(conn, "approve", total=1001)
    assert tasks(conn) == ["call"]
    done(conn, "call")
    assert status(conn, case) == "completed"


def test_what_was_true_last_survives_between_commands(conn: Connection) -> None:
    order(conn, fragile=True)
    assert tasks(conn) == ["enter", "label"]
    done(conn, "enter", fragile=True, total=2)
    assert tasks(conn) == ["correct", "label"], "it was true before"
    done(conn, "label", fragile=False)
    assert tasks(conn) == ["correct"]
    done(conn, "correct", fragile=True)
    assert tasks(conn) == ["label"], "false, and true again"


def test_an_order_that_is_far_too_large_begins_with_a_call(conn: Connection) -> None:
    case = order(conn, total=5000)
    assert tasks(conn) == ["call"] and places(conn, case) == [("alarm", "waiting"), ("call", "waiting")]


def test_the_result_of_a_job_makes_a_condition_true(conn: Connection) -> None:
    deployed(
        conn, model("start -> par -> a -> end", "par -> wait -> b -> end2", a=service("work"), b=user(**ADAS), wait=catch(when="${x}"))
    )
    started(conn)
    (lease,) = acquired(conn)
    assert isinstance(complete_job(conn, lease, variables={"x": True}), ItemDone)
    assert tasks(conn) == ["b"]


def test_the_payload_of_a_message_makes_a_condition_true(conn: Connection) -> None:
    flows = ("start -> par -> got -> end", "par -> a -> end3", "rich -> b -> end2")
    deployed(conn, model(*flows, got=catch(on="NEWS"), a=user(**ADAS), b=user(**ADAS), rich=boundary("a", when="${order.total > 5}")))
    started(conn, business_key="7")
    sent = publish_message(conn, "NEWS", actor=OP, correlation_key="7", variables={"order": {"total": 6}}, time_to_live_seconds=None)
    assert isinstance(sent, MessagePublished) and tasks(conn) == ["b"]


def test_a_condition_that_fails_is_an_incident_that_a_person_retries(conn: Connection) -> None:
    flows = ("start -> par -> wait -> b -> end2", "par -> a -> c -> end")
    deployed(conn, model(*flows, a=user(**ADAS), b=user(**ADAS), c=user(**ADAS), wait=catch(when="${x > 1}")))
    started(conn, variables={"x": 1})
    done(conn, "a", x="many")
    token = one(conn, "SELECT token_id FROM incident WHERE element_id = 'wait'")
    done(conn, "c", x=2)
    assert isinstance(retry_item(conn, "token", token, actor=OP), ItemRetried)
    assert tasks(conn) == ["b"] and one(conn, "SELECT count(*) FROM incident") == 0


def test_a_cancelled_case_leaves_no_condition(conn: Connection) -> None:
    case = order(conn, fragile=True)
    assert isinstance(cancel_instance(conn, case, actor=OP, reason="", request_id="x"), InstanceCancelled)
    assert one(conn, "SELECT count(*) FROM token") == 0


def test_a_listener_is_shown_what_it_remembers_by_a_narrow_read(conn: Connection) -> None:
    flows = ("start -> a -> c -> end", "on -> b -> end2")
    handler = {"handler": by_event(), "on": on_event(when="${x}", interrupting=False)}
    deployed(conn, model(*flows, inside={"handler": "on b end2"}, a=user(**ADAS), b=user(**ADAS), c=user(**ADAS), **handler))
    started(conn, variables={"x": True})
    done(conn, "a", x=True)
    assert tasks(conn) == ["b", "c"]


def test_tokens_without_conditions_remember_nothing(conn: Connection) -> None:
    deployed(conn, model("start -> a -> end", a=user(**ADAS)))
    started(conn)
    assert one(conn, "SELECT count(*) FROM token WHERE memory IS NOT NULL") == 0
