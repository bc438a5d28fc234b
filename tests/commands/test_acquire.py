"""Acquisition, renewal and recovery over the three tables of durable work: one life cycle, one set of statements."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from engine.db.acquire import (
    WORK,
    Acquired,
    acquire_deliveries,
    acquire_external,
    acquire_jobs,
    recover_expired,
    renew_leases,
)
from engine.db.marks import move_watermarks
from engine.db.session import connect
from tests import rows
from tests.conftest import Clock

Connection = psycopg.Connection[Any]
SCORE = {("service", "score")}


def take(conn: Connection, table: str, *, limit: int = 10, owner: str = "w1", seconds: float = 30) -> list[Acquired]:
    match table:
        case "job":
            return acquire_jobs(conn, owner=owner, capabilities=SCORE, limit=limit, lease_seconds=seconds, workers=2)
        case "external_task":
            return acquire_external(conn, tenant_id="", owner=owner, topics={"score": seconds}, limit=limit)
    return acquire_deliveries(conn, owner=owner, kinds={"http"}, limit=limit, lease_seconds=seconds, workers=2)


ALL = pytest.mark.parametrize("table", list(WORK))
Make = Callable[..., UUID]


@ALL
def test_R4_R5_acquiring_raises_the_lease_number_and_counts_the_attempt(committed_db: Connection, table: str) -> None:
    item = rows.MAKERS[table](committed_db)
    [lease] = take(committed_db, table)
    assert (lease.kind, lease.item_id, lease.number, lease.owner, lease.attempt) == (table, item, 1, "w1", 1)
    assert 29 < lease.seconds_left <= 30
    status, owner, number, attempts, leased, expires = rows.columns(
        committed_db, table, item, "status", "lease_owner", "lease_number", "attempts", "leased_at", "lease_expires_at"
    )
    assert (status, owner, number, attempts, expires) == ("leased", "w1", 1, 1, lease.expires_at)
    assert timedelta(seconds=29.9) < expires - leased < timedelta(seconds=30.1)
    assert take(committed_db, table) == []


@ALL
def test_R1_what_is_not_due_held_failed_or_spent_is_not_acquired(committed_db: Connection, table: str, clock: Clock) -> None:
    make = rows.MAKERS[table]
    make(committed_db, overdue=-60)
    make(committed_db, held=["suspended"])
    make(committed_db, status="failed", attempts=3, max_attempts=3)
    spent = make(committed_db, attempts=3, max_attempts=3)
    assert take(committed_db, table) == []
    clock.advance(seconds=61)
    [lease] = take(committed_db, table)
    assert lease.item_id != spent


@ALL
def test_R2_the_limit_holds_and_a_second_call_gets_other_rows(committed_db: Connection, table: str) -> None:
    made = [rows.MAKERS[table](committed_db, overdue=100 - n) for n in range(7)]
    first = [lease.item_id for lease in take(committed_db, table, limit=3)]
    second = [lease.item_id for lease in take(committed_db, table, limit=3)]
    assert sorted(first) == sorted(made[:3])
    assert sorted(second) == sorted(made[3:6])
    assert take(committed_db, table, limit=0) == []


def test_F41_a_kind_or_topic_that_this_build_does_not_know_stays_untouched(committed_db: Connection) -> None:
    unknown = rows.job(committed_db, topic="brand new")
    timer = rows.job(committed_db, kind="timer", topic="")
    assert take(committed_db, "job") == []
    [lease] = acquire_jobs(committed_db, owner="w", capabilities={("timer", "")}, limit=9, lease_seconds=5, workers=1)
    assert (lease.item_id, lease.job_kind) == (timer, "timer")
    assert rows.columns(committed_db, "job", unknown, "status", "lease_number") == ("available", 0)


def test_F48_a_paused_topic_is_not_probed(committed_db: Connection) -> None:
    rows.job(committed_db)
    committed_db.execute("INSERT INTO pause (kind, topic, paused_by) VALUES ('service', 'score', 'op')")
    assert take(committed_db, "job") == []
    committed_db.execute("DELETE FROM pause")
    assert len(take(committed_db, "job")) == 1


def test_a_higher_level_goes_first_until_a_lower_one_has_waited_a_minute_for_each_level(committed_db: Connection) -> None:
    low_new = rows.job(committed_db, priority=1, level=1, overdue=10)
    high_new = rows.job(committed_db, priority=5, level=5, overdue=9)
    low_old = rows.job(committed_db, priority=1, level=1, overdue=60 * 4 + 20)
    taken = [take(committed_db, "job", limit=1)[0].item_id for _ in range(3)]
    assert taken == [low_old, high_new, low_new]


def test_equal_levels_are_first_in_first_out(committed_db: Connection) -> None:
    made = [rows.job(committed_db, overdue=n) for n in (5, 50, 20)]
    taken = [take(committed_db, "job", limit=1)[0].item_id for _ in range(3)]
    assert taken == [made[1], made[2], made[0]]


def test_a_job_may_ask_for_a_longer_lease_and_a_topic_for_its_own(committed_db: Connection) -> None:
    rows.job(committed_db, lease_seconds=600)
    [job] = take(committed_db, "job", seconds=5)
    assert job.seconds_left > 599
    rows.external_task(committed_db, topic="slow")
    rows.external_task(committed_db, topic="fast")
    leases = acquire_external(committed_db, tenant_id="", owner="client", topics={"slow": 90, "fast": 10}, limit=5)
    assert {lease.topic: round(lease.seconds_left) for lease in leases} == {"slow": 90, "fast": 10}
    assert acquire_external(committed_db, tenant_id="other", owner="client", topics={"slow": 90}, limit=5) == []


@ALL
def test_R4_renewal_moves_the_expiry_of_the_right_number_only(committed_db: Connection, table: str, clock: Clock) -> None:
    for _ in range(2):
        rows.MAKERS[table](committed_db)
    one, two = take(committed_db, table)
    clock.advance(seconds=20)
    renewed, lost = renew_leases(committed_db, WORK[table], [(one.item_id, 1, None, one.expires_at), (two.item_id, 2, None, None)])
    assert set(renewed) == {one.item_id}
    assert lost == {two.item_id}
    assert renewed[one.item_id] - one.expires_at >= timedelta(seconds=19.9)
    assert rows.columns(committed_db, table, two.item_id, "lease_expires_at") == (two.expires_at,)


@ALL
def test_R4_a_row_that_renewal_skips_because_it_is_locked_is_not_lost(database_url: str, committed_db: Connection, table: str) -> None:
    rows.MAKERS[table](committed_db)
    [lease] = take(committed_db, table)
    with connect(database_url) as other:
        other.execute("BEGIN")
        other.execute(f"SELECT 1 FROM {table} FOR UPDATE")
        assert renew_leases(committed_db, WORK[table], [(lease.item_id, 1, 30, None)]) == ({}, set())
        other.execute("ROLLBACK")
    assert set(renew_leases(committed_db, WORK[table], [(lease.item_id, 1, 30, None)]).expires_at) == {lease.item_id}


@ALL
def test_R6_an_expired_lease_is_taken_back_and_goes_to_the_front(committed_db: Connection, table: str, clock: Clock) -> None:
    item = rows.MAKERS[table](committed_db)
    take(committed_db, table)
    assert recover_expired(committed_db, limit=10) == []
    clock.advance(seconds=31)
    [back] = recover_expired(committed_db, limit=10)
    assert (back.kind, back.item_id, back.number, back.status) == (table, item, 1, "available")
    found = rows.columns(committed_db, table, item, "status", "lease_owner", "lease_number", "attempts", "level")
    assert found == ("available", None, 1, 1, 10)
    assert rows.history(committed_db, item) == [(f"{table}_recovered", "engine")]
    data = rows.one(committed_db, "SELECT data FROM history WHERE item_id = %s", item)
    assert (data["lease_number"], data["attempt"], data["owner"], data["status"]) == (1, 1, "w1", "available")
    assert recover_expired(committed_db, limit=10) == []

    rows.MAKERS[table](committed_db, overdue=9000)
    [again] = take(committed_db, table, limit=1)
    assert (again.item_id, again.number, again.attempt) == (item, 2, 2)
    assert rows.columns(committed_db, table, item, "level") == (5,)


@ALL
def test_S57_three_lost_leases_are_an_incident_and_never_a_fourth_attempt(committed_db: Connection, table: str, clock: Clock) -> None:
    item = rows.MAKERS[table](committed_db, max_attempts=3)
    rows.MAKERS[table](committed_db)
    for attempt in (1, 2, 3):
        leases = {lease.item_id: lease for lease in take(committed_db, table, owner=f"w{attempt}")}
        assert leases[item].attempt == attempt
        clock.advance(seconds=31)
        recover_expired(committed_db, limit=10)
    assert rows.columns(committed_db, table, item, "status", "attempts") == ("failed", 3)
    assert item not in [lease.item_id for lease in take(committed_db, table)]
    kind, message = committed_db.execute(f"SELECT kind, message FROM incident WHERE {table}_id = %s", (item,)).fetchall()[0]
    assert kind == "lease_lost"
    assert "attempt 3 of 3" in message
    assert [k for k, _ in rows.history(committed_db, item)] == [*[f"{table}_recovered"] * 3, "incident_opened"]


def test_F14_after_a_mass_loss_the_items_come_back_spread_over_time(committed_db: Connection, clock: Clock) -> None:
    for _ in range(60):
        rows.job(committed_db)
    take(committed_db, "job", limit=60)
    clock.advance(seconds=31)
    before = rows.one(committed_db, "SELECT baton_clock()")
    assert len(recover_expired(committed_db, limit=100)) == 60
    after = rows.one(committed_db, "SELECT baton_clock()")
    first, last = committed_db.execute("SELECT min(available_at), max(available_at) FROM job").fetchall()[0]
    assert before <= first and last <= after + timedelta(seconds=2.5)
    assert last - first > timedelta(seconds=1)


@ALL
def test_F50_a_row_that_cannot_be_recovered_stops_no_other(
    committed_db: Connection, table: str, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    items = [rows.MAKERS[table](committed_db, overdue=100 - n) for n in range(6)]
    take(committed_db, table)
    for bad in items[:3]:
        committed_db.execute(f"ALTER TABLE {table} ADD CHECK (id <> '{bad}' OR status = 'leased')")
    clock.advance(seconds=31)
    with caplog.at_level(logging.ERROR):
        recovered = {item.item_id for item in recover_expired(committed_db, limit=2)}
    assert len(recovered) == 2
    recovered |= {item.item_id for item in recover_expired(committed_db, limit=2)}
    assert recovered == set(items[3:])
    assert str(items[0]) in caplog.text


@ALL
def test_an_item_below_the_watermark_waits_for_the_sweep(committed_db: Connection, table: str) -> None:
    branch = {"job": ("service", "score"), "external_task": ("", "score"), "delivery": ("http", "")}[table]
    make = rows.MAKERS[table]
    young = make(committed_db, overdue=1)
    move_watermarks(committed_db, WORK[table], [branch], sweep=False)
    old = make(committed_db, overdue=3600)
    assert [lease.item_id for lease in take(committed_db, table)] == [young]
    move_watermarks(committed_db, WORK[table], [branch], sweep=False)
    assert take(committed_db, table) == []
    move_watermarks(committed_db, WORK[table], [branch], sweep=True)
    assert [lease.item_id for lease in take(committed_db, table)] == [old]


def test_the_watermark_stays_five_minutes_behind_now_and_behind_the_oldest_free_item(committed_db: Connection, clock: Clock) -> None:
    def mark() -> timedelta:
        move_watermarks(committed_db, WORK["job"], [("service", "score")], sweep=False)
        behind: timedelta = rows.one(committed_db, "SELECT baton_now() - at FROM watermark WHERE name = 'job service score'")
        return behind

    def minutes(found: timedelta) -> float:
        return round(found.total_seconds() / 60, 1)

    rows.job(committed_db, overdue=600)
    assert minutes(mark()) == 15
    take(committed_db, "job")
    assert minutes(mark()) == 5
    clock.advance(seconds=120)
    assert minutes(mark()) == 5
    rows.job(committed_db, overdue=-3600)
    assert minutes(mark()) == 5


NESTED_LOOPS = ["hashjoin", "mergejoin", "hashagg", "sort", "material", "memoize", "bitmapscan", "seqscan"]


@ALL
def test_F17_the_limit_holds_under_a_plan_of_nested_loops_only(committed_db: Connection, table: str) -> None:
    for n in range(40):
        rows.MAKERS[table](committed_db, overdue=100 - n)
    for kind in NESTED_LOOPS:
        committed_db.execute(f"SET enable_{kind} = off")
    for mode in ("force_custom_plan", "force_generic_plan"):
        committed_db.execute(f"SET plan_cache_mode = {mode}")
        assert len(take(committed_db, table, limit=5)) == 5
    assert rows.one(committed_db, f"SELECT count(*) FROM {table} WHERE status = 'leased'") == 10
