"""Whole cases through real workers: start to end by handlers, timers and errors; leases that hold and leases that do not."""

from __future__ import annotations

import os
from typing import Any
from uuid import UUID

import psycopg
import pytest

from engine.commands.leases import release_by_operator
from tests.cast import OP
from tests.worker.models import chain, deployed, service, started, timer
from tests.worker.processes import eventually, row, worker

Connection = psycopg.Connection[Any]


def ended(conn: Connection, instance_id: UUID, *, seconds: float = 30.0) -> dict[str, Any]:
    """Wait until the instance has completed; its variables as plain values."""
    eventually(
        lambda: row(conn, "SELECT status = 'completed' FROM process_instance WHERE id = %s", instance_id)[0],
        "the instance to complete",
        seconds=seconds,
    )
    final = row(conn, "SELECT final_variables FROM process_instance WHERE id = %s", instance_id)[0]
    return {name: each["value"] for name, each in final.items()}


def job_of(conn: Connection, instance_id: UUID) -> UUID:
    return row(conn, "SELECT id FROM job WHERE instance_id = %s", instance_id)[0]


def test_a_case_runs_from_start_to_end_through_processes_threads_and_timers(database_url, committed_db, tmp_path):
    deployed(committed_db, "sum", chain("sum", service("first", "test.echo"), timer("pause", "PT0.3S"), service("second", "test.add")))
    instance = started(committed_db, "sum", a=2, b=3)
    with worker(database_url, tmp_path) as process:
        final = ended(committed_db, instance)
        process.says("job_completed", times=3)
    assert final["total"] == 5
    assert final["echo"] == {"a": 2, "b": 3}
    assert final["pid"] != process.pid
    assert row(committed_db, "SELECT count(*) FROM job") == (0,)


def test_a_bpmn_error_takes_the_path_that_the_model_draws(database_url, committed_db, tmp_path):
    caught = (
        '<boundaryEvent id="too_high" attachedToRef="check"><errorEventDefinition id="e" errorRef="err"/></boundaryEvent>'
        '<endEvent id="refused"/><sequenceFlow id="to_refused" sourceRef="too_high" targetRef="refused"/>'
    )
    xml = chain("credit", service("check", "test.bpmn_error"), extra=caught)
    deployed(committed_db, "credit", xml.replace(b"<process", b'<error id="err" errorCode="TOO_HIGH"/><process'))
    instance = started(committed_db, "credit")
    with worker(database_url, tmp_path):
        ended(committed_db, instance)
    kinds = [kind for (kind,) in committed_db.execute("SELECT kind FROM history WHERE instance_id = %s", (instance,)).fetchall()]
    assert kinds.count("error_caught") == 1
    assert "incident_opened" not in kinds


def test_a_bpmn_error_that_nothing_catches_is_an_incident_at_once(database_url, committed_db, tmp_path):
    deployed(committed_db, "credit", chain("credit", service("check", "test.bpmn_error")))
    job = job_of(committed_db, started(committed_db, "credit"))
    with worker(database_url, tmp_path) as process:
        process.says("job_failed")
    assert row(committed_db, "SELECT status, attempts FROM job WHERE id = %s", job) == ("failed", 1)
    assert row(committed_db, "SELECT kind FROM incident WHERE job_id = %s", job) == ("uncaught_error",)


@pytest.mark.slow
def test_F9_S28_a_handler_stuck_in_a_regular_expression_for_ten_seconds_keeps_its_lease_of_three(database_url, committed_db, tmp_path):
    """The expression holds the interpreter lock of its process all the time; renewal comes from the worker's."""
    log = tmp_path / "runs"
    deployed(committed_db, "slow", chain("slow", service("match", "test.backtracks", {"seconds": 10, "log": log})))
    instance = started(committed_db, "slow")
    job = job_of(committed_db, instance)
    with worker(database_url, tmp_path, "one"), worker(database_url, tmp_path, "two"):
        final = ended(committed_db, instance, seconds=120)
    assert final["held_the_lock_for"] > 6  # twice the lease
    assert log.read_text().splitlines() == [f"{job} 1"]
    (number,) = row(committed_db, "SELECT data->'lease_number' FROM history WHERE item_id = %s AND kind = 'job_completed'", job)
    assert number == 1
    assert row(committed_db, "SELECT count(*) FROM history WHERE kind = 'job_recovered'") == (0,)


def test_S28_a_worker_whose_renewals_are_blocked_loses_the_job_and_its_late_completion_changes_nothing(
    database_url, committed_db, tmp_path
):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    tasks = service("work", "test.stubborn", {"folder": tmp_path}), service("after", "no.such.handler")
    deployed(committed_db, "late", chain("late", *tasks))
    instance = started(committed_db, "late")
    job = job_of(committed_db, instance)
    one_slot = {"handler_processes": "1"}  # taken by the first run, so that the job must go to the other worker
    with (
        worker(database_url, tmp_path, "one", failpoints=f"renew.before=hold:{gate}", **one_slot) as one,
        open(gate, "wb"),  # the first renewal has arrived at its fail-point, and waits there to the end
        worker(database_url, tmp_path, "two") as two,
    ):
        eventually(lambda: (tmp_path / f"running-{job}-2").exists(), "the second worker to have the job")
        before = _state(committed_db, instance)
        (tmp_path / "go-1").touch()
        one.says("job_refused")
        assert _state(committed_db, instance) == before
        assert row(committed_db, "SELECT status, lease_number, attempts FROM job WHERE id = %s", job) == ("leased", 2, 2)
        assert row(committed_db, "SELECT reason, count(*) FROM refusal WHERE item_id = %s GROUP BY 1", job) == ("lease_lost", 1)
        (tmp_path / "go-2").touch()
        two.says("job_completed")
    assert row(committed_db, "SELECT value FROM variable WHERE name = 'by_attempt'") == (2,)
    assert row(committed_db, "SELECT count(*) FROM history WHERE item_id = %s AND kind = 'job_completed'", job) == (1,)


def _state(conn: Connection, instance_id: UUID) -> list[Any]:
    return [
        conn.execute("SELECT revision, status FROM process_instance WHERE id = %s", (instance_id,)).fetchall(),
        conn.execute("SELECT id, element_id, status FROM token WHERE instance_id = %s", (instance_id,)).fetchall(),
        conn.execute("SELECT name, value FROM variable ORDER BY name").fetchall(),
        conn.execute("SELECT id, attempts, lease_number FROM job").fetchall(),
        conn.execute("SELECT count(*) FROM history").fetchall(),
    ]


def test_F39_on_SIGTERM_what_ends_within_the_grace_period_is_completed(database_url, committed_db, tmp_path):
    deployed(committed_db, "calm", chain("calm", service("work", "test.waits", {"folder": tmp_path})))
    instance = started(committed_db, "calm")
    job = job_of(committed_db, instance)
    with worker(database_url, tmp_path) as process:
        eventually(lambda: (tmp_path / f"running-{job}-1").exists(), "the handler to run")
        process.signal(15)
        process.says("worker_draining")
        (tmp_path / "go").touch()
        assert process.died() == 0
        assert len(process.lines("job_completed")) == 1
    assert ended(committed_db, instance)["waited"] is True


def test_an_inline_handler_past_its_deadline_is_renewed_no_more_and_the_next_attempt_counts(database_url, committed_db, tmp_path):
    """The documented limit: nothing kills a thread. Its job goes to another run, and what it returns late is refused."""
    deployed(committed_db, "inline", chain("inline", service("work", "test.inline_waits", {"folder": tmp_path})))
    instance = started(committed_db, "inline")
    with worker(database_url, tmp_path, worker_slots="4") as process:
        eventually(lambda: (tmp_path / "inline-2").exists(), "the lease to run out and the job to be run again")
        (tmp_path / "go-1").touch()
        process.says("job_dropped")
        (tmp_path / "go-2").touch()
        assert ended(committed_db, instance)["by_attempt"] == 2


def test_F11_a_handler_whose_lease_an_operator_takes_away_is_told_to_stop_and_its_outcome_is_dropped(database_url, committed_db, tmp_path):
    deployed(committed_db, "taken", chain("taken", service("work", "test.waits", {"folder": tmp_path})))
    instance = started(committed_db, "taken")
    job = job_of(committed_db, instance)
    with worker(database_url, tmp_path) as process:
        eventually(lambda: (tmp_path / f"running-{job}-1").exists(), "the handler to run")
        release_by_operator(committed_db, "job", job, actor=OP, reason="it hangs", request_id=None)
        eventually(lambda: (tmp_path / f"running-{job}-2").exists(), "the next attempt to run")
        assert len(process.says("job_dropped")) == 1
        (tmp_path / "go").touch()
        ended(committed_db, instance)
    (number,) = row(committed_db, "SELECT data->'lease_number' FROM history WHERE item_id = %s AND kind = 'job_completed'", job)
    assert number == 2
