"""Acquisition, recovery and the inbox touch as many buffers behind a crowd as on a small table.

Each test measures the same statement twice in one database: with only the live rows, then with ROWS more in front.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine

from cli.bench import plans
from engine.commands.outcome import Actor
from engine.db.acquire import WORK
from engine.db.explain import Plan
from engine.db.marks import move_watermarks
from engine.db.session import connect, make_engine
from engine.db.watermarks import move_inbox_watermarks, move_lease_watermarks
from engine.queries.inbox import InboxFilter
from tests.plans import crowd
from tests.plans.crowd import BRANCH, LIVE, NOW, Connection

INDEX = {"job": "ix_job_due", "external_task": "ix_external_task_due", "delivery": "ix_delivery_route"}
LEASE_INDEX = {"job": "ix_job_lease", "external_task": "ix_external_task_lease", "delivery": "ix_delivery_lease"}
CASES = ("consumed", "held", "later", "backing off", "paused")
ADA = Actor("ada", groups=frozenset({"clerks0"}), display_name="Ada Moreno")
# Rolled-back measurements leave dead versions of a few rows behind; a small table's figure must not be dust.
FLOOR = 60


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    crowd.without_vacuum(committed_db)
    crowd.a_case(committed_db)
    return committed_db


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    engine = make_engine(database_url, pool_size=1)
    yield engine
    engine.dispose()


def assert_flat(small: Plan, large: Plan, index: str) -> None:
    print(f"{large.name}: {small.buffers} buffers alone, {large.buffers} behind {crowd.ROWS:,} rows")  # pytest -rP shows it
    assert index in large.indexes, f"{large.name}: expected {index}, found {large.indexes}"
    assert not set(large.seq_scans) & {*WORK, "user_task", "inbox_entry"}, f"{large.name}: reads {large.seq_scans} from end to end"
    allowed = 1.5 * max(small.buffers, FLOOR)
    assert large.buffers <= allowed, f"{large.name}: {small.buffers} buffers alone, {large.buffers} behind {crowd.ROWS} rows"


def acquired(conn: Connection, table: str) -> Plan:
    move_watermarks(conn, WORK[table], [BRANCH[table]], sweep=True)
    plan = plans.acquisition(conn, table, [BRANCH[table]])
    assert plan.rows == 10, f"expected ten rows, found {plan.rows}"
    return plan


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("table", WORK)
def test_acquisition_costs_the_same_behind_a_crowd(conn: Connection, table: str, case: str) -> None:
    crowd.fill(conn, lambda: crowd.work_rows(conn, table, LIVE, at=NOW))
    small = acquired(conn, table)
    crowd.empty(conn, table)
    crowd.fill(conn, lambda: crowd.in_front(conn, table, case), lambda: crowd.work_rows(conn, table, LIVE, at=NOW))
    assert_flat(small, acquired(conn, table), INDEX[table])


def test_F30_acquisition_stays_flat_while_an_old_snapshot_keeps_all_that_was_consumed(conn: Connection, database_url: str) -> None:
    crowd.fill(conn, lambda: crowd.work_rows(conn, "job", LIVE, at=NOW))
    small = acquired(conn, "job")
    crowd.empty(conn, "job")
    with connect(database_url) as old:
        old.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        old.execute("SELECT 1")
        crowd.fill(conn, lambda: crowd.in_front(conn, "job", "consumed"), lambda: crowd.work_rows(conn, "job", LIVE, at=NOW))
        conn.execute("VACUUM job")
        [(kept,)] = conn.execute("SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 'job'").fetchall()
        assert kept >= crowd.ROWS, "the snapshot keeps them"
        assert_flat(small, acquired(conn, "job"), INDEX["job"])


def expired(conn: Connection, table: str) -> None:
    crowd.work_rows(
        conn, table, LIVE, at=NOW,
        more="status, lease_owner, lease_number, leased_at, lease_expires_at, attempts",
        values="'leased', 'dead', 1, baton_clock() - interval '3 minutes', baton_clock() - interval '1 minute' + g * interval '1 ms', 1",
    )  # fmt: skip


def recovered(conn: Connection, table: str) -> Plan:
    move_lease_watermarks(conn)
    return plans.recovery(conn, table)


@pytest.mark.parametrize("table", WORK)
def test_recovery_costs_the_same_behind_a_crowd(conn: Connection, table: str) -> None:
    crowd.fill(conn, lambda: expired(conn, table))
    small = recovered(conn, table)
    crowd.empty(conn, table)
    crowd.fill(
        conn,
        lambda: crowd.leased_rows_in_front(conn, table),
        lambda: crowd.work_rows(conn, table, crowd.ROWS // 2, at=crowd.OLD, more="held", values="'{paused}'"),
        lambda: crowd.work_rows(conn, table, crowd.ROWS // 2, at=crowd.LATER),
        lambda: expired(conn, table),
    )
    large = recovered(conn, table)
    assert small.rows == large.rows == 10
    assert_flat(small, large, LEASE_INDEX[table])


def listed(conn: Connection, engine: Engine, wanted: InboxFilter) -> list[Plan]:
    move_inbox_watermarks(conn)
    return plans.inbox(engine, ADA, wanted)


@pytest.mark.parametrize("sort", ["priority", "age"])
def test_the_inbox_costs_the_same_behind_finished_tasks(conn: Connection, engine: Engine, sort: str) -> None:
    wanted = InboxFilter(view="groups", sort=sort)
    crowd.fill(conn, lambda: crowd.task_rows(conn, LIVE, at=NOW, groups=25))
    small = listed(conn, engine, wanted)
    crowd.empty(conn, "user_task", "inbox_entry")
    crowd.fill(
        conn,
        lambda: crowd.task_rows(conn, crowd.ROWS, at=crowd.OLD),
        lambda: crowd.finish_tasks(conn),
        lambda: crowd.task_rows(conn, LIVE, at=NOW, groups=25),
    )
    for before, after in zip(small, listed(conn, engine, wanted), strict=True):
        assert_flat(before, after, "ix_inbox_entry_candidate")
