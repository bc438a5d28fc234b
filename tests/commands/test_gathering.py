"""Parallel event-based gateways that start instances: all messages of a key come to one, whichever is first."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import psycopg
import pytest

from engine import failpoints
from engine.commands.deliver_message import deliver_message
from engine.commands.deploy import deploy
from engine.commands.leases import release
from engine.commands.messages import publish_message
from engine.commands.outcome import Deployed, ItemDone, ItemReleased, MessagePublished, Refusal, Rejected
from engine.db.session import connect
from tests.bpmn.models import model
from tests.cast import OP, engage
from tests.commands.cases import acquired, places
from tests.conftest import Clock
from tests.races.contest import Contender, held_at
from tests.rows import one

Connection = psycopg.Connection[Any]
NAME = "mail_and_call"


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    engage(committed_db)
    return committed_db


def put(conn: Connection) -> None:
    assert isinstance(deploy(conn, [(f"{NAME}.bpmn", model(NAME))], actor=OP), Deployed)


def publish(conn: Connection, name: str, key: str = "7", seconds: float | None = None) -> Any:
    return publish_message(conn, name, actor=OP, correlation_key=key, variables={name: True}, time_to_live_seconds=seconds)


def instances(conn: Connection) -> int:
    return int(one(conn, "SELECT count(*) FROM process_instance"))


@pytest.mark.parametrize("order", [("MAIL", "CALL"), ("CALL", "MAIL")])
def test_the_second_message_of_a_key_goes_to_the_instance_that_the_first_one_started(conn: Connection, order: tuple[str, str]) -> None:
    put(conn)
    first, second = (publish(conn, name) for name in order)
    assert (first.started, second.started, first.instance_id) == (True, False, second.instance_id)
    assert places(conn, first.instance_id) == [("compare", "waiting")]


def test_another_key_starts_another_instance(conn: Connection) -> None:
    put(conn)
    assert publish(conn, "MAIL").instance_id != publish(conn, "CALL", "8").instance_id
    assert instances(conn) == 2
    again = publish(conn, "MAIL")
    assert again.started, "its mail has come already: this one is of another"


def test_a_message_without_a_key_finds_the_instance_without_one(conn: Connection) -> None:
    put(conn)
    assert publish(conn, "MAIL", "").instance_id == publish(conn, "CALL", "").instance_id


def test_messages_that_were_stored_before_the_deployment_come_to_one_instance(conn: Connection, clock: Clock) -> None:
    for name in ("MAIL", "CALL"):
        assert publish(conn, name, seconds=60).outcome == "stored"
    put(conn)
    first, second = acquired(conn)
    assert isinstance(deliver_message(conn, first), ItemDone)
    left_alone = deliver_message(conn, second)
    assert isinstance(left_alone, Rejected) and left_alone.refusal is Refusal.AWAITED
    assert isinstance(release(conn, second, because=left_alone.refusal, started=True), ItemReleased), "as a worker does"
    (theirs,) = acquired(conn)
    assert isinstance(deliver_message(conn, theirs), ItemDone)
    assert one(conn, "SELECT attempts FROM job WHERE id = %s", second.item_id) == 0
    clock.advance(seconds=11)
    (again,) = acquired(conn)
    assert isinstance(deliver_message(conn, again), ItemDone), "there is no message left"
    assert instances(conn) == 1
    assert one(conn, "SELECT count(*) FROM message") == 0 and one(conn, "SELECT count(*) FROM user_task") == 1


def test_a_case_that_is_being_cancelled_gathers_nothing_more(conn: Connection) -> None:
    put(conn)
    cancelled = publish(conn, "MAIL").instance_id
    conn.execute("UPDATE process_instance SET mark = 'cancelling' WHERE id = %s", (cancelled,))
    begun = publish(conn, "CALL")
    assert begun.started and begun.instance_id != cancelled


def test_nor_does_it_gather_what_was_stored(conn: Connection) -> None:
    for name in ("MAIL", "CALL"):
        publish(conn, name, seconds=60)
    put(conn)
    first, second = acquired(conn)
    assert isinstance(deliver_message(conn, first), ItemDone)
    conn.execute("UPDATE process_instance SET mark = 'cancelling'")
    assert isinstance(deliver_message(conn, second), ItemDone)
    assert instances(conn) == 2


def test_two_messages_at_once_start_one_instance(conn: Connection, database_url: str, tmp_path: Path) -> None:
    """Without the lock of gateway and key each would start one, and wait for the other for ever."""
    put(conn)
    with held_at(database_url, "command.before_commit", lambda c: publish(c, "MAIL"), tmp_path) as held:
        other = Contender(database_url, lambda c: publish(c, "CALL")).seen_waiting(conn)
    first, second = held.outcome(), other.outcome()
    assert isinstance(first, MessagePublished) and isinstance(second, MessagePublished)
    assert (first.started, second.started, first.instance_id) == (True, False, second.instance_id)
    assert instances(conn) == 1


def test_two_messages_that_have_both_found_nobody_start_one_instance(conn: Connection, database_url: str, tmp_path: Path) -> None:
    """Both have looked before either starts: only the lock of gateway and key is left between them."""
    put(conn)
    fifo = tmp_path / "hold.fifo"
    os.mkfifo(fifo)
    with connect(database_url) as gate:
        gate.execute("BEGIN")
        gate.execute("SELECT 1 FROM process_definition FOR UPDATE")
        both = [Contender(database_url, lambda c, name=name: publish(c, name)).seen_waiting(conn) for name in ("MAIL", "CALL")]
        failpoints.install(f"command.before_commit#1=hold:{fifo}:once")
        gate.execute("COMMIT")
        with fifo.open("wb"):  # one of them has arrived there
            waits = "SELECT count(*) FROM pg_stat_activity WHERE pid = ANY (%s) AND cardinality(pg_blocking_pids(pid)) > 0"
            while one(conn, waits, [each.pid for each in both]) == 0:
                assert not any(each.done for each in both), "expected the other one to wait"
    outcomes = [each.outcome() for each in both]
    failpoints.install("")
    assert sorted(outcome.started for outcome in outcomes) == [False, True]
    assert instances(conn) == 1


def test_a_stored_message_does_not_wait_for_a_start_under_way_and_is_put_off(conn: Connection, database_url: str, tmp_path: Path) -> None:
    """Its delivery holds a job, so it may not wait; that it finds nobody yet must not make it start another instance."""
    publish(conn, "CALL", seconds=60)
    put(conn)
    (lease,) = acquired(conn)
    with held_at(database_url, "command.before_commit", lambda c: publish(c, "MAIL"), tmp_path) as held:
        put_off = deliver_message(conn, lease)
        assert isinstance(put_off, Rejected) and put_off.refusal is Refusal.AWAITED
    assert held.outcome().started
    assert instances(conn) == 1


def test_a_refusal_of_the_second_stays_one(conn: Connection) -> None:
    put(conn)
    publish(conn, "MAIL")
    unknown = publish(conn, "FAX")
    assert isinstance(unknown, Rejected) and unknown.refusal is Refusal.NO_SUBSCRIPTION
