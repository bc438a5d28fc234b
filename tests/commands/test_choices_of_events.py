"""Event-based gateways with rows: what starts an instance, and receive tasks that compete."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from engine.commands.complete_task import complete_task
from engine.commands.deploy import deploy
from engine.commands.messages import publish_message
from engine.commands.outcome import Deployed, ItemDone, MessagePublished, Refusal, Rejected, TaskCompleted
from engine.commands.start import start_instance
from engine.commands.start_by_timer import start_by_timer
from tests.bpmn.models import model
from tests.cast import ADA, OP, engage
from tests.commands.cases import acquired, kinds, places, status, the_task
from tests.conftest import Clock
from tests.rows import one

Connection = psycopg.Connection[Any]
NAME = "whichever_comes_first"


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    engage(committed_db)
    assert isinstance(deploy(committed_db, [(f"{NAME}.bpmn", model(NAME))], actor=OP), Deployed)
    return committed_db


def publish(conn: Connection, name: str, key: str = "7") -> MessagePublished | Rejected:
    return publish_message(conn, name, actor=OP, correlation_key=key, variables={"from": name}, time_to_live_seconds=None)


def begun(conn: Connection, name: str, key: str = "7") -> Any:
    sent = publish(conn, name, key)
    assert isinstance(sent, MessagePublished) and sent.started, sent
    return sent.instance_id


def test_each_event_behind_the_gateway_starts_an_instance_of_its_own(conn: Connection) -> None:
    letter, call = begun(conn, "LETTER"), begun(conn, "CALL", "8")
    assert places(conn, letter) == [("read", "waiting")]
    assert places(conn, call) == [("answer", "waiting")]
    assert kinds(conn, call)[:2] == ["message_correlated", "instance_started"]
    assert one(conn, "SELECT business_key FROM process_instance WHERE id = %s", call) == "8"


def test_the_date_behind_the_gateway_starts_one_too(conn: Connection, clock: Clock) -> None:
    clock.advance(days=31)
    (lease,) = acquired(conn)
    outcome = start_by_timer(conn, lease)
    assert isinstance(outcome, ItemDone) and outcome.instance_id is not None
    assert places(conn, outcome.instance_id) == [("answer", "waiting")]


def test_nobody_starts_it_by_hand(conn: Connection) -> None:
    outcome = start_instance(conn, NAME, actor=ADA, variables={})
    assert isinstance(outcome, Rejected) and outcome.refusal is Refusal.INVALID


def test_the_first_receive_task_withdraws_the_others_and_the_timer(conn: Connection) -> None:
    case = begun(conn, "CALL")
    assert isinstance(publish(conn, "NO"), MessagePublished)
    assert places(conn, case) == [("complain", "waiting")]
    assert one(conn, "SELECT count(*) FROM subscription WHERE kind = 'catch'") == 0
    late = publish(conn, "YES")
    assert isinstance(late, Rejected) and late.refusal is Refusal.NO_SUBSCRIPTION
    done = complete_task(conn, the_task(conn, "complain"), actor=ADA, variables={}, request_id=None)
    assert isinstance(done, TaskCompleted) and status(conn, case) == "completed"


def test_a_new_version_takes_over_what_starts_it(conn: Connection) -> None:
    changed = model(NAME).replace(b'name="Read it"', b'name="Read it twice"')
    assert isinstance(deploy(conn, [(f"{NAME}.bpmn", changed)], actor=OP), Deployed)
    case = begun(conn, "LETTER")
    assert (
        one(conn, "SELECT d.version FROM process_instance i JOIN process_definition d ON d.id = i.definition_id WHERE i.id = %s", case) == 2
    )
    assert one(conn, "SELECT count(*) FROM job WHERE kind = 'start_timer'") == 1
