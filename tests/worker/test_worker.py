"""A worker as a process: what it takes, what it leaves, how it fails, stops and dies."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest

from tests import rows
from tests.worker.processes import WorkerProcess, eventually, row, worker

Connection = psycopg.Connection[Any]


def job(conn: Connection, topic: str, *, inputs: dict[str, Any] | None = None, **values: Any) -> UUID:
    payload = {"inputs": {name: {"type": "string", "value": str(value)} for name, value in (inputs or {}).items()}}
    return rows.job(conn, topic=topic, payload=psycopg.types.json.Jsonb(payload), **values)


def status(conn: Connection, job_id: UUID) -> tuple[Any, ...]:
    return rows.columns(conn, "job", job_id, "status", "attempts", "lease_number")


def _locked(conn: Connection, job_id: UUID) -> bool:
    return conn.execute("SELECT FROM job WHERE id = %s FOR UPDATE SKIP LOCKED", (job_id,)).fetchone() is None


def test_a_worker_registers_says_that_it_lives_and_signs_off(database_url, committed_db, tmp_path):
    with worker(database_url, tmp_path) as process:
        found = row(committed_db, "SELECT host, pid, slots, busy, draining, stopped_at, kinds, heartbeat_at FROM worker")
        assert found[0] == os.uname().nodename
        assert found[1:6] == (process.pid, 6, 0, False, None)
        assert ["service", "test.echo"] in found[6]
        assert ["timer", ""] in found[6]
        eventually(
            lambda: row(committed_db, "SELECT heartbeat_at > %s AND last_acquired_at IS NOT NULL FROM worker", found[7])[0],
            "a later heartbeat that tells of an acquisition",
        )
        assert process.terminate() == 0
    assert row(committed_db, "SELECT stopped_at IS NOT NULL, draining FROM worker") == (True, False)


def test_F6_every_start_of_a_process_is_another_owner(database_url, committed_db, tmp_path):
    for number in range(2):
        with worker(database_url, tmp_path, f"worker-{number}") as process:
            process.terminate()
    assert row(committed_db, "SELECT count(*), count(DISTINCT id) FROM worker") == (2, 2)


def test_F41_unknown_handlers_and_kinds_stay_untouched(database_url, committed_db, tmp_path):
    unknown = job(committed_db, "handler.of.another.build")
    delivery = rows.delivery(committed_db, kind="mail")  # this worker has no mail server
    known = job(committed_db, "test.fails", max_attempts=1)
    with worker(database_url, tmp_path):
        eventually(lambda: status(committed_db, known)[0] == "failed", "the known job to fail")
        assert status(committed_db, unknown) == ("available", 0, 0)
        assert rows.columns(committed_db, "delivery", delivery, "status", "attempts") == ("available", 0)


def test_a_failure_is_kept_and_retried_as_it_asked(database_url, committed_db, tmp_path):
    failing, later = job(committed_db, "test.fails"), job(committed_db, "test.later")
    last = job(committed_db, "test.fails", max_attempts=1)
    with worker(database_url, tmp_path) as process:
        process.says("job_failed", times=3)
    (detail,) = row(committed_db, "SELECT detail FROM incident WHERE job_id = %s", last)
    assert 'raise LookupError("nothing on the shelf")' in detail
    assert rows.columns(committed_db, "job", failing, "status", "attempts", "last_error") == (
        "available",
        1,
        "LookupError: nothing on the shelf",
    )
    wait = row(committed_db, "SELECT extract(epoch FROM available_at - baton_now()) FROM job WHERE id = %s", later)[0]
    assert 30 < wait <= 42 * 1.1


def test_a_handler_that_gives_up_is_an_incident_at_once(database_url, committed_db, tmp_path):
    given_up = job(committed_db, "test.gives_up")
    with worker(database_url, tmp_path) as process:
        process.says("job_failed")
    assert status(committed_db, given_up)[:2] == ("failed", 1)
    assert row(committed_db, "SELECT message FROM incident WHERE job_id = %s", given_up) == ("the customer is gone",)


def test_a_process_killed_by_its_handler_is_a_failure_and_the_worker_goes_on(database_url, committed_db, tmp_path):
    killed = job(committed_db, "test.dies", max_attempts=1)
    with worker(database_url, tmp_path) as process:
        process.says("job_failed")
        assert process.process.poll() is None
    assert row(committed_db, "SELECT last_error FROM job WHERE id = %s", killed)[0].endswith("while it ran test.dies: SIGKILL")


def test_at_the_hard_deadline_the_attempt_has_failed(database_url, committed_db, tmp_path):
    stuck = job(committed_db, "test.never_stops", inputs={"started": tmp_path / "started"}, max_attempts=1)
    with worker(database_url, tmp_path, job_deadline_seconds="1") as process:
        process.says("job_failed")
    assert row(committed_db, "SELECT status, last_error FROM job WHERE id = %s", stuck) == (
        "failed",
        "the handler ran longer than its deadline of 1 s and was killed",
    )


def test_F49_a_job_with_too_little_lease_left_is_handed_back_unspent(database_url, committed_db, tmp_path):
    """A stop of the whole process between the acquisition and the start, longer than the lease allows for."""
    waiting = job(committed_db, "test.waits", inputs={"folder": tmp_path})
    with worker(
        database_url,
        tmp_path,
        failpoints="acquire.after_commit=stop:once",
        minimum_lease_seconds="2.9",
        lease_seconds="3",
        recovery_seconds="60",
    ) as process:
        _until_stopped(process)
        eventually(
            lambda: row(committed_db, "SELECT lease_expires_at < baton_now() + interval '1.5 s' FROM job WHERE id = %s", waiting)[0],
            "half of the lease to pass",
        )
        # Its renewal passes a locked row by: else it may come before the look at what is left, and the job rightly starts.
        with psycopg.connect(database_url) as holder:
            holder.execute("SELECT FROM job WHERE id = %s FOR UPDATE", (waiting,))
            process.signal(signal.SIGCONT)
            blocked = "SELECT count(*) FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid))"
            eventually(lambda: row(committed_db, blocked, holder.info.backend_pid)[0], "the job to be handed back")
            holder.rollback()
        process.says("job_released")
        assert status(committed_db, waiting)[1] <= 1
        eventually(lambda: list(tmp_path.glob("running-*")), "the job to be started by its next lease")
        assert [path.name for path in tmp_path.glob("running-*")] == [f"running-{waiting}-1"]
        assert status(committed_db, waiting)[1:] == (1, 2)


def _until_stopped(process: WorkerProcess) -> None:
    _, how = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(how), f"expected the worker to stop itself, found {how}\n{process.text()}"


@pytest.mark.slow
def test_S57_a_job_that_kills_its_worker_three_times_is_an_incident_and_runs_no_fourth_time(database_url, committed_db, tmp_path):
    log = tmp_path / "runs"
    poison = job(committed_db, "test.kills_its_worker", inputs={"log": log})
    for attempt in (1, 2, 3):
        with WorkerProcess(database_url, tmp_path / f"worker-{attempt}.log") as process:
            assert process.died() == -signal.SIGKILL
        assert len(log.read_text().splitlines()) == attempt
    other = job(committed_db, "test.fails", max_attempts=1)
    with worker(database_url, tmp_path, "worker-4") as process:
        eventually(lambda: status(committed_db, poison)[0] == "failed", "the third lost lease to be the last")
        eventually(lambda: status(committed_db, other)[0] == "failed", "other jobs to go on")
        assert process.process.poll() is None
    assert status(committed_db, poison) == ("failed", 3, 3)
    assert log.read_text().splitlines() == [f"{poison} {attempt}" for attempt in (1, 2, 3)]
    assert row(committed_db, "SELECT count(*) FROM incident WHERE job_id = %s", poison) == (1,)


def test_S57_a_recovery_that_is_killed_half_way_leaves_the_row_to_the_next_and_spends_no_attempt(database_url, committed_db, tmp_path):
    log = tmp_path / "runs"
    poison = job(committed_db, "test.kills_its_worker", inputs={"log": log})
    for attempt in (1, 2, 3):
        with WorkerProcess(database_url, tmp_path / f"runs-{attempt}.log") as process:
            assert process.died() == -signal.SIGKILL
        committed_db.execute("UPDATE job SET lease_expires_at = baton_clock() - interval '1 second' WHERE id = %s", (poison,))
        left = row(committed_db, "SELECT to_jsonb(j) FROM job j WHERE id = %s", poison)
        gate = tmp_path / f"gate-{attempt}"
        os.mkfifo(gate)
        with WorkerProcess(database_url, tmp_path / f"recovers-{attempt}.log", failpoints=f"recover.before_commit=hold:{gate}") as process:
            eventually(lambda: _locked(committed_db, poison), "the recovery to have the row")
            process.kill()
            eventually(lambda: not _locked(committed_db, poison), "the server to give the row free")
        assert row(committed_db, "SELECT to_jsonb(j) FROM job j WHERE id = %s", poison) == left  # nothing of the recovery is left
        assert row(committed_db, "SELECT count(*) FROM incident") == (0,)
    with worker(database_url, tmp_path, "goes-on"):
        eventually(lambda: status(committed_db, poison)[0] == "failed", "the third lost lease to be the last")
    assert status(committed_db, poison) == ("failed", 3, 3)
    assert log.read_text().splitlines() == [f"{poison} {attempt}" for attempt in (1, 2, 3)]
    assert row(committed_db, "SELECT count(*) FROM incident WHERE job_id = %s", poison) == (1,)


def test_F39_on_SIGTERM_what_runs_past_the_grace_period_is_stopped_and_left_for_another(database_url, committed_db, tmp_path):
    waiting = job(committed_db, "test.waits", inputs={"folder": tmp_path})
    with worker(database_url, tmp_path, drain_seconds="0.2") as process:
        eventually(lambda: list(tmp_path.glob("running-*")), "the handler to run")
        later = job(committed_db, "test.echo")
        process.signal(signal.SIGTERM)
        assert process.died() == 0
    assert status(committed_db, waiting)[:2] == ("available", 1)
    assert status(committed_db, later)[1] <= 1
    with worker(database_url, tmp_path, "next") as process:
        eventually(lambda: (tmp_path / f"running-{waiting}-2").exists(), "the next worker to run it at once", seconds=10)


def test_a_worker_outlives_a_database_that_throws_everybody_out(database_url, committed_db, tmp_path):
    with worker(database_url, tmp_path) as process:
        committed_db.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'baton-%' AND datname = current_database()"
        )
        failing = job(committed_db, "test.fails", max_attempts=1)
        eventually(lambda: status(committed_db, failing)[0] == "failed", "the job to be run all the same")
        assert process.process.poll() is None


def test_F47_a_worker_opens_no_more_connections_than_its_slots_those_of_handlers_twice_and_five(database_url, committed_db, tmp_path):
    for number in range(30):
        job(committed_db, ("test.fails", "test.inline", "test.echo")[number % 3], max_attempts=1)
        rows.delivery(committed_db, kind="http")
    with worker(database_url, tmp_path, upkeep_seconds="1") as process:
        process.says("delivery_failed", times=30)
        eventually(lambda: row(committed_db, "SELECT count(*) FROM job WHERE status = 'available'") == (0,), "every job to have been run")
        (opened,) = row(
            committed_db,
            "SELECT count(*) FROM pg_stat_activity WHERE starts_with(application_name, 'baton-') AND datname = current_database()",
        )
    assert 2 + 2 + 2 <= opened <= 2 * 2 + 2 + 2 + 5


def test_one_log_line_says_how_a_job_ended(database_url, committed_db, tmp_path):
    failing = job(committed_db, "test.fails", max_attempts=1)
    with worker(database_url, tmp_path) as process:
        (line,) = process.says("job_failed")
    for part in (f"item={failing}", "of=service", "topic=test.fails", "attempt=1/1", "lease_number=1", "status=failed", "incident="):
        assert part in line


@pytest.fixture(autouse=True)
def _no_stray_children(tmp_path: Path):
    """Handlers of a killed worker must be gone with it."""
    yield
    for started in tmp_path.glob("running-*"):
        pid = int(started.read_text() or 0)
        eventually(lambda pid=pid: not Path(f"/proc/{pid}").exists() or _is_zombie(pid), f"process {pid} to be gone", seconds=10)


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True
