"""Cases that are suspended or being cancelled, as workers meet them: what goes back spends no attempt, a large cancel ends."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest

from engine.commands.cancel import cancel_instance
from engine.commands.outcome import InstanceCancelled, InstanceSuspended
from engine.commands.suspend import resume_instance, suspend_instance
from engine.commands.suspend_definition import resume_definition, suspend_definition
from tests import rows
from tests.cast import OP
from tests.commands.test_cancel_bounded import left_behind
from tests.worker.models import chain, deployed, service, started, timer
from tests.worker.processes import WorkerProcess, eventually, row, worker

Connection = psycopg.Connection[Any]


def suspend(conn: Connection, case: UUID) -> None:
    """As the first transaction of a large suspension leaves what it has not come to: the mark is there, the item is not held."""
    conn.execute("UPDATE process_instance SET mark = 'suspended', revision = revision + 1 WHERE id = %s", (case,))


def test_R5_a_handler_whose_case_was_suspended_meanwhile_has_spent_no_attempt(
    database_url: str, committed_db: Connection, tmp_path: Path
) -> None:
    deployed(committed_db, "slow", chain("slow", service("wait", "test.waits", {"folder": tmp_path})))
    case = started(committed_db, "slow")
    with worker(database_url, tmp_path) as process:
        eventually(lambda: list(tmp_path.glob("running-*-1")), "the handler to run")
        suspend(committed_db, case)
        (tmp_path / "go").touch()
        process.says("job_released")
        assert row(committed_db, "SELECT status, attempts, available_at > baton_clock() FROM job") == ("available", 0, True)
        assert row(committed_db, "SELECT data->>'because', data->>'unstarted' FROM history WHERE kind = 'job_released'") == (
            "instance_suspended",
            "false",
        )
        committed_db.execute("UPDATE process_instance SET mark = NULL")
        committed_db.execute("UPDATE job SET available_at = baton_clock()")
        eventually(lambda: row(committed_db, "SELECT status FROM process_instance") == ("completed",), "the case to complete")
    assert not process.lines("job_failed")


@pytest.mark.parametrize("task", [service("work", "test.echo"), timer("pause", "PT0S")], ids=["service", "timer"])
def test_R5_what_a_suspension_has_not_held_yet_is_handed_back_before_it_starts(
    database_url: str, committed_db: Connection, tmp_path: Path, task: str
) -> None:
    deployed(committed_db, "late", chain("late", task))
    suspend(committed_db, started(committed_db, "late"))
    with worker(database_url, tmp_path) as process:
        process.says("job_not_started")
        eventually(lambda: row(committed_db, "SELECT status, attempts FROM job") == ("available", 0), "the job to be free again")
        assert row(committed_db, "SELECT data->>'because', data->>'unstarted' FROM history WHERE kind = 'job_released'") == (
            "instance_suspended",
            "true",
        )
    assert not process.lines("job_completed")


def crowd(conn: Connection, size: int) -> UUID:
    """A case with many tokens that wait for nothing."""
    case = rows.instance(conn)
    conn.execute(
        "INSERT INTO token (id, instance_id, root_id, scope_id, element_id) SELECT gen_random_uuid(), %s, %s, s.id, 'x'"
        " FROM scope s, generate_series(1, %s) WHERE s.instance_id = %s",
        (case, case, size, case),
    )
    return case


def test_R6_a_large_cancel_goes_on_after_the_worker_at_it_was_killed_between_two_steps(
    database_url: str, committed_db: Connection, tmp_path: Path
) -> None:
    case = crowd(committed_db, 2_000)
    assert cancel_instance(committed_db, case, actor=OP, reason="", request_id=None) == InstanceCancelled(case, finishing=True)
    with WorkerProcess(database_url, tmp_path / "one.log", failpoints="command.before_commit#3=kill") as process:
        assert process.died() == -signal.SIGKILL
    assert row(committed_db, "SELECT status, mark FROM process_instance") == ("running", "cancelling")
    left = row(committed_db, "SELECT count(*) FROM token")[0]
    assert 0 < left < 2_000
    with worker(database_url, tmp_path, "two") as process:
        process.says("job_completed")
    assert row(committed_db, "SELECT status, mark, ended_by FROM process_instance") == ("cancelled", None, "op")
    assert left_behind(committed_db) == {}
    assert row(committed_db, "SELECT count(*) FROM history WHERE kind = 'instance_cancelled'") == (1,)


def test_S58_a_large_suspension_goes_on_after_the_worker_at_it_was_killed_between_two_steps(
    database_url: str, committed_db: Connection, tmp_path: Path
) -> None:
    case = rows.instance(committed_db)
    job = rows.job(committed_db, case, topic="nobody.runs.it")
    committed_db.execute(
        "INSERT INTO job (id, kind, topic, instance_id, root_id, definition_id, element_id, due_at, available_at)"
        " SELECT gen_random_uuid(), kind, topic, instance_id, root_id, definition_id, element_id, due_at, available_at"
        " FROM job, generate_series(1, 1999) WHERE id = %s", (job,),
    )  # fmt: skip
    held = "SELECT count(*) FROM job WHERE held = '{suspended}'"
    assert suspend_instance(committed_db, case, actor=OP) == InstanceSuspended(case, finishing=True)
    with WorkerProcess(database_url, tmp_path / "one.log", failpoints="command.before_commit#3=kill") as process:
        assert process.died() == -signal.SIGKILL
    assert row(committed_db, "SELECT mark FROM process_instance") == ("suspending",)
    assert 300 < row(committed_db, held)[0] < 2_000
    with worker(database_url, tmp_path, "two") as process:
        process.says("job_completed")
    assert row(committed_db, "SELECT mark FROM process_instance") == ("suspended",)
    assert row(committed_db, held) == (2_000,)

    resume_instance(committed_db, case, actor=OP)
    with WorkerProcess(database_url, tmp_path / "three.log", failpoints="command.before_commit#3=kill") as process:
        assert process.died() == -signal.SIGKILL
    assert 0 < row(committed_db, held)[0] < 1_700
    with worker(database_url, tmp_path, "four") as process:
        process.says("job_completed")
    assert row(committed_db, held) == (0,)


def test_S58_the_suspension_of_a_definition_goes_on_after_the_worker_at_it_was_killed_between_two_cases(
    database_url: str, committed_db: Connection, tmp_path: Path
) -> None:
    version = rows.definition(committed_db, "many")
    for _ in range(20):
        rows.job(committed_db, rows.instance(committed_db, version), topic="nobody.runs.it")
    suspend_definition(committed_db, version, actor=OP, with_cases=True)
    marked = "SELECT count(*) FROM process_instance WHERE mark = 'suspended'"
    with WorkerProcess(database_url, tmp_path / "one.log", failpoints="command.before_commit#5=kill") as process:
        assert process.died() == -signal.SIGKILL
    assert 0 < row(committed_db, marked)[0] < 20
    with worker(database_url, tmp_path, "two") as process:
        process.says("job_completed")
    assert row(committed_db, marked) == (20,)
    assert row(committed_db, "SELECT count(*) FROM history WHERE kind = 'instance_suspended'") == (20,), "nobody twice"

    resume_definition(committed_db, version, actor=OP)
    with WorkerProcess(database_url, tmp_path / "three.log", failpoints="command.before_commit#5=kill") as process:
        assert process.died() == -signal.SIGKILL
    with worker(database_url, tmp_path, "four") as process:
        process.says("job_completed")
    assert row(committed_db, marked) == (0,)
    assert row(committed_db, "SELECT count(*) FROM job WHERE held = '{}'") == (20,)
    assert row(committed_db, "SELECT count(*) FROM suspension") == (0,)
