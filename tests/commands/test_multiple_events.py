"""Multiple events with rows: which parts have occurred is stored, whatever happens between them."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from engine.commands.complete_task import complete_task
from engine.commands.deploy import deploy
from engine.commands.jobs import fire_timer
from engine.commands.messages import publish_message
from engine.commands.outcome import Deployed, ItemDone, MessagePublished, TaskCompleted
from tests.bpmn.models import model
from tests.cast import ADA, OP, engage
from tests.commands.cases import acquired, places, status, the_task
from tests.conftest import Clock
from tests.rows import one

Connection = psycopg.Connection[Any]
NAME = "several_at_once"


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    engage(committed_db)
    assert isinstance(deploy(committed_db, [(f"{NAME}.bpmn", model(NAME))], actor=OP), Deployed)
    return committed_db


def publish(conn: Connection, name: str, *, key: str = "7", seconds: float | None = None, **variables: Any) -> MessagePublished:
    sent = publish_message(conn, name, actor=OP, correlation_key=key, variables=variables, time_to_live_seconds=seconds)
    assert isinstance(sent, MessagePublished), sent
    return sent


def asked(conn: Connection, by: str = "MAIL") -> Any:
    sent = publish(conn, by, broken=False)
    assert sent.started
    return sent.instance_id


def done(conn: Connection, element: str, **variables: Any) -> None:
    outcome = complete_task(conn, the_task(conn, element), actor=ADA, variables=variables, request_id=None)
    assert isinstance(outcome, TaskCompleted), outcome


def tasks(conn: Connection) -> list[str]:
    found = conn.execute("SELECT element_id FROM user_task WHERE status IN ('open', 'claimed') ORDER BY 1").fetchall()
    return [row[0] for row in found]


@pytest.mark.parametrize("by", ["MAIL", "CALL"])
def test_either_message_starts_it(conn: Connection, by: str) -> None:
    case = asked(conn, by)
    assert places(conn, case) == [("changes", "listening"), ("pack", "waiting"), ("prepare", "waiting")]


@pytest.mark.parametrize("by", ["message", "timer", "error"])
def test_any_part_at_the_border_gives_up(conn: Connection, clock: Clock, by: str) -> None:
    case = asked(conn)
    match by:
        case "message":
            publish(conn, "STOP")
        case "timer":
            clock.advance(days=1)
            (lease,) = acquired(conn)
            assert isinstance(fire_timer(conn, lease), ItemDone)
        case "error":
            done(conn, "pack", broken=True)
    assert tasks(conn) == ["apologise"]
    assert one(conn, "SELECT count(*) FROM job") == 0
    assert one(conn, "SELECT count(*) FROM subscription WHERE instance_id IS NOT NULL") == 2, "those of the event subprocess"
    done(conn, "apologise")
    assert status(conn, case) == "completed"


def test_each_part_of_an_event_subprocess_begins_it_again_and_again(conn: Connection) -> None:
    asked(conn)
    for name in ("MAIL", "CALL", "MAIL"):
        publish(conn, name)
    done(conn, "pack", changed=True)
    assert tasks(conn) == ["note"] * 4
