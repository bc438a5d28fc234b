"""Who gives up a turn, or waits for one, meets who writes more of it: the root's lock decides, and nothing stays behind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.commands.complete_task import complete_task
from engine.commands.external_tasks import acquire_external_tasks, fail_external_task
from engine.commands.jobs import fail_job
from engine.commands.leases import release_by_operator
from engine.commands.outcome import ItemFailed, ItemReleased, ItemRetried, TaskCompleted
from engine.commands.retry import retry_item
from engine.db.acquire import recover_expired
from engine.db.session import connect
from engine.expressions import parse
from tests import rows
from tests.cast import ADA, OP, engage
from tests.commands import cases
from tests.conftest import Clock
from tests.core.models import model, par, service, user
from tests.races.contest import Connection, Contender, held_at

BEHIND = "SELECT count(*) FILTER (WHERE held = '{}' AND status <> 'failed'), count(*) FILTER (WHERE held = '{exclusive}') FROM "


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    engage(committed_db)
    return committed_db


def one_and_one_to_come(conn: Connection, work: str = "handler") -> Any:
    """An exclusive item in its last attempt, and a task of Ada's behind which lies another; returns the task."""
    alone = service("work", work=work, exclusive=True, max_attempts=1)
    chains = "start -> split -> w0 -> join", "split -> t -> then -> join -> end"
    cases.deployed(conn, model(*chains, split=par(), join=par(), w0=alone, then=alone, t=user(assignee=parse("${'ada'}"))))
    cases.started(conn)
    return cases.the_task(conn, "t")


def writes_more(task: Any) -> Callable[[Connection], Any]:
    return lambda c: complete_task(c, task, actor=ADA, variables={}, request_id=None)


def test_F20_who_fails_for_good_waits_for_a_step_that_writes_more_and_frees_what_it_wrote(
    conn: Connection, database_url: str, tmp_path: Path
) -> None:
    task = one_and_one_to_come(conn)
    [lease] = cases.acquired(conn)
    with held_at(database_url, "command.before_commit", writes_more(task), tmp_path) as held:
        failing = Contender(database_url, lambda c: fail_job(c, lease, error="broken")).seen_waiting(conn)
    assert isinstance(held.outcome(), TaskCompleted)
    assert isinstance(failing.outcome(), ItemFailed)
    assert conn.execute(BEHIND + "job").fetchone() == (1, 0)


def test_F20_the_same_of_an_external_task(conn: Connection, database_url: str, tmp_path: Path) -> None:
    task = one_and_one_to_come(conn, "external")
    [work] = acquire_external_tasks(conn, actor=OP, worker_id="c", topics=["work"])
    fail = lambda c: fail_external_task(c, work.id, actor=OP, lease_number=work.lease_number, error="broken")  # noqa: E731
    with held_at(database_url, "command.before_commit", writes_more(task), tmp_path):
        failing = Contender(database_url, fail).seen_waiting(conn)
    assert isinstance(failing.outcome(), ItemFailed)
    assert conn.execute(BEHIND + "external_task").fetchone() == (1, 0)


def test_F20_an_operator_who_takes_the_last_attempt_away_waits_for_the_root_too(
    conn: Connection, database_url: str, tmp_path: Path
) -> None:
    task = one_and_one_to_come(conn)
    [lease] = cases.acquired(conn)
    take = lambda c: release_by_operator(c, "job", lease.item_id, actor=OP, reason="stuck", request_id=None)  # noqa: E731
    with held_at(database_url, "command.before_commit", writes_more(task), tmp_path):
        taking = Contender(database_url, take).seen_waiting(conn)
    assert taking.outcome() == ItemReleased(lease.item_id)
    assert conn.execute(BEHIND + "job").fetchone() == (1, 0)


def test_F20_a_retry_waits_for_a_step_that_writes_more_and_one_of_them_is_free(conn: Connection, database_url: str, tmp_path: Path) -> None:
    task = one_and_one_to_come(conn)
    [lease] = cases.acquired(conn)
    fail_job(conn, lease, error="broken")
    with held_at(database_url, "command.before_commit", writes_more(task), tmp_path):
        retrying = Contender(database_url, lambda c: retry_item(c, "job", lease.item_id, actor=OP)).seen_waiting(conn)
    assert retrying.outcome() == ItemRetried(lease.item_id, 1)
    assert conn.execute(BEHIND + "job").fetchone() == (1, 1)


def test_F21_recovery_does_not_wait_for_a_root_and_takes_the_last_attempt_at_its_next_look(
    conn: Connection, database_url: str, tmp_path: Path, clock: Clock
) -> None:
    task = one_and_one_to_come(conn)
    cases.acquired(conn)
    clock.advance(seconds=31)
    with held_at(database_url, "command.before_commit", writes_more(task), tmp_path):
        assert recover_expired(conn, limit=10) == []
    [back] = recover_expired(conn, limit=10)
    assert back.status == "failed"
    assert conn.execute(BEHIND + "job").fetchone() == (1, 0)


def test_F21_two_replicas_recover_one_last_attempt_once(conn: Connection, database_url: str, tmp_path: Path, clock: Clock) -> None:
    """The second finds the row locked under the root that it has."""
    one_and_one_to_come(conn)
    cases.acquired(conn)
    clock.advance(seconds=31)
    with connect(database_url) as other:
        other.execute("BEGIN")
        other.execute("SELECT 1 FROM job WHERE element_id = 'w0' FOR UPDATE")
        assert recover_expired(conn, limit=10) == []
        other.execute("COMMIT")
    assert [back.status for back in recover_expired(conn, limit=10)] == ["failed"]
    assert rows.one(conn, "SELECT count(*) FROM incident") == 1
