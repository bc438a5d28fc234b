"""Leases in a worker's hands: bounded commands, a connection for renewals alone, gaps measured, looks out of step."""

from __future__ import annotations

import signal
from itertools import pairwise
from typing import Any
from uuid import UUID

import psycopg
import pytest

from engine.commands.outcome import Lease
from engine.config import ConfigurationError, Settings
from engine.db.session import connect
from engine.ids import new_id
from tests import rows
from tests.worker.models import chain, deployed, service, started
from tests.worker.processes import eventually, row, worker
from worker.acquirer import Acquirer, Lane
from worker.held import Held
from worker.main import Worker
from worker.pace import LONGEST_AFTER_A_CHANGE, Pace

Connection = psycopg.Connection[Any]


def waiting_case(conn: Connection, folder: Any) -> tuple[UUID, UUID]:
    """A case whose handler waits for the file `go`; with its job."""
    deployed(conn, "calm", chain("calm", service("work", "test.waits", {"folder": folder})))
    case = started(conn, "calm")
    return case, row(conn, "SELECT id FROM job WHERE instance_id = %s", case)[0]


# ---- F1: no command outlasts a lease


def test_F1_four_calls_of_a_command_take_less_than_a_lease_however_long_they_wait(database_url):
    """That a command makes four calls at most is counted by tests/commands/test_execute_counts.py."""
    for seconds in (5.0, 30.0, 600.0):
        conn = Worker(Settings(database_url=database_url, lease_seconds=seconds))._database.connection()
        setting = "SELECT extract(epoch FROM current_setting(%s)::interval)::float8"
        assert 0 < row(conn, setting, "statement_timeout")[0] * 4 < seconds
        assert 0 < row(conn, setting, "idle_in_transaction_session_timeout")[0] <= seconds / 2
        conn.close()


def test_F1_a_command_that_waits_for_a_locked_case_is_ended_by_the_server_and_asked_again_under_its_lease(
    database_url, committed_db, tmp_path
):
    case, job = waiting_case(committed_db, tmp_path)
    with worker(database_url, tmp_path, lease_seconds="6", job_deadline_seconds="60") as process:
        eventually(lambda: (tmp_path / f"running-{job}-1").exists(), "the handler to run")
        with connect(database_url) as other:
            other.execute("BEGIN")
            other.execute("SELECT 1 FROM process_instance WHERE id = %s FOR UPDATE", (case,))
            (tmp_path / "go").touch()
            (line,) = process.says("database_unreachable")
            assert "statement timeout" in line
            other.execute("COMMIT")
        process.says("job_completed")
    data = row(committed_db, "SELECT data FROM history WHERE kind = 'job_completed' AND item_id = %s", job)[0]
    assert (data["lease_number"], data["attempt"]) == (1, 1)


# ---- F10: a connection that only renews


def test_F10_a_worker_that_gets_no_connection_any_more_still_renews(database_url, committed_db, tmp_path):
    """Nobody is let into the database: what a slot needs for its report is not to be had, what renews was there before."""
    _, job = waiting_case(committed_db, tmp_path)
    name = row(committed_db, "SELECT current_database()")[0]
    with connect(database_url.rsplit("/", 1)[0] + "/postgres") as admin, worker(database_url, tmp_path) as process:
        renewing = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'baton-renewals%%'"
        eventually(lambda: row(committed_db, renewing)[0] == 1, "the renewals' connection, before there is anything to renew")
        eventually(lambda: (tmp_path / f"running-{job}-1").exists(), "the handler to run")
        admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        try:
            (tmp_path / "go").touch()
            (before,) = row(committed_db, "SELECT lease_expires_at FROM job WHERE id = %s", job)
            eventually(
                lambda: row(committed_db, "SELECT lease_expires_at > %s + interval '4 s' FROM job WHERE id = %s", before, job)[0],
                "renewals for longer than a lease",
            )
            assert row(committed_db, "SELECT status, lease_number FROM job WHERE id = %s", job) == ("leased", 1)
        finally:
            admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        process.says("job_completed")


# ---- F8: the gaps between renewals are measured


def held(seconds: float = 30.0) -> Held:
    return Held(Lease("job", new_id(), 1, "w"), seconds=seconds, acquired_at=100.0)


def test_F8_a_gap_counts_from_when_the_lease_was_asked_for_to_when_its_renewal_was_answered():
    lease = held()
    assert lease.renewed(asked_at=110.0, answered_at=112.0) == pytest.approx(12 / 30)
    assert lease.renewed(asked_at=120.0, answered_at=121.0) == pytest.approx(11 / 30)
    assert (lease.deadline, lease.renew_at) == (150.0, 130.0)


def test_F8_a_worker_tells_of_its_longest_gap_and_one_past_half_a_lease_is_logged(database_url, committed_db, tmp_path):
    """Twenty leases in hand are renewed in time; then the process stands still for more than half of a lease."""
    _, job = waiting_case(committed_db, tmp_path)
    gap = "SELECT longest_gap FROM worker"
    with worker(database_url, tmp_path) as process:
        eventually(lambda: (tmp_path / f"running-{job}-1").exists(), "the handler to run")
        steady = eventually(lambda: row(committed_db, gap)[0], "a gap between renewals in the worker's row")
        assert 1 / 3 <= steady < 1 / 2
        assert process.lines("renewal_late") == []
        process.signal(signal.SIGSTOP)
        eventually(
            lambda: row(committed_db, "SELECT lease_expires_at < baton_now() + interval '1 s' FROM job WHERE id = %s", job)[0],
            "two thirds of the lease to pass",
        )
        process.signal(signal.SIGCONT)
        process.says("renewal_late")
        eventually(lambda: row(committed_db, gap)[0] > 1 / 2, "the gap in the worker's row")
        (tmp_path / "go").touch()
        process.says("job_completed")


# ---- F16: out of step


def test_F16_every_look_of_an_idle_worker_comes_after_another_pause_and_two_workers_fall_out_of_step():
    looks: list[list[float]] = []
    for _ in range(2):
        acquirer = Acquirer(None, None, None, [Lane("engine", None, (("timer", ""),))], owner="w", lease_seconds=30, poll_seconds=1.0)  # type: ignore[arg-type]
        (pace,), now = acquirer._paces, 0.0
        pace.changed = False
        looks.append([])
        for _ in range(50):
            pace.looked(now, found=0, asked=4)
            now = pace.next_look()
            assert pace.wants_look(now) and not pace.wants_look(now - 0.01)
            looks[-1].append(now)
    pauses = [later - sooner for one in looks for sooner, later in pairwise(one)]
    assert all(0.75 <= pause <= 1.25 for pause in pauses)
    assert len({round(pause, 6) for pause in pauses}) > 90
    assert not set(looks[0]) & set(looks[1])


def test_F16_a_worker_that_finds_nothing_backs_off_however_much_others_commit():
    """Sixty seconds in which somebody commits all the time, and nothing of it is for this lane."""
    pace, now, looks = Pace(poll_seconds=1.0), 0.0, 0
    while now < 60:
        pace.looked(now, found=0, asked=4)
        pace.changed = True
        now, looks = pace.next_look(), looks + 1
    assert looks <= 60 / LONGEST_AFTER_A_CHANGE + 10
    pace.looked(now, found=1, asked=4)
    pace.changed = True
    assert pace.next_look() - now < LONGEST_AFTER_A_CHANGE / 4, "work that was found brings it back at once"


# ---- deadlines


def test_a_kind_may_have_a_hard_deadline_of_its_own_whatever_its_handler_says(database_url, committed_db, tmp_path):
    payload = psycopg.types.json.Jsonb({"inputs": {"started": {"type": "string", "value": str(tmp_path / "started")}}})
    stuck = rows.job(committed_db, topic="test.never_stops", payload=payload, max_attempts=1)
    with worker(database_url, tmp_path, kind_deadlines="test.never_stops=1", job_deadline_seconds="600") as process:
        process.says("job_failed")
    assert row(committed_db, "SELECT last_error FROM job WHERE id = %s", stuck)[0].startswith(
        "the handler ran longer than its deadline of 1 s"
    )


@pytest.mark.parametrize("text", ["report", "report=", "report=0", "report=soon", "=5", "a=1,a=2"])
def test_deadlines_that_cannot_be_read_are_refused_by_the_name_of_the_variable(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"BATON_KIND_DEADLINES: expected .*, found"):
        Settings.from_env({"BATON_KIND_DEADLINES": text})
