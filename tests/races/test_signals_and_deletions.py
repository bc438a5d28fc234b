"""Signals against subscribers, versions that are deleted against starts and deployments: each race is really made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.commands.cancel import cancel_instance
from engine.commands.delete_version import delete_version
from engine.commands.deploy import deploy
from engine.commands.messages import publish_message
from engine.commands.outcome import (
    Deployed,
    InstanceCancelled,
    InstanceStarted,
    ItemDone,
    Lease,
    MessagePublished,
    Refusal,
    Rejected,
    SignalThrown,
    VersionDeleted,
)
from engine.commands.signals import broadcast_signal, receive_signal, spread_signal
from engine.commands.start import start_instance
from engine.commands.thrown_messages import publish_thrown
from engine.db.acquire import recover_expired
from engine.db.session import connect
from tests import rows
from tests.cast import ADA, OP, engage
from tests.commands import cases
from tests.commands.test_delete_version import signal_start, version, waiting
from tests.commands.test_deploy import message, process, put
from tests.conftest import Clock
from tests.core.models import catch, model, tells, user
from tests.races.contest import Connection, Contender, contest, held_at

Act = Callable[[Connection], Any]
KEY = "SELECT baton_lock_keys(ARRAY[baton_key_number('', chr(29) || 'deployment', 'p')], '{}')"


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    engage(committed_db)
    return committed_db


def listener(conn: Connection) -> None:
    cases.deployed(conn, model("start -> wait -> after -> end", wait=catch(signal="GO"), after=user()))


def begin(conn: Connection) -> InstanceStarted | Rejected:
    return start_instance(conn, "model", actor=ADA, variables={}, request_id=None)


def go(conn: Connection) -> SignalThrown | Rejected:
    return broadcast_signal(conn, "GO", actor=OP, variables={})


def spread(conn: Connection) -> list[Lease]:
    """The throws go their way; the deliveries that they wrote, leased."""
    for lease in cases.acquired(conn):
        assert isinstance(spread_signal(conn, lease), ItemDone)
    return cases.acquired(conn)


def test_R9_a_subscriber_that_commits_after_the_throw_waits_for_the_next_signal(
    conn: Connection, database_url: str, tmp_path: Path
) -> None:
    """It was opening when the signal was thrown: nobody could have seen it wait. It is neither served nor stranded."""
    listener(conn)
    with held_at(database_url, "command.before_commit", begin, tmp_path) as opening:
        assert isinstance(go(conn), SignalThrown)
    late = opening.outcome()
    assert spread(conn) == []
    assert cases.places(conn, late.instance_id) == [("wait", "waiting")]
    go(conn)
    (lease,) = spread(conn)
    assert isinstance(receive_signal(conn, lease), ItemDone)
    assert cases.places(conn, late.instance_id) == [("after", "waiting")]


def test_R9_a_subscriber_that_commits_while_the_throw_is_under_way_is_not_reached_by_it(
    conn: Connection, database_url: str, tmp_path: Path
) -> None:
    listener(conn)
    before = begin(conn)
    with held_at(database_url, "command.before_commit", go, tmp_path):
        meanwhile = begin(conn)
    after = begin(conn)
    leases = spread(conn)
    assert len(leases) == 1
    assert isinstance(receive_signal(conn, leases[0]), ItemDone)
    assert isinstance(before, InstanceStarted) and isinstance(meanwhile, InstanceStarted) and isinstance(after, InstanceStarted)
    assert [cases.places(conn, case.instance_id)[0][0] for case in (before, meanwhile, after)] == ["after", "wait", "wait"]


def test_R9_two_signals_at_once_move_a_waiting_instance_once(conn: Connection, database_url: str) -> None:
    listener(conn)
    case = begin(conn)
    assert isinstance(case, InstanceStarted)
    go(conn)
    go(conn)
    first, second = spread(conn)
    root = "SELECT 1 FROM process_instance WHERE id = %s FOR UPDATE"
    outcomes = contest(database_url, root, (case.instance_id,), *(receiving(lease) for lease in (first, second)))
    assert [type(outcome) for outcome in outcomes] == [ItemDone, ItemDone]
    assert cases.kinds(conn, case.instance_id).count("signal_caught") == 1
    assert rows.one(conn, "SELECT count(*) FROM job") == 0


def receiving(lease: Lease) -> Act:
    return lambda c: receive_signal(c, lease)


def test_a_signal_meets_a_cancellation_under_way_and_finds_nobody(conn: Connection, database_url: str, tmp_path: Path) -> None:
    listener(conn)
    case = begin(conn)
    assert isinstance(case, InstanceStarted)
    go(conn)
    (lease,) = spread(conn)
    cancel: Act = lambda c: cancel_instance(c, case.instance_id, actor=OP, reason="", request_id=None)  # noqa: E731
    with held_at(database_url, "command.before_commit", cancel, tmp_path) as held:
        contender = Contender(database_url, receiving(lease)).seen_waiting(conn)
    assert isinstance(held.outcome(), InstanceCancelled)
    late = contender.outcome()
    assert isinstance(late, Rejected | ItemDone)
    assert cases.status(conn, case.instance_id) == "cancelled"
    assert cases.kinds(conn, case.instance_id).count("signal_caught") == 0


def test_R4_a_delivery_that_was_taken_back_while_it_waited_brings_nothing(conn: Connection, database_url: str, clock: Clock) -> None:
    listener(conn)
    case = begin(conn)
    assert isinstance(case, InstanceStarted)
    go(conn)
    (lease,) = spread(conn)
    clock.advance(seconds=31)
    with connect(database_url) as holder:
        holder.execute("BEGIN")
        holder.execute("SELECT 1 FROM process_instance WHERE id = %s FOR UPDATE", (case.instance_id,))
        contender = Contender(database_url, receiving(lease)).seen_waiting(conn)
        assert len(recover_expired(conn, limit=5)) == 1
        holder.execute("COMMIT")
        lost = contender.outcome()
    assert isinstance(lost, Rejected) and lost.refusal is Refusal.LEASE_LOST
    assert cases.places(conn, case.instance_id) == [("wait", "waiting")]


# ---- a message that a case threw


def test_a_thrown_message_waits_for_the_subscriber_that_is_opening_and_reaches_it(
    conn: Connection, database_url: str, tmp_path: Path
) -> None:
    cases.deployed(conn, model("start -> tell -> end", tell=tells("PAID", seconds=0)))
    cases.started(conn)
    (lease,) = cases.acquired(conn)
    receiver = replace(model("start -> wait -> after -> end", wait=catch(on="PAID"), after=user()), key="receiver")
    cases.deployed(conn, receiver)
    opens: Act = lambda c: start_instance(c, "receiver", actor=ADA, variables={}, request_id=None)  # noqa: E731
    with held_at(database_url, "command.before_commit", opens, tmp_path) as opening:
        publishing = Contender(database_url, lambda c: publish_thrown(c, lease)).seen_waiting(conn)
    case = opening.outcome()
    assert isinstance(publishing.outcome(), ItemDone)
    assert cases.places(conn, case.instance_id) == [("after", "waiting")]
    assert rows.one(conn, "SELECT count(*) FROM job") == 0


def test_one_waiting_instance_gets_one_of_two_messages_at_once(conn: Connection, database_url: str) -> None:
    cases.deployed(conn, model("start -> tell -> end", tell=tells("PAID", seconds=60)))
    cases.started(conn)
    (lease,) = cases.acquired(conn)
    cases.deployed(conn, model("start -> wait -> after -> end", wait=catch(on="PAID"), after=user()), version=2)
    case = cases.started(conn)
    publish: Act = lambda c: publish_message(c, "PAID", actor=OP, variables={}, time_to_live_seconds=60)  # noqa: E731
    root = "SELECT 1 FROM process_instance WHERE id = %s FOR UPDATE"
    thrown, published = contest(database_url, root, (case.instance_id,), lambda c: publish_thrown(c, lease), publish)
    assert isinstance(thrown, ItemDone)
    assert isinstance(published, MessagePublished) and published.outcome == "stored"
    assert rows.one(conn, "SELECT count(*) FROM message") == 1


# ---- versions that are deleted


def remove(conn: Connection, number: int) -> VersionDeleted | Rejected:
    return delete_version(conn, version(conn, number), actor=OP, reason="a mistake")


def test_S53_a_start_under_way_is_waited_for_and_counted(conn: Connection, database_url: str, tmp_path: Path) -> None:
    busy = '<userTask id="u"/><sequenceFlow id="f1" sourceRef="s" targetRef="u"/>'
    put(conn, process(rest=busy))
    start: Act = lambda c: start_instance(c, "p", actor=ADA, variables={}, request_id="1")  # noqa: E731
    with held_at(database_url, "command.before_commit", start, tmp_path) as held:
        removing = Contender(database_url, lambda c: remove(c, 1)).seen_waiting(conn)
    assert isinstance(held.outcome(), InstanceStarted)
    refused = removing.outcome()
    assert isinstance(refused, Rejected) and refused.refusal is Refusal.DEFINITION_IN_USE


def test_S53_a_start_waits_for_a_deletion_under_way_and_takes_the_version_before(
    conn: Connection, database_url: str, tmp_path: Path
) -> None:
    put(conn, process())
    put(conn, process(name="two"))
    start: Act = lambda c: start_instance(c, "p", actor=ADA, variables={}, request_id="1")  # noqa: E731
    with held_at(database_url, "command.before_commit", lambda c: remove(c, 2), tmp_path) as held:
        starting = Contender(database_url, start).seen_waiting(conn)
    assert isinstance(held.outcome(), VersionDeleted)
    started = starting.outcome()
    assert isinstance(started, InstanceStarted) and started.version == 1


def test_a_deployment_waits_for_a_deletion_and_takes_over_what_it_restored(conn: Connection, database_url: str, tmp_path: Path) -> None:
    put(conn, process(**message("A")))
    put(conn, process(**message("B")))
    third = process(**message("C"))
    with held_at(database_url, "command.before_commit", lambda c: remove(c, 2), tmp_path) as held:
        deploying = Contender(database_url, lambda c: deploy(c, [("p.bpmn", third)], actor=OP)).seen_waiting(conn)
    assert isinstance(held.outcome(), VersionDeleted)
    assert isinstance(deploying.outcome(), Deployed)
    assert waiting(conn) == [("start", "C", 3)], "what was restored is replaced: nothing starts twice"


def test_a_deletion_waits_for_a_deployment_and_restores_nothing_beside_it(conn: Connection, database_url: str, tmp_path: Path) -> None:
    put(conn, process(**message("A")))
    put(conn, process(**message("B")))
    third = process(**message("C"))
    with held_at(database_url, "command.before_commit", lambda c: deploy(c, [("p.bpmn", third)], actor=OP), tmp_path) as held:
        removing = Contender(database_url, lambda c: remove(c, 2)).seen_waiting(conn)
    assert isinstance(held.outcome(), Deployed)
    assert removing.outcome() == VersionDeleted(version(conn, 2), "p", 2, newest=None)
    assert waiting(conn) == [("start", "C", 3)]


def test_two_deletions_of_the_two_newest_versions_at_once_leave_the_third(conn: Connection, database_url: str) -> None:
    for name in ("A", "B", "C"):
        put(conn, process(**message(name)))
    outcomes = contest(database_url, KEY, (), lambda c: remove(c, 3), lambda c: remove(c, 2))
    assert [outcome.newest for outcome in outcomes] == [2, 1]
    assert waiting(conn) == [("start", "A", 1)]


def test_a_signal_start_waits_for_a_deletion_of_its_version_and_ends_quietly(conn: Connection, database_url: str, tmp_path: Path) -> None:
    put(conn, signal_start("GO"))
    go(conn)
    (lease,) = spread(conn)
    with held_at(database_url, "command.before_commit", lambda c: remove(c, 1), tmp_path) as held:
        receiving_now = Contender(database_url, receiving(lease)).seen_waiting(conn)
    assert isinstance(held.outcome(), VersionDeleted)
    assert isinstance(receiving_now.outcome(), ItemDone)
    assert rows.one(conn, "SELECT count(*) FROM process_instance") == 0
