"""Jobs that bring a signal, or a message that a case threw: what they wait for, and what they find when the wait is over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from psycopg.types.json import Jsonb

from engine.commands.outcome import ItemDone, ItemReleased, Lease, Refusal, Rejected, SignalThrown
from engine.commands.signals import broadcast_signal, receive_signal, spread_signal
from engine.commands.thrown_messages import publish_thrown
from engine.db.acquire import recover_expired
from engine.db.session import connect
from tests import rows
from tests.cast import OP, engage
from tests.commands import cases
from tests.conftest import Clock
from tests.core.models import catch, model, tells, user
from tests.races.contest import Connection, Contender
from tests.races.test_waits import SUSPEND, meanwhile, recovering

STEP = "UPDATE process_instance SET revision = revision + 1 WHERE id = %s"


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    engage(committed_db)
    return committed_db


def thrown(conn: Connection) -> Lease:
    """A case waits, and a signal for it was thrown: the job of the throw, leased."""
    cases.deployed(conn, model("start -> wait -> after -> end", wait=catch(signal="GO"), after=user()))
    cases.started(conn)
    assert isinstance(broadcast_signal(conn, "GO", actor=OP, variables={}), SignalThrown)
    (lease,) = cases.acquired(conn)
    return lease


def arriving(conn: Connection) -> Lease:
    """The job that brings the signal to that case, leased."""
    assert isinstance(spread_signal(conn, thrown(conn)), ItemDone)
    (lease,) = cases.acquired(conn)
    return lease


def told(conn: Connection) -> Lease:
    """The job of a message that a case threw."""
    cases.deployed(conn, model("start -> tell -> end", tell=tells("PAID")))
    cases.started(conn)
    (lease,) = cases.acquired(conn)
    return lease


@pytest.mark.parametrize(
    ("made", "act"),
    [
        pytest.param(thrown, spread_signal, id="a throw that spreads"),
        pytest.param(arriving, receive_signal, id="a signal that arrives"),
        pytest.param(told, publish_thrown, id="a thrown message"),
    ],
)
def test_R4_whoever_waits_for_the_recovery_of_its_job_has_lost_its_lease_and_brings_nothing(
    conn: Connection, database_url: str, clock: Clock, made: Callable[[Connection], Lease], act: Callable[..., Any]
) -> None:
    lease = made(conn)
    there = "SELECT (SELECT count(*) FROM job), (SELECT string_agg(element_id, ' ') FROM token), (SELECT count(*) FROM message)"
    before = conn.execute(there).fetchone()
    clock.advance(seconds=31)
    assert recovering(database_url, conn, lambda c: act(c, lease)).refusal is Refusal.LEASE_LOST
    assert conn.execute(there).fetchone() == before


def test_R4_a_thrown_message_that_is_taken_back_while_it_waits_for_its_receiver_brings_nothing(
    conn: Connection, database_url: str, clock: Clock
) -> None:
    lease = told(conn)
    cases.deployed(conn, model("start -> wait -> after -> end", wait=catch(on="PAID"), after=user()), version=2)
    case = cases.started(conn).instance_id
    clock.advance(seconds=31)
    with connect(database_url) as holder:
        holder.execute("BEGIN")
        holder.execute("SELECT 1 FROM process_instance WHERE id = %s FOR UPDATE", (case,))
        contender = Contender(database_url, lambda c: publish_thrown(c, lease)).seen_waiting(conn)
        assert len(recover_expired(conn, limit=5)) == 1
        holder.execute("COMMIT")
        lost = contender.outcome()
    assert isinstance(lost, Rejected) and lost.refusal is Refusal.LEASE_LOST
    assert cases.places(conn, case) == [("wait", "waiting")]


def test_a_signal_waits_for_another_step_of_the_case(conn: Connection, database_url: str) -> None:
    lease = arriving(conn)
    case = rows.one(conn, "SELECT id FROM process_instance")
    assert isinstance(meanwhile(database_url, conn, STEP, (case,), lambda c: receive_signal(c, lease)), ItemDone)
    assert cases.places(conn, case) == [("after", "waiting")]


def test_a_signal_for_a_start_event_waits_for_a_suspension_and_starts_nothing(conn: Connection, database_url: str) -> None:
    definition = cases.deployed(conn, model("start -> a -> end", a=user()))
    now = rows.one(conn, "SELECT baton_clock()")
    payload = Jsonb({"name": "GO", "variables": {}, "throw_id": None, "thrown_by": None})
    rows.insert(conn, "job", kind="signal", definition_id=definition, element_id="start", due_at=now, available_at=now, payload=payload)
    (lease,) = cases.acquired(conn)
    assert meanwhile(database_url, conn, SUSPEND, (), lambda c: receive_signal(c, lease)) == ItemReleased(lease.item_id)
    assert rows.one(conn, "SELECT count(*) FROM process_instance") == 0
