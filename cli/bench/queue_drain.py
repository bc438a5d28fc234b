"""Real `baton worker` processes drain a queue of jobs whose handler does nothing.

The queue is filled, its handler is paused, the workers start, then the pause ends: nobody has a head start. Jobs a
second are counted by the database: history has the time at which each job ended; from the first to the last.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from cli.bench.queue_models import chain
from cli.bench.queue_spent import Spent, memory_kb, spent
from cli.bench.server import worker_environment
from cli.processes import children_of
from engine.commands.deploy import deploy
from engine.commands.outcome import SYSTEM, Deployed, InstanceStarted
from engine.commands.start import start_instance
from engine.config import Settings
from engine.core.values import typed
from engine.db.session import connect

THREADS = Settings().handler_processes
FILLERS = 4
START_SECONDS, DRAIN_SECONDS = 60.0, 600.0
VARIABLES = {"amount": typed(1200), "customer": typed("c"), "approved": typed(True)}


@dataclass(frozen=True, slots=True)
class Drained:
    """One drain. CPU in microseconds a job (`server_cpu_us` None: the server is elsewhere); memory in kB of one worker, PSS.

    `commits`: transactions that wrote; `statements` None without pg_stat_statements. Whatever else the server did meanwhile is in it.
    """

    workers: int
    jobs: int
    per_second: float
    parent_cpu_us: float
    children_cpu_us: float
    server_cpu_us: float | None
    commits: float
    statements: float | None
    wal_bytes: float
    parent_kb: int
    children_kb: int


def drain(url: str, *, jobs: int, length: int, workers: int, topic: str = "bench.nothing") -> Drained:
    """Fill the queue with `jobs`, in cases of `length` service tasks one after another, and let `workers` drain it."""
    with connect(url, application_name="baton-bench") as conn:
        warm = fill(url, conn, "bench.waits", jobs=workers * THREADS, length=1)
        cases = fill(url, conn, topic, jobs=jobs, length=length)
        for each in ("bench.waits", topic):
            _pause(conn, each)  # what is written while a pause stands is held
        conn.execute("VACUUM ANALYZE")
        with baton_workers(url, workers) as processes:
            _go_on(conn, "bench.waits")  # now that each worker can have its share
            wait(lambda: running(conn) == cases, f"{warm} cases to end that start every handler process", DRAIN_SECONDS)
            before, first = spent(conn, processes), _last_event(conn)
            _go_on(conn, topic)
            wait(lambda: running(conn) == 0, f"{cases} cases to end", DRAIN_SECONDS)
            after = spent(conn, processes)
            parents = sum(memory_kb(pid) for pid in processes)
            children = sum(memory_kb(child) for pid in processes for child in children_of(pid))
        done, seconds = _jobs_since(conn, first)
    if done != cases * length:
        raise RuntimeError(f"expected {cases * length} jobs to have ended, found {done}")
    return _drained(workers, done, seconds, before, after, parents // workers, children // workers)


def fill(url: str, conn: psycopg.Connection[Any], topic: str, *, jobs: int, length: int) -> int:
    """Start as many cases as that takes, by the public command; returns how many."""
    key = f"bench_{re.sub('[^a-z]', '_', topic)}_{length}"
    deployed(conn, key, chain(key, topic, length))
    cases = max(1, jobs // length)
    with ThreadPoolExecutor(FILLERS) as pool:
        list(pool.map(lambda share: _start(url, key, share), [len(range(n, cases, FILLERS)) for n in range(FILLERS)]))
    return cases


def deployed(conn: psycopg.Connection[Any], key: str, model: bytes) -> str:
    """The key of a process that was deployed."""
    made = deploy(conn, [(f"{key}.bpmn", model)], actor=SYSTEM)
    if not isinstance(made, Deployed):
        raise RuntimeError(f"the bench model was refused: {made}")
    return key


def _start(url: str, key: str, cases: int) -> None:
    with connect(url, application_name="baton-bench") as conn:
        for number in range(cases):
            started = start_instance(conn, key, actor=SYSTEM, business_key=f"order-{number}", variables=VARIABLES)
            if not isinstance(started, InstanceStarted):
                raise RuntimeError(f"the start of {key} was refused: {started}")


@contextmanager
def baton_workers(url: str, count: int, **settings: str) -> Iterator[list[int]]:
    """So many `baton worker` processes, ready, with the handlers of the bench; their process ids."""
    with tempfile.TemporaryDirectory(prefix="baton-bench-") as folder:
        logs = [Path(folder) / f"worker-{n}.log" for n in range(count)]
        running = [_worker(url, log, settings) for log in logs]
        try:
            for process, log in zip(running, logs, strict=True):
                wait(lambda: _ready(process, log), "a worker to be ready", START_SECONDS)  # noqa: B023 - called at once
            yield [process.pid for process in running]
        finally:
            for process in running:
                process.terminate()
            for process in running:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(30)
                process.kill()


def _worker(url: str, log: Path, settings: dict[str, str]) -> subprocess.Popen[bytes]:
    with log.open("wb") as out:
        return subprocess.Popen(
            [sys.executable, "-m", "cli.main", "worker"],
            env=worker_environment(url, handlers="cli.bench.queue_handlers", **settings),
            stdin=subprocess.DEVNULL, stdout=out, stderr=out,
        )  # fmt: skip


def _ready(process: subprocess.Popen[bytes], log: Path) -> bool:
    text = log.read_text(errors="replace")
    if process.poll() is not None:
        raise RuntimeError(f"expected a worker to run, found that it ended with {process.returncode}:\n{text}")
    return "worker_ready" in text


def wait(look: Callable[[], object], what: str, seconds: float) -> None:
    """Until `look` finds something true."""
    end = time.monotonic() + seconds
    while not look():
        if time.monotonic() > end:
            raise RuntimeError(f"expected {what} within {seconds:g} s")
        time.sleep(0.1)


def _pause(conn: psycopg.Connection[Any], topic: str) -> None:
    conn.execute("INSERT INTO pause (kind, topic, paused_by) VALUES ('service', %s, 'bench') ON CONFLICT DO NOTHING", (topic,))


def _go_on(conn: psycopg.Connection[Any], topic: str) -> None:
    conn.execute("DELETE FROM pause WHERE kind = 'service' AND topic = %s", (topic,))


def running(conn: psycopg.Connection[Any]) -> int:
    """How many cases have not ended."""
    row = conn.execute("SELECT count(*) FROM process_instance WHERE status = 'running'").fetchone()
    assert row is not None, "an aggregate gives one row"
    return int(row[0])


def _last_event(conn: psycopg.Connection[Any]) -> int:
    row = conn.execute("SELECT coalesce(max(id), 0) FROM history").fetchone()
    assert row is not None, "an aggregate gives one row"
    return int(row[0])


def _jobs_since(conn: psycopg.Connection[Any], event: int) -> tuple[int, float]:
    row = conn.execute(
        "SELECT count(*), extract(epoch FROM max(at) - min(at))::float8 FROM history WHERE kind = 'job_completed' AND id > %s", (event,)
    ).fetchone()
    assert row is not None, "an aggregate gives one row"
    return row[0], row[1]


def _drained(workers: int, jobs: int, seconds: float, before: Spent, after: Spent, parent_kb: int, children_kb: int) -> Drained:
    def each(amount: float, digits: int = 1) -> float:
        return round(amount / jobs, digits)

    return Drained(
        workers=workers,
        jobs=jobs,
        per_second=round((jobs - 1) / seconds, 1) if seconds else 0.0,
        parent_cpu_us=each((after.parents - before.parents) * 1e6),
        children_cpu_us=each((after.children - before.children) * 1e6),
        server_cpu_us=None if before.server is None or after.server is None else each((after.server - before.server) * 1e6),
        commits=each(after.commits - before.commits, 3),
        statements=None if before.statements is None or after.statements is None else each(after.statements - before.statements, 3),
        wal_bytes=each(after.wal - before.wal, 0),
        parent_kb=parent_kb,
        children_kb=children_kb,
    )
