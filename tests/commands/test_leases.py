"""Leases in hand: renewed, handed back unspent, taken away by an operator."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from engine.commands.leases import release, release_by_operator, renew
from engine.commands.outcome import ItemReleased, Lease, Refusal, Rejected
from engine.db.acquire import WORK
from engine.ids import new_id
from tests import rows
from tests.cast import ADA, OP
from tests.commands.test_acquire import take
from tests.conftest import Clock

Connection = psycopg.Connection[Any]
ALL = pytest.mark.parametrize("table", list(WORK))


def leased(conn: Connection, table: str, **values: Any) -> Lease:
    item = rows.MAKERS[table](conn, **values)
    [found] = [row for row in take(conn, table) if row.item_id == item]
    return Lease(found.kind, found.item_id, found.number, found.owner, found.expires_at)


def state(conn: Connection, table: str, item: UUID) -> tuple[Any, ...]:
    return rows.columns(conn, table, item, "status", "lease_owner", "lease_number", "attempts")


@ALL
def test_R4_a_batch_is_renewed_for_as_long_as_each_was_acquired_for(committed_db: Connection, table: str, clock: Clock) -> None:
    short = leased(committed_db, table)
    gone = Lease(table, new_id(), 1, "w1")
    clock.advance(seconds=25)
    renewed = renew(committed_db, [short, gone])
    assert renewed.lost == {gone.item_id}
    assert short.expires_at is not None
    moved = renewed.expires_at[short.item_id] - short.expires_at
    assert timedelta(seconds=24.9) < moved < timedelta(seconds=27)
    again = renew(committed_db, [short]).expires_at[short.item_id] - renewed.expires_at[short.item_id]
    assert again < timedelta(seconds=2)
    longer = renew(committed_db, [short], lease_seconds=300).expires_at[short.item_id] - short.expires_at
    assert longer > timedelta(seconds=290)


def test_one_renewal_takes_leases_of_all_three_tables(committed_db: Connection) -> None:
    leases = [leased(committed_db, table) for table in WORK]
    assert set(renew(committed_db, leases).expires_at) == {lease.item_id for lease in leases}


@ALL
def test_R4_an_expired_lease_that_nobody_recovered_is_still_renewed(committed_db: Connection, table: str, clock: Clock) -> None:
    lease = leased(committed_db, table)
    clock.advance(seconds=60)
    assert set(renew(committed_db, [lease]).expires_at) == {lease.item_id}


@ALL
def test_R5_releasing_an_unstarted_item_gives_the_attempt_back(committed_db: Connection, table: str) -> None:
    lease = leased(committed_db, table)
    assert release(committed_db, lease) == ItemReleased(lease.item_id)
    assert state(committed_db, table, lease.item_id) == ("available", None, 1, 0)
    assert rows.history(committed_db, lease.item_id) == [(f"{table}_released", "engine")]
    [again] = take(committed_db, table)
    assert (again.number, again.attempt) == (2, 1)


@ALL
def test_R5_what_was_not_started_is_not_passed_by_what_came_after_it(committed_db: Connection, table: str) -> None:
    waited = leased(committed_db, table, overdue=3600)
    rows.MAKERS[table](committed_db, overdue=1800)
    assert isinstance(release(committed_db, waited), ItemReleased)
    assert [row.item_id for row in take(committed_db, table, limit=1)] == [waited.item_id]


@ALL
def test_what_was_refused_for_its_cases_sake_goes_before_nobody(committed_db: Connection, table: str) -> None:
    lease = leased(committed_db, table)
    release(committed_db, lease, because=Refusal.INSTANCE_SUSPENDED)
    assert rows.columns(committed_db, table, lease.item_id, "level") == rows.columns(committed_db, table, lease.item_id, "priority")


@ALL
def test_R4_a_lost_lease_releases_nothing_and_a_repeat_is_harmless(committed_db: Connection, table: str) -> None:
    lease = leased(committed_db, table)
    stale = Lease(table, lease.item_id, lease.number + 1, "w1")
    before = rows.everything(committed_db)
    assert release(committed_db, stale) == Rejected(Refusal.LEASE_LOST, item_id=lease.item_id)
    assert rows.everything(committed_db) == before
    assert rows.one(committed_db, "SELECT reason FROM refusal") == "lease_lost"

    release(committed_db, lease)
    before = rows.everything(committed_db)
    assert release(committed_db, lease) == ItemReleased(lease.item_id)
    assert rows.everything(committed_db) == before


@ALL
def test_an_operator_takes_a_lease_away_and_the_attempt_is_spent(committed_db: Connection, table: str) -> None:
    lease = leased(committed_db, table)
    done = release_by_operator(committed_db, table, lease.item_id, actor=OP, reason="stuck", request_id="1")
    assert done == ItemReleased(lease.item_id)
    assert state(committed_db, table, lease.item_id) == ("available", None, 1, 1)
    assert rows.history(committed_db, lease.item_id) == [(f"{table}_released", "op")]
    assert rows.one(committed_db, "SELECT action || ' ' || object_kind || ' ' || reason FROM audit") == f"release {table} stuck"
    assert set(renew(committed_db, [lease]).lost) == {lease.item_id}

    assert release_by_operator(committed_db, table, lease.item_id, actor=OP, reason="stuck", request_id="1") == done
    later = release_by_operator(committed_db, table, lease.item_id, actor=OP, reason="stuck", request_id="2")
    assert later == Rejected(Refusal.NOT_LEASED, "expected leased, found available", item_id=lease.item_id)


@ALL
def test_F13_the_last_attempt_taken_away_is_an_incident(committed_db: Connection, table: str) -> None:
    lease = leased(committed_db, table, max_attempts=1)
    release_by_operator(committed_db, table, lease.item_id, actor=OP, reason="stuck", request_id=None)
    assert state(committed_db, table, lease.item_id) == ("failed", None, 1, 1)
    assert rows.one(committed_db, f"SELECT message FROM incident WHERE {table}_id = %s", lease.item_id).startswith("op released")


def test_only_operators_take_leases_away(committed_db: Connection) -> None:
    lease = leased(committed_db, "job")
    assert release_by_operator(committed_db, "job", lease.item_id, actor=ADA, reason="", request_id=None).refusal is Refusal.NOT_ALLOWED
    assert release_by_operator(committed_db, "job", new_id(), actor=OP, reason="", request_id="1").refusal is Refusal.NOT_FOUND
    stranger = type(OP)("op", role="operator", tenant_id="other")
    assert release_by_operator(committed_db, "job", lease.item_id, actor=stranger, reason="", request_id="1").refusal is Refusal.NOT_FOUND
    assert state(committed_db, "job", lease.item_id)[0] == "leased"
