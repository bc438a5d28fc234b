"""A stored message meets the subscription that was opened after it."""

from __future__ import annotations

from uuid import UUID

import psycopg
import pytest
from psycopg.types.json import Jsonb

from engine.commands.deliver_message import deliver_message
from engine.commands.outcome import ItemDone, Refusal, Rejected
from engine.db import locks
from engine.db.acquire import recover_expired
from engine.db.session import connect
from engine.ids import new_id
from tests.cast import engage
from tests.commands.cases import acquired, deployed, places, started, status, variables
from tests.conftest import Clock
from tests.core.models import boundary, catch, message, model, start, user
from tests.rows import everything, insert, one


@pytest.fixture
def conn(committed_db: psycopg.Connection) -> psycopg.Connection:
    engage(committed_db)
    return committed_db


def stored(conn: psycopg.Connection, name: str = "PAID", key: str = "42", *, seconds: float = 3600, **values: object) -> UUID:
    expires = conn.execute("SELECT baton_clock() + make_interval(secs => %s)", (seconds,)).fetchone()
    assert expires is not None
    sent = Jsonb({name: {"type": "integer", "value": value} for name, value in values.items()})
    return insert(conn, "message", name=name, correlation_key=key, variables=sent, published_by="op", expires_at=expires[0])


def waiting(conn: psycopg.Connection) -> None:
    deployed(conn, model("start -> wait -> after -> end", wait=catch(on="PAID"), after=user()))


def test_a_message_that_was_there_first_is_delivered_by_a_job(conn: psycopg.Connection) -> None:
    waiting(conn)
    stored(conn, amount=33)
    case = started(conn, business_key="42")
    (lease,) = acquired(conn)

    assert deliver_message(conn, lease) == ItemDone(lease.item_id, lease.number, case.instance_id)

    assert places(conn, case.instance_id) == [("after", "waiting")]
    assert variables(conn, case.instance_id) == {"amount": 33}
    for table in ("message", "subscription", "job"):
        assert one(conn, f"SELECT count(*) FROM {table}") == 0, table
    again = deliver_message(conn, lease)
    assert isinstance(again, ItemDone) and again.repeated


@pytest.mark.parametrize(("name", "key"), [("PAID", "43"), ("OTHER", "42")])
def test_a_message_of_another_name_or_key_is_none_of_its_business(conn: psycopg.Connection, name: str, key: str) -> None:
    waiting(conn)
    stored(conn, name, key)
    started(conn, business_key="42")
    assert one(conn, "SELECT count(*) FROM job") == 0


def test_S25_a_message_that_has_expired_is_not_used_though_nobody_cleaned_it_up(conn: psycopg.Connection, clock: Clock) -> None:
    waiting(conn)
    stored(conn, seconds=10)
    clock.advance(seconds=12)
    started(conn, business_key="42")
    assert one(conn, "SELECT count(*) FROM job") == 0


def test_S25_a_message_that_expires_before_its_delivery_ends_the_job_and_the_case_waits_on(conn: psycopg.Connection, clock: Clock) -> None:
    waiting(conn)
    stored(conn, seconds=10)
    case = started(conn, business_key="42")
    (lease,) = acquired(conn)
    clock.advance(seconds=12)
    assert isinstance(deliver_message(conn, lease), ItemDone)
    assert places(conn, case.instance_id) == [("wait", "waiting")]
    assert one(conn, "SELECT count(*) FROM job") == 0 and one(conn, "SELECT count(*) FROM subscription") == 1


def test_the_oldest_message_is_delivered_and_the_others_stay(conn: psycopg.Connection) -> None:
    waiting(conn)
    stored(conn, amount=1)
    stored(conn, amount=2)
    case = started(conn, business_key="42")
    (lease,) = acquired(conn)
    deliver_message(conn, lease)
    assert variables(conn, case.instance_id) == {"amount": 1}
    assert one(conn, "SELECT variables->'amount'->>'value' FROM message") == "2"


def test_one_message_goes_to_one_of_two_cases(conn: psycopg.Connection) -> None:
    waiting(conn)
    stored(conn)
    first, second = started(conn, business_key="42"), started(conn, business_key="42")
    leases = acquired(conn)
    assert len(leases) == 2
    for lease in leases:
        assert isinstance(deliver_message(conn, lease), ItemDone)
    places_now = sorted(places(conn, case.instance_id)[0][0] for case in (first, second))
    assert places_now == ["after", "wait"]


def test_a_chain_of_stored_messages_is_delivered_one_job_after_another(conn: psycopg.Connection) -> None:
    deployed(conn, model("start -> one -> two -> end", one=catch(on="PAID"), two=catch(on="SHIPPED")))
    stored(conn, "PAID")
    stored(conn, "SHIPPED")
    case = started(conn, business_key="42")
    for _ in range(2):
        (lease,) = acquired(conn)
        assert isinstance(deliver_message(conn, lease), ItemDone)
    assert status(conn, case.instance_id) == "completed"


def test_a_boundary_event_that_does_not_interrupt_waits_for_the_next_message(conn: psycopg.Connection) -> None:
    deployed(conn, model("start -> a -> end", "note -> b -> end2", a=user(), b=user(), note=boundary("a", on="PAID", interrupting=False)))
    stored(conn)
    stored(conn)
    case = started(conn, business_key="42")
    for _ in range(2):
        (lease,) = acquired(conn)
        assert isinstance(deliver_message(conn, lease), ItemDone)
    assert [place for place, _ in places(conn, case.instance_id)] == ["a", "b", "b"]
    assert one(conn, "SELECT count(*) FROM subscription") == 1 and acquired(conn) == []


def test_R4_a_delivery_whose_lease_was_lost_moves_nothing(conn: psycopg.Connection, clock: Clock) -> None:
    waiting(conn)
    stored(conn)
    started(conn, business_key="42")
    (lease,) = acquired(conn)
    clock.advance(seconds=31)
    recover_expired(conn, limit=10)
    before = everything(conn)
    late = deliver_message(conn, lease)
    assert isinstance(late, Rejected) and late.refusal is Refusal.LEASE_LOST
    assert everything(conn) == before


def test_a_start_subscription_takes_every_stored_message_one_job_after_another(conn: psycopg.Connection) -> None:
    key = deployed(conn, model("begin -> a -> end", begin=start(message=message("NEW")), a=user()), has_none_start=False)
    stored(conn, "NEW", "1")
    stored(conn, "NEW", "2")
    subscription = insert(conn, "subscription", kind="start", message_name="NEW", definition_id=key, element_id="begin")
    conn.execute(locks.KEYS, {"subscription_ids": [subscription], "job_ids": [new_id()]})

    for _ in range(2):
        (lease,) = acquired(conn)
        assert isinstance(deliver_message(conn, lease), ItemDone)

    assert acquired(conn) == [] and one(conn, "SELECT count(*) FROM message") == 0
    assert conn.execute("SELECT business_key FROM process_instance ORDER BY business_key").fetchall() == [("1",), ("2",)]
    assert one(conn, "SELECT count(*) FROM subscription") == 1, "it outlives its messages"


def test_a_message_taken_under_our_hands_makes_the_delivery_look_again(database_url: str, conn: psycopg.Connection) -> None:
    waiting(conn)
    first, second = stored(conn, amount=1), stored(conn, amount=2)
    case = started(conn, business_key="42")
    (lease,) = acquired(conn)
    with connect(database_url) as other, connect(database_url) as watcher:
        other.execute("BEGIN")
        other.execute("DELETE FROM message WHERE id = %s", (first,))
        from threading import Thread

        outcome: list[object] = []
        thread = Thread(target=lambda: outcome.append(deliver_message(conn, lease)))
        thread.start()
        blocked = "SELECT count(*) FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid))"
        while one(watcher, blocked, other.info.backend_pid) == 0:
            assert thread.is_alive(), outcome
        other.execute("COMMIT")
        thread.join(timeout=20)
    assert isinstance(outcome[0], ItemDone)
    assert variables(conn, case.instance_id) == {"amount": 2}
    assert one(conn, "SELECT count(*) FROM message WHERE id = %s", second) == 0
