"""Who must wait for whom, and what they find when the wait is over: each test fails without the lock that it is about."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from psycopg.types.json import Jsonb

from engine.commands import deliver_message as delivering
from engine.commands.cancel import cancel_instance
from engine.commands.complete_task import complete_task
from engine.commands.deliver_message import deliver_message
from engine.commands.deploy import deploy
from engine.commands.external_tasks import acquire_external_tasks, complete_external_task, renew_external_task
from engine.commands.jobs import complete_job
from engine.commands.leases import release_by_operator
from engine.commands.outcome import Deployed, InstanceCancelled, InstanceStarted, ItemDone, ItemReleased, Lease, Refusal, Rejected, Renewed
from engine.commands.start import start_instance
from engine.db import acquire
from engine.db.acquire import WORK, recover_expired
from engine.db.session import connect
from engine.expressions import parse
from tests import rows
from tests.cast import ADA, OP, engage
from tests.commands import cases
from tests.commands.test_acquire import take
from tests.commands.test_deploy import message, process, put
from tests.commands.test_leases import leased
from tests.conftest import Clock
from tests.core.models import catch, model, par, service, user
from tests.races.contest import Connection, Contender, contest, held_at

ROOT_ROW = "SELECT 1 FROM process_instance WHERE id = %s FOR UPDATE"
FOR_ADA = user(assignee=parse("${'ada'}"))


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    engage(committed_db)
    return committed_db


def meanwhile(url: str, watch: Connection, change: str, params: tuple[Any, ...], act: Callable[[Connection], Any]) -> Any:
    """`act` is seen to wait for whoever made `change` and has not committed; its outcome after the commit."""
    with connect(url) as other:
        other.execute("BEGIN")
        assert other.execute(change, params).rowcount == 1, change
        contender = Contender(url, act).seen_waiting(watch)
        other.execute("COMMIT")
        return contender.outcome()


# ---- definitions: starting, suspending, deploying

SUSPEND = "UPDATE process_definition SET status = 'suspended' WHERE id = (SELECT id FROM process_definition FOR UPDATE)"


@pytest.mark.parametrize("remembered", [False, True])
def test_a_start_waits_for_a_suspension_and_is_refused(conn: Connection, database_url: str, remembered: bool) -> None:
    cases.deployed(conn, model("start -> a -> end", a=user()))
    if remembered:
        cases.started(conn)
    before = rows.one(conn, "SELECT count(*) FROM process_instance")
    start = lambda c: start_instance(c, "model", actor=ADA, variables={}, request_id="1")  # noqa: E731
    refused = meanwhile(database_url, conn, SUSPEND, (), start)
    assert refused.refusal is Refusal.DEFINITION_SUSPENDED
    assert rows.one(conn, "SELECT count(*) FROM process_instance") == before


def test_a_deployment_waits_for_a_start_under_way_and_takes_over_only_then(conn: Connection, database_url: str, tmp_path: Path) -> None:
    put(conn, process(name="old"))
    newer = process(name="new")
    start = lambda c: start_instance(c, "p", actor=ADA, variables={}, request_id="1")  # noqa: E731
    with held_at(database_url, "command.before_commit", start, tmp_path) as held:
        deploying = Contender(database_url, lambda c: deploy(c, [("p.bpmn", newer)], actor=OP)).seen_waiting(conn)
    assert isinstance(held.outcome(), InstanceStarted)
    assert isinstance(deploying.outcome(), Deployed)
    assert deploying.outcome().definitions[0].version == 2


# ---- a case whose token has siblings is locked before it is read: the root, then the leaf


def with_siblings(conn: Connection, **config: Any) -> UUID:
    """A case of two branches, so that nothing is tried the optimistic way."""
    work = service("work", **config)
    cases.deployed(conn, model("start -> par -> a -> par2 -> end", "par -> work -> par2", par=par(), par2=par(), a=FOR_ADA, work=work))
    return cases.started(conn).instance_id


def test_R8_a_completion_waits_for_an_assignment_and_hears_whose_the_task_is(conn: Connection, database_url: str) -> None:
    with_siblings(conn)
    task = cases.the_task(conn, "a")
    complete = lambda c: complete_task(c, task, actor=ADA, variables={}, request_id="1")  # noqa: E731
    conn.execute("UPDATE user_task SET candidate_groups = '{billing}'")
    refused = meanwhile(database_url, conn, "UPDATE user_task SET assignee = 'bo' WHERE id = %s", (task,), complete)
    assert (refused.refusal, refused.by) == (Refusal.NOT_YOURS, "bo")


def recovering(url: str, watch: Connection, act: Callable[[Connection], Any]) -> Any:
    """`act` waits for a recovery that has taken its item back and has not committed."""
    with connect(url) as recoverer:
        recoverer.execute("BEGIN")
        assert len(recover_expired(recoverer, limit=5)) == 1
        contender = Contender(url, act).seen_waiting(watch)
        recoverer.execute("COMMIT")
        return contender.outcome()


def test_R4_a_completion_with_siblings_waits_for_a_recovery_and_has_lost_its_lease(
    conn: Connection, database_url: str, clock: Clock
) -> None:
    with_siblings(conn)
    (lease,) = cases.acquired(conn)
    clock.advance(seconds=31)
    first = Lease("job", lease.item_id, lease.number, lease.owner, lease.expires_at, {"lock_first": True})
    refused = recovering(database_url, conn, lambda c: complete_job(c, first, variables={}))
    assert refused.refusal is Refusal.LEASE_LOST


def test_R4_an_external_completion_with_siblings_waits_for_a_recovery_and_has_lost_its_lease(
    conn: Connection, database_url: str, clock: Clock
) -> None:
    with_siblings(conn, work="external")
    acquired = acquire_external_tasks(conn, actor=OP, worker_id="w", topics=["work"], lease_seconds=5)
    assert not isinstance(acquired, Rejected)
    (task,) = acquired
    clock.advance(seconds=6)
    complete = lambda c: complete_external_task(c, task.id, actor=OP, lease_number=task.lease_number, variables={})  # noqa: E731
    assert recovering(database_url, conn, complete).refusal is Refusal.LEASE_LOST


def test_a_completion_behind_a_cancel_holds_nothing_that_the_cancel_needs(conn: Connection, database_url: str) -> None:
    """The optimistic write locks the root before its leaf: the other way round the two would deadlock."""
    cases.deployed(conn, model("start -> a -> b -> end", a=FOR_ADA, b=user()))
    case = cases.started(conn).instance_id
    task = cases.the_task(conn, "a")
    cancelled, refused = contest(
        database_url,
        ROOT_ROW,
        (case,),
        lambda c: cancel_instance(c, case, actor=OP, reason="", request_id="1"),
        lambda c: complete_task(c, task, actor=ADA, variables={}, request_id="1"),
    )
    assert isinstance(cancelled, InstanceCancelled)
    assert (refused.refusal, refused.by) == (Refusal.ALREADY_CANCELLED, "op")


# ---- stored messages


def stored(conn: Connection, name: str = "PAID", seconds: float = 3600) -> None:
    expires = rows.one(conn, "SELECT baton_clock() + make_interval(secs => %s)", seconds)
    rows.insert(conn, "message", name=name, correlation_key="7", variables=Jsonb({}), published_by="op", expires_at=expires)


def waiting(conn: Connection) -> UUID:
    cases.deployed(conn, model("start -> wait -> next -> end", wait=catch(on="PAID"), next=user()))
    return cases.started(conn, business_key="7").instance_id


def test_a_delivery_waits_for_another_step_of_the_case(conn: Connection, database_url: str) -> None:
    stored(conn)
    case = waiting(conn)
    (lease,) = cases.acquired(conn)
    step = "UPDATE process_instance SET revision = revision + 1 WHERE id = %s"
    assert isinstance(meanwhile(database_url, conn, step, (case,), lambda c: deliver_message(c, lease)), ItemDone)
    assert cases.places(conn, case) == [("next", "waiting")]


def test_R4_a_delivery_waits_for_a_recovery_and_has_lost_its_lease(conn: Connection, database_url: str, clock: Clock) -> None:
    stored(conn)
    case = waiting(conn)
    (lease,) = cases.acquired(conn)
    clock.advance(seconds=31)
    assert recovering(database_url, conn, lambda c: deliver_message(c, lease)).refusal is Refusal.LEASE_LOST
    assert cases.places(conn, case) == [("wait", "waiting")]


def test_a_delivery_to_a_start_event_waits_for_a_suspension_and_starts_nothing(conn: Connection, database_url: str) -> None:
    stored(conn, "NEW")
    put(conn, process(**message("NEW")))
    (lease,) = cases.acquired(conn)
    assert meanwhile(database_url, conn, SUSPEND, (), lambda c: deliver_message(c, lease)) == ItemReleased(lease.item_id)
    assert rows.one(conn, "SELECT count(*) FROM process_instance") == 0


def test_R9_two_deliveries_of_one_message_are_one_correlation(conn: Connection, database_url: str, tmp_path: Path) -> None:
    stored(conn)
    first, second = waiting(conn), cases.started(conn, business_key="7").instance_id
    one, two = cases.acquired(conn)
    with held_at(database_url, "command.before_commit", lambda c: deliver_message(c, one), tmp_path) as held:
        other = Contender(database_url, lambda c: deliver_message(c, two)).seen_waiting(conn)
    assert isinstance(held.outcome(), ItemDone)
    assert isinstance(other.outcome(), ItemDone)
    assert sorted(cases.places(conn, first) + cases.places(conn, second)) == [("next", "waiting"), ("wait", "waiting")]
    assert rows.one(conn, "SELECT count(*) FROM history WHERE kind = 'message_correlated'") == 1


def test_S25_a_message_that_expires_between_the_look_and_the_taking_is_not_used(
    conn: Connection, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(conn, seconds=10)
    case = waiting(conn)
    (lease,) = cases.acquired(conn)
    written = delivering.write

    def later(*given: Any) -> Any:
        clock.advance(seconds=11)
        return written(*given)

    monkeypatch.setattr(delivering, "write", later)
    assert isinstance(deliver_message(conn, lease), ItemDone)
    assert cases.places(conn, case) == [("wait", "waiting")]
    assert rows.one(conn, "SELECT data->>'outcome' FROM history WHERE kind = 'job_completed'") == "no message"


def test_S25_a_start_event_gets_no_job_for_a_message_that_has_expired(conn: Connection, clock: Clock) -> None:
    stored(conn, "NEW")
    stored(conn, "NEW", seconds=10)
    put(conn, process(**message("NEW")))
    (lease,) = cases.acquired(conn)
    clock.advance(seconds=11)
    assert isinstance(deliver_message(conn, lease), ItemDone)
    assert rows.one(conn, "SELECT count(*) FROM process_instance") == 1
    assert rows.one(conn, "SELECT count(*) FROM job") == 0


def test_a_delivery_that_opens_a_subscription_has_its_keys_before_it_waits_for_the_message(conn: Connection, database_url: str) -> None:
    """The order of locks: whoever waits for a message waits for nothing after it."""
    stored(conn)
    cases.deployed(conn, model("start -> wait -> again -> end", wait=catch(on="PAID"), again=catch(on="SHIPPED")))
    cases.started(conn, business_key="7")
    (lease,) = cases.acquired(conn)
    keys = "SELECT objid::bigint & 4294967295, mode FROM pg_locks WHERE locktype = 'advisory' AND granted AND pid = %s"
    with connect(database_url) as other:
        other.execute("BEGIN")
        assert other.execute("SELECT 1 FROM message FOR UPDATE").rowcount == 1
        contender = Contender(database_url, lambda c: deliver_message(c, lease)).seen_waiting(conn)
        number = rows.one(conn, "SELECT baton_key_number('', 'SHIPPED', '7') & 4294967295")
        assert conn.execute(keys, (contender.pid,)).fetchall() == [(number, "ShareLock")]
        other.execute("COMMIT")
    assert isinstance(contender.outcome(), ItemDone)


# ---- leases

ALL = pytest.mark.parametrize("table", list(WORK))


@ALL
def test_an_operator_who_waits_takes_the_lease_that_is_there_after_the_wait(conn: Connection, database_url: str, table: str) -> None:
    lease = leased(conn, table)
    again = f"UPDATE {table} SET lease_number = lease_number + 1, lease_owner = 'another' WHERE id = %s"
    take_away = lambda c: release_by_operator(c, table, lease.item_id, actor=OP, reason="", request_id="1")  # noqa: E731
    assert meanwhile(database_url, conn, again, (lease.item_id,), take_away) == ItemReleased(lease.item_id)
    assert rows.columns(conn, table, lease.item_id, "status", "lease_number") == ("available", 2)


def test_a_client_that_renews_waits_for_a_row_that_is_held_for_a_moment(conn: Connection, database_url: str) -> None:
    rows.external_task(conn)
    acquired = acquire_external_tasks(conn, actor=OP, worker_id="w", topics=["score"], lease_seconds=5)
    assert not isinstance(acquired, Rejected)
    (task,) = acquired
    renewing = lambda c: renew_external_task(c, task.id, actor=OP, lease_number=task.lease_number, lease_seconds=60)  # noqa: E731
    lock = "SELECT 1 FROM external_task WHERE id = %s FOR UPDATE"
    assert isinstance(meanwhile(database_url, conn, lock, (task.id,), renewing), Renewed)


@ALL
def test_F50_recovery_row_by_row_passes_by_a_locked_row_and_one_renewed_meanwhile(
    conn: Connection, database_url: str, clock: Clock, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = [rows.MAKERS[table](conn, overdue=100 - n) for n in range(4)]
    assert len(take(conn, table)) == 4
    clock.advance(seconds=31)
    bad, locked, renewed, expired = items
    conn.execute(f"ALTER TABLE {table} ADD CHECK (id <> '{bad}' OR status = 'leased')".encode())
    listed = acquire._expired

    def then_renewed(*given: Any) -> list[UUID]:
        found = list(listed(*given))
        conn.execute(f"UPDATE {table} SET lease_expires_at = baton_clock() + interval '1 minute' WHERE id = %s".encode(), (renewed,))
        return found

    monkeypatch.setattr(acquire, "_expired", then_renewed)
    with connect(database_url) as other:
        other.execute("BEGIN")
        other.execute(f"SELECT 1 FROM {table} WHERE id = %s FOR UPDATE".encode(), (locked,))
        conn.execute("SET statement_timeout = '10s'")  # who waits for the locked row fails
        assert [item.item_id for item in recover_expired(conn, limit=10)] == [expired]
        other.execute("ROLLBACK")
