"""The checker itself: it is silent about a run without faults, and finds each thing that must never be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import psycopg
import pytest

from engine.db.session import connect
from engine.ids import new_id
from tests import rows
from tests.faults.checker import problems
from tests.faults.conftest import Load

pytestmark = [pytest.mark.faults, pytest.mark.slow]
Connection = psycopg.Connection[Any]
COLUMNS = "root_id, instance_id, kind, element_id, actor, item_id, data"


def test_each_thing_that_must_never_be_is_found(load: Load):
    load.goes_on(2)
    load.settle(some_recovered=False)
    with connect(load.url()) as conn:
        case, instance = next(iter(load.driver.started.items()))
        for what, break_it in BREAKAGES.items():
            conn.execute("BEGIN")
            break_it(conn, instance)
            found = problems(conn, load.driver, load.receiver)
            assert found, f"{what}: expected the checker to find it"
            assert any(what in sentence for sentence in found), f"{what}: found only {found}"
            conn.execute("ROLLBACK")
        assert problems(conn, load.driver, load.receiver) == []
        with load.receiver.log.open("a") as log:
            log.write(f"{new_id()} /notify/{case}\n")
        assert any("expected one idempotency key" in sentence for sentence in problems(conn, load.driver, load.receiver))


def _again(kind: str) -> Callable[[Connection, UUID], None]:
    def break_it(conn: Connection, instance: UUID) -> None:
        conn.execute(
            f"INSERT INTO history ({COLUMNS}) SELECT {COLUMNS} FROM history WHERE instance_id = %s AND kind = %s LIMIT 1",
            (instance, kind),
        )

    return break_it


def _lost_instance(conn: Connection, instance: UUID) -> None:
    conn.execute("DELETE FROM process_instance WHERE id = %s", (instance,))


def _still_running(conn: Connection, instance: UUID) -> None:
    conn.execute("UPDATE process_instance SET status = 'running', ended_at = NULL WHERE id = %s", (instance,))


def _unknown_instance(conn: Connection, instance: UUID) -> None:
    rows.instance(conn, business_key="case-nobody")


def _lease(conn: Connection, instance: UUID) -> None:
    rows.job(conn, status="leased", lease_owner="x", lease_expires_at="infinity", leased_at="-infinity")


def _effect_without_completion(conn: Connection, instance: UUID) -> None:
    conn.execute("DELETE FROM history WHERE instance_id = %s AND kind = 'delivery_completed'", (instance,))


def _task_not_completed(conn: Connection, instance: UUID) -> None:
    conn.execute("DELETE FROM user_task WHERE instance_id = %s", (instance,))


def _entered_twice(conn: Connection, instance: UUID) -> None:
    conn.execute(
        f"INSERT INTO history ({COLUMNS}) SELECT {COLUMNS} FROM history"
        " WHERE instance_id = %s AND kind = 'element_entered' AND element_id = 'approve'",
        (instance,),
    )


BREAKAGES: dict[str, Callable[[Connection, UUID], None]] = {
    "there is no instance": _lost_instance,
    "expected instance": _still_running,
    "nobody was told of": _unknown_instance,
    "element_entered approve 2 times": _entered_twice,
    "timer_fired": _again("timer_fired"),
    "job_completed 2 times": _again("job_completed"),
    "delivery_completed 2 times": _again("delivery_completed"),
    "ended 2 times": _again("job_completed"),
    "rows of job are left leased": _lease,
    "no item completed under it": _effect_without_completion,
    "its completion was answered": _task_not_completed,
}
