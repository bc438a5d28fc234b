"""Workers that die or stall anywhere between an acquisition and its commit, an effect and its report."""

from __future__ import annotations

import os
import signal
from typing import Any

import psycopg
import pytest

from engine.db.session import connect
from engine.failpoints import NAMES
from tests.faults.conftest import ROUNDS, Load, wait_until_stopped
from tests.worker.models import chain, deployed, service, started
from tests.worker.processes import eventually, row, worker

pytestmark = [pytest.mark.faults, pytest.mark.slow]
Connection = psycopg.Connection[Any]


def test_R6_kill_9_at_every_fail_point_loses_nothing_and_does_nothing_twice(load: Load):
    for turn in range(ROUNDS):
        for name in NAMES:
            # Whatever died before left leases behind: the one that shall die while recovering must come to them first.
            quick = {"recovery_seconds": "0.1"} if name == "recover.before_commit" else {}
            process = load.worker(f"{turn}-{name}", failpoints=f"{name}#2=kill", **quick)
            assert process.died(seconds=60) == -signal.SIGKILL
        load.goes_on()
    load.settle()


@pytest.mark.parametrize("name", ["effect.after", "command.before_commit", "acquire.before_commit", "renew.before"])
def test_R4_a_worker_stopped_past_its_lease_and_continued_changes_nothing_of_what_moved_on(load: Load, name: str):
    stopped = load.worker("stopped", failpoints=f"{name}#3=stop:once")
    wait_until_stopped(stopped)
    with connect(load.url()) as conn:
        eventually(lambda: _leases_of(conn, stopped.pid) == 0, "all its leases to be taken back", seconds=60)
    load.goes_on()
    stopped.signal(signal.SIGCONT)
    stopped.says("job_completed", times=len(stopped.lines("job_completed")) + 3)  # it works again
    load.settle(some_recovered=name != "acquire.before_commit")
    assert stopped.terminate() == 0


def _leases_of(conn: Connection, pid: int) -> int:
    leased = "SELECT count(*) FROM {} l JOIN worker w ON w.id::text = l.lease_owner WHERE w.pid = %s AND l.status = 'leased'"
    return sum(row(conn, leased.format(table), pid)[0] for table in ("job", "delivery"))


def test_R6_a_worker_killed_while_its_statement_waits_in_the_server_has_caused_one_transition(database_url, committed_db, tmp_path):
    """Inside the COMMIT of a one-statement command: the server goes on with it, and nobody is there to hear of it."""
    deployed(committed_db, "one", chain("one", service("first", "test.echo"), service("second", "no.such.handler")))
    instance = started(committed_db, "one")
    (job,) = row(committed_db, "SELECT id FROM job")
    with connect(database_url) as holder, worker(database_url, tmp_path, "dies") as process:
        holder.execute("BEGIN")
        holder.execute("SELECT FROM process_instance WHERE id = %s FOR NO KEY UPDATE", (instance,))
        holding = holder.info.backend_pid
        waiting = eventually(
            lambda: committed_db.execute("SELECT pid FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid))", (holding,)).fetchone(),
            "the completion to wait for the root",
        )
        process.kill()
        holder.execute("COMMIT")
        eventually(
            lambda: committed_db.execute("SELECT FROM pg_stat_activity WHERE pid = %s", waiting).fetchone() is None,
            "the server to be done with the dead worker's statement",
        )
    with worker(database_url, tmp_path, "lives", recovery_seconds="0.2") as process:
        eventually(lambda: row(committed_db, "SELECT element_id FROM token") == ("second",), "the case to stand at the second task")
        eventually(lambda: row(committed_db, "SELECT count(*) FROM job WHERE status = 'leased'") == (0,), "no lease to be left")
    assert row(committed_db, "SELECT count(*) FROM history WHERE kind = 'job_completed' AND item_id = %s", job) == (1,)
    assert row(committed_db, "SELECT count(*) FROM job WHERE topic = 'no.such.handler'") == (1,)


def test_R2_a_replica_held_before_its_acquisition_commits_holds_up_nobody(database_url, committed_db, tmp_path):
    """SKIP LOCKED raced: one side holds uncommitted leases, the other takes the rest at once."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    deployed(committed_db, "many", chain("many", service("work", "test.echo")))
    for _ in range(6):
        started(committed_db, "many")
    with worker(database_url, tmp_path, "held", failpoints=f"acquire.before_commit=hold:{gate}:once", lease_seconds="30"):
        with open(gate, "wb"), worker(database_url, tmp_path, "free") as free:  # the first has leased two rows and not committed
            free.says("job_completed", times=4)
            assert row(committed_db, "SELECT count(*) FROM process_instance WHERE status = 'running'") == (2,)
        eventually(lambda: row(committed_db, "SELECT count(*) FROM job") == (0,), "the held ones to be done after the commit")
    assert row(committed_db, "SELECT count(*), max((data->>'lease_number')::int) FROM history WHERE kind = 'job_completed'") == (6, 1)
