"""A worker that is told to stop does so without a database, too, and a second signal hurries whatever it waits for."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from sqlalchemy.engine import make_url

from tests.cli.processes import free_port
from tests.worker.processes import WorkerProcess, worker
from tests.worker.test_worker import job


@contextmanager
def no_database(url: str, server_url: str) -> Iterator[None]:
    """Everybody is thrown out of the database, and nobody let in."""
    name = make_url(url).database
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS false".encode())
        try:
            admin.execute("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s", (name,))
            yield
        finally:
            admin.execute(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS true".encode())


def test_F39_a_worker_told_to_stop_while_it_waits_for_its_first_database_stops(database_url: str, tmp_path: Path):
    nowhere = make_url(database_url).set(port=free_port()).render_as_string(hide_password=False)
    with WorkerProcess(nowhere, tmp_path / "worker.log") as process:
        process.says("database_unreachable")
        assert process.terminate(seconds=20) == 0
        assert process.lines("worker_stopped") and not process.lines("worker_ready")


def test_F39_a_second_signal_hurries_a_batch_that_waits_for_the_database(database_url: str, committed_db, server_url: str, tmp_path: Path):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    job(committed_db, "test.echo")
    with worker(database_url, tmp_path, failpoints=f"acquire.after_commit=hold:{gate}:once", drain_seconds="300") as process:
        held = gate.open("wb")  # the batch is leased, and not read yet
        with no_database(database_url, server_url):
            held.close()
            process.says("database_unreachable")
            process.signal(signal.SIGTERM)
            process.says("worker_draining")
            process.signal(signal.SIGTERM)
            assert process.died(seconds=40) == 0
            assert process.lines("worker_stopped")
