"""From due to started: how long a job waits for one real worker that has nothing to do, and for one at half its rate.

Due is the time that the case was started by the database's clock, in the statement that wrote the job, so the commit of the start is in
it; started is this machine's clock in the handler. Both are one clock when the server runs here, otherwise nothing is said. A
timer is due without any commit: from its due time to the event that tells that it fired, the command that fired it included.
"""

from __future__ import annotations

import random
import statistics
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from cli.bench.queue_drain import START_SECONDS, THREADS, VARIABLES, baton_workers, deployed, fill, running, wait
from cli.bench.queue_models import chain, timed
from cli.bench.queue_spent import is_here, spent
from engine.commands.outcome import SYSTEM
from engine.commands.start import start_instance
from engine.db.session import connect

TOPIC, TIMER_SECONDS = "bench.started", 2.0
STARTERS = 4


@dataclass(frozen=True, slots=True)
class Waited:
    """Milliseconds. `per_second`: jobs that came; None in an idle queue, where one came after the other with pauses."""

    what: str
    jobs: int
    per_second: float | None
    p50: float
    p95: float
    longest: float


@dataclass(frozen=True, slots=True)
class Latency:
    """`idle_cpu_percent`: of one core, of a worker (its handlers too) and of the server, while nothing at all happened."""

    waited: list[Waited]
    idle_worker_cpu_percent: float
    idle_server_cpu_percent: float


def latency(url: str, *, idle_jobs: int, busy_seconds: float, per_second: float) -> Latency | None:
    """`per_second`: half of what the worker drains; None if the server's clock is another machine's."""
    with connect(url, application_name="baton-bench") as conn:
        if not is_here(conn):
            return None
        one, timer = (
            deployed(conn, "bench_started", chain("bench_started", TOPIC, 1)),
            deployed(conn, "bench_timed", timed("bench_timed", TIMER_SECONDS)),
        )
        with baton_workers(url, 1) as processes:
            fill(url, conn, "bench.waits", jobs=THREADS, length=1)
            wait(lambda: running(conn) == 0, "the handler processes to start", START_SECONDS)
            worker, server = _idle(conn, processes, seconds=min(5.0, busy_seconds))
            found = [_one_by_one(conn, one, idle_jobs), _at_rate(url, conn, one, per_second, busy_seconds), _timers(conn, timer, idle_jobs)]
    return Latency(found, worker, server)


def _idle(conn: psycopg.Connection[Any], processes: Sequence[int], *, seconds: float) -> tuple[float, float]:
    before, begun = spent(conn, processes), time.monotonic()
    time.sleep(seconds)
    after, took = spent(conn, processes), time.monotonic() - begun
    worker = after.parents - before.parents + after.children - before.children
    return round(100 * worker / took, 1), round(100 * ((after.server or 0) - (before.server or 0)) / took, 1)


def _one_by_one(conn: psycopg.Connection[Any], key: str, jobs: int) -> Waited:
    for _ in range(jobs):
        start_instance(conn, key, actor=SYSTEM, variables=VARIABLES)
        time.sleep(random.uniform(0.1, 0.2))  # noqa: S311 - not in step with the worker
    wait(lambda: running(conn) == 0, "every case to end", START_SECONDS)
    return _waited("idle", conn.execute(_STARTED, (key, jobs)).fetchall(), None)


def _at_rate(url: str, conn: psycopg.Connection[Any], key: str, per_second: float, seconds: float) -> Waited:
    """`STARTERS` threads start cases at random moments, so many a second together."""
    end = time.monotonic() + seconds
    counts: list[int] = []
    threads = [threading.Thread(target=_start, args=(url, key, per_second / STARTERS, end, counts)) for _ in range(STARTERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wait(lambda: running(conn) == 0, "every case to end", START_SECONDS)
    return _waited("half load", conn.execute(_STARTED, (key, sum(counts))).fetchall(), round(sum(counts) / seconds, 1))


def _start(url: str, key: str, per_second: float, end: float, counts: list[int]) -> None:
    count, at = 0, time.monotonic()
    with connect(url, application_name="baton-bench") as conn:
        while (at := at + random.expovariate(per_second)) < end:
            time.sleep(max(0.0, at - time.monotonic()))
            start_instance(conn, key, actor=SYSTEM, variables=VARIABLES)
            count += 1
    counts.append(count)


def _timers(conn: psycopg.Connection[Any], key: str, count: int) -> Waited:
    for _ in range(count):
        start_instance(conn, key, actor=SYSTEM, variables={})
        time.sleep(random.uniform(0.1, 0.2))  # noqa: S311 - so that they are due one by one
    wait(lambda: running(conn) == 0, "every timer to fire", START_SECONDS)
    return _waited("idle, a timer", conn.execute(_FIRED, (TIMER_SECONDS, key, count)).fetchall(), None)


_STARTED = """
SELECT ((i.final_variables #>> '{started_us,value}')::float8 - extract(epoch FROM i.started_at)::float8 * 1e6) / 1000
FROM process_instance i JOIN process_definition d ON d.id = i.definition_id WHERE d.key = %s ORDER BY i.started_at DESC LIMIT %s
"""
_FIRED = """
SELECT extract(epoch FROM h.at - i.started_at)::float8 * 1000 - 1000 * %s
FROM history h JOIN process_instance i ON i.id = h.instance_id JOIN process_definition d ON d.id = i.definition_id
WHERE h.kind = 'timer_fired' AND d.key = %s ORDER BY i.started_at DESC LIMIT %s
"""


def _waited(what: str, rows: Sequence[tuple[Any, ...]], per_second: float | None) -> Waited:
    times = sorted(float(row[0]) for row in rows)
    if not times:
        raise RuntimeError(f"{what}: expected jobs to have been started, found none")
    late = times[min(len(times) - 1, int(0.95 * len(times)))]
    return Waited(what, len(times), per_second, round(statistics.median(times), 2), round(late, 2), round(times[-1], 2))
