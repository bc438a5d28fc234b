"""procrastinate and DBOS drain as many jobs that do nothing, on the same server, with as many worker processes.

Both are extras of the bench (`requirements/bench.txt`) and nothing else imports them; where they are missing, that is said. Their
own names for things, their own way to enqueue, and their databases' own times of each end: from the first to the last. Their
sessions wait for the disk as the server says, like ours. `python -m cli.bench.queue_peers NAME URL COUNT` is one worker.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import psycopg

from cli.bench.server import worker_environment

PEERS = ("procrastinate", "dbos")
CONCURRENCY = 20  # jobs that one of their workers runs at a time: more than ours, as theirs are cheap to hold
POLL_SECONDS = 0.02
LONGEST = 300.0
INSTALL = "make bench ARGS=queue installs it; or: .venv/bin/python -m pip install --require-hashes -r requirements/bench.txt"


@dataclass(frozen=True, slots=True)
class Peer:
    """Jobs a second of another product. `missing`: why there is none."""

    name: str
    version: str
    workers: int
    jobs: int
    per_second: float | None
    missing: str = ""


def measure(url: str, name: str, *, jobs: int, workers: int) -> Peer:
    """Let it drain `jobs` in this database, which is its own."""
    if importlib.util.find_spec(name) is None:
        return Peer(name, "", workers, jobs, None, f"{name} is not installed ({INSTALL})")
    running = [_worker(url, name, jobs if first else 0) for first in [True] + [False] * (workers - 1)]
    try:
        for process in running:
            _expect(process, "ready")
        for process in running:
            assert process.stdin is not None, "it was opened"
            process.stdin.write("go\n")
            process.stdin.flush()
        ended, seconds = _drained(url, _ENDED[name], jobs)
    finally:
        for process in running:
            process.kill()
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
    return Peer(name, version(name), workers, ended, round((ended - 1) / seconds, 1))


_ENDED = {
    "procrastinate": "SELECT count(*), extract(epoch FROM max(at) - min(at))::float8 FROM procrastinate_events WHERE type = 'succeeded'",
    "dbos": "SELECT count(*), (max(completed_at) - min(completed_at)) / 1000.0::float8 FROM dbos.workflow_status WHERE status = 'SUCCESS'",
}


def _worker(url: str, name: str, jobs: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "cli.bench.queue_peers", name, url, str(jobs)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env=worker_environment(url, handlers=""),
    )  # fmt: skip


def _expect(process: subprocess.Popen[str], word: str) -> None:
    assert process.stdout is not None, "it was opened"
    for line in process.stdout:
        if line.strip() == word:
            return
    raise RuntimeError(f"expected a worker of another product to say {word}, found that it ended with {process.wait(10)}")


def _drained(url: str, query: str, jobs: int) -> tuple[int, float]:
    end = time.monotonic() + LONGEST
    with psycopg.connect(url, autocommit=True) as conn:
        while True:
            row = conn.execute(query).fetchone()
            if row is not None and row[0] >= jobs:
                return row[0], row[1]
            if time.monotonic() > end:
                raise RuntimeError(f"expected {jobs} jobs to end within {LONGEST:g} s, found {row}")
            time.sleep(0.25)


# ---- one worker of theirs


def _ready() -> None:
    print("ready", flush=True)
    sys.stdin.readline()


def procrastinate(url: str, jobs: int) -> None:
    """Who enqueues (`jobs` > 0) makes the tables, too."""
    import procrastinate as theirs

    app: Any = theirs.App(connector=theirs.PsycopgConnector(conninfo=url, min_size=4, max_size=CONCURRENCY))

    @app.task(name="nothing")  # type: ignore[untyped-decorator, unused-ignore]  # it is not installed where types are checked
    async def nothing() -> None:
        pass

    if jobs:
        with theirs.App(connector=theirs.SyncPsycopgConnector(conninfo=url)).open() as made:
            made.schema_manager.apply_schema()
            made.configure_task("nothing", allow_unknown=True).batch_defer(*[{} for _ in range(jobs)])
    _ready()
    app.run_worker(concurrency=CONCURRENCY, install_signal_handlers=False, fetch_job_polling_interval=POLL_SECONDS)


def dbos(url: str, jobs: int) -> None:
    """As above."""
    from dbos import DBOS, DBOSClient

    @DBOS.workflow(name="nothing")  # type: ignore[untyped-decorator, unused-ignore]  # as above
    def nothing() -> None:
        pass

    config: Any = {
        "name": "bench", "system_database_url": url, "application_version": "1", "executor_id": f"worker-{jobs}",
        "run_admin_server": False, "sys_db_pool_size": CONCURRENCY, "log_level": "ERROR",
    }  # fmt: skip
    if jobs:
        DBOS(config=config)
        DBOS.launch()
        DBOS.register_queue("bench", worker_concurrency=CONCURRENCY, polling_interval_sec=POLL_SECONDS)
        DBOS.destroy()
        client = DBOSClient(system_database_url=url)
        for _ in range(jobs):
            client.enqueue({"workflow_name": "nothing", "queue_name": "bench", "app_version": "1"})
        client.destroy()
    DBOS(config=config)
    _ready()
    DBOS.launch()
    time.sleep(LONGEST)


if __name__ == "__main__":
    {"procrastinate": procrastinate, "dbos": dbos}[sys.argv[1]](sys.argv[2], int(sys.argv[3]))
