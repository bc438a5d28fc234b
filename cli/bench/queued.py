"""Durable jobs a second with one worker and with two, beside the four-statement loop of raw_command.py in the same run.

A job of the product is a service task whose handler does nothing: acquired by a real `baton worker`, handed to a handler
process and back, and completed by the command that ends it and writes the next one. A command of the yardstick finishes one
leased row, writes two rows of history and the next row; it acquires nothing and hands nothing over. Both with the same
number of processes; the yardstick with as many threads each as a worker runs handlers at a time.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import psycopg
from sqlalchemy.engine import make_url

from cli.bench.engine import durable, yardstick
from cli.bench.queue_drain import THREADS, Drained, drain
from engine.db.migrate import migrate
from engine.db.session import plain_url


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured."""

    jobs: int = 5000
    length: int = 10
    rounds: int = 3
    seconds: float = 5.0  # of each round of the yardstick
    workers: tuple[int, ...] = (1, 2)


FULL = Size()
QUICK = Size(jobs=60, length=3, rounds=1, seconds=0.5)


@dataclass(frozen=True, slots=True)
class Beside:
    """So many workers, drain by drain, each beside the yardstick just after it. `ratio`: of the medians."""

    workers: int
    per_second: float
    yardstick_per_second: float
    ratio: float
    each: list[tuple[float, float]]
    drains: list[Drained]


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """What one run found; `durable`: commits waited for the disk."""

    server: str
    durable: bool
    jobs: int
    length: int
    threads: int
    inline: bool
    drained: list[Beside]


def bench_queue(server: str, size: Size, *, inline: bool = False) -> QueueFigures:
    """Measure on `server` (a URL on which a database may be made; it is dropped afterwards)."""
    topic = "bench.nothing_inline" if inline else "bench.nothing"
    with a_database(server) as url:
        migrate(url)
        with psycopg.connect(url, autocommit=True) as conn:
            version, waits = str(conn.execute("SHOW server_version").fetchone()[0]), durable(conn)  # type: ignore[index]  # one row
            with suppress(psycopg.Error):  # without it statements are not counted
                conn.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        found: dict[int, list[tuple[Drained, float]]] = {workers: [] for workers in size.workers}
        for _ in range(size.rounds):
            for workers in size.workers:
                drained = drain(url, jobs=size.jobs, length=size.length, workers=workers, topic=topic)
                found[workers].append((drained, yardstick(url, size.seconds, workers, THREADS)))
    return QueueFigures(
        version, waits, size.jobs, size.length, THREADS, inline, [_beside(workers, rounds) for workers, rounds in found.items()]
    )


def _beside(workers: int, rounds: list[tuple[Drained, float]]) -> Beside:
    rate, raw = statistics.median(drained.per_second for drained, _ in rounds), statistics.median(raw for _, raw in rounds)
    each = [(drained.per_second, raw) for drained, raw in rounds]
    return Beside(workers, rate, raw, round(rate / raw, 3), each, [drained for drained, _ in rounds])


@contextmanager
def a_database(server: str) -> Iterator[str]:
    """A database of the bench's own, dropped afterwards."""
    name = f"baton_bench_queue_{os.getpid()}"
    with psycopg.connect(plain_url(server), autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
        try:
            yield make_url(plain_url(server)).set(database=name).render_as_string(hide_password=False)
        finally:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


def lines(figures: QueueFigures) -> Iterator[str]:
    """The figures for people."""
    yield (
        f"PostgreSQL {figures.server}, cases of {figures.length} jobs, {figures.jobs} a round"
        f"{'' if figures.durable else ', NOT DURABLE: this server does not wait for the disk'}"
    )
    for beside in figures.drained:
        rounds = ", ".join(f"{a / b:.3f}" for a, b in beside.each)
        yield (
            f"{beside.workers} worker(s)  {beside.per_second:8,.1f} jobs/s   yardstick {beside.yardstick_per_second:8,.1f} commands/s"
            f"   ratio {beside.ratio:.3f}   each round: {rounds}"
        )
        last = beside.drains[-1]
        server = "" if last.server_cpu_us is None else f", server {last.server_cpu_us:,.0f}"
        statements = "" if last.statements is None else f", {last.statements:.2f} statements"
        yield (
            f"{'':13}a job: CPU of worker {last.parent_cpu_us:,.0f}, handlers {last.children_cpu_us:,.0f}{server} us;"
            f" {last.commits:.2f} commits{statements}, {last.wal_bytes:,.0f} bytes of WAL"
        )
        yield f"{'':13}memory of a worker: {last.parent_kb / 1024:,.0f} MB, its handler processes {last.children_kb / 1024:,.0f} MB"
