"""Durable jobs a second with one worker and with two, beside the four-statement loop of raw_command.py in the same run; how long
a job waits; what an acquisition costs at scale; procrastinate and DBOS.

A job of the product is a service task whose handler does nothing: acquired by a real `baton worker`, handed to a handler
process and back, and completed by the command that ends it and writes the next one. A command of the yardstick finishes one
leased row, writes two rows of history and the next row; it acquires nothing and hands nothing over. Both with the same
number of processes; the yardstick with as many threads each as a worker runs handlers at a time.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import psycopg
from sqlalchemy.engine import make_url

from cli.bench.engine import durable, yardstick
from cli.bench.queue_drain import THREADS, Drained, drain
from cli.bench.queue_latency import Latency, latency
from cli.bench.queue_peers import PEERS, Peer, measure
from cli.bench.queue_scale import Case, acquisition_at_scale
from engine.db.migrate import migrate
from engine.db.session import plain_url

PARTS = ("drain", "peers", "latency", "scale")


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured."""

    jobs: int = 5000
    length: int = 10
    rounds: int = 3
    seconds: float = 5.0  # of each round of the yardstick
    workers: tuple[int, ...] = (1, 2)
    peer_jobs: int = 2000
    idle_jobs: int = 100
    busy_seconds: float = 10.0
    rows: int = 1_000_000


FULL = Size()
QUICK = Size(jobs=60, length=3, rounds=1, seconds=0.5, peer_jobs=50, idle_jobs=5, busy_seconds=1.0, rows=3000)


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
    """What one run found; `durable`: commits waited for the disk. What was not asked for is empty."""

    server: str
    durable: bool
    length: int
    threads: int
    inline: bool
    drained: list[Beside]
    peers: list[Peer]
    latency: Latency | None
    acquisition: list[Case]


def bench_queue(server: str, size: Size, *, parts: Collection[str] = PARTS, inline: bool = False) -> QueueFigures:
    """Measure on `server` (a URL on which databases may be made; they are dropped afterwards)."""
    topic = "bench.nothing_inline" if inline else "bench.nothing"
    with a_database(server) as url:
        migrate(url)
        with psycopg.connect(url, autocommit=True) as conn:
            version, waits = str(conn.execute("SHOW server_version").fetchone()[0]), durable(conn)  # type: ignore[index]  # one row
            with suppress(psycopg.Error):  # without it statements are not counted
                conn.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        drained = _drains(url, size, topic) if "drain" in parts else []
    peers = _peers(server, size) if "peers" in parts else []
    waited = _latency(server, size, drained) if "latency" in parts else None
    cases = acquisition_at_scale(server, f"{_name()}_scale", rows=size.rows) if "scale" in parts else []
    return QueueFigures(version, waits, size.length, THREADS, inline, drained, peers, waited, cases)


def _drains(url: str, size: Size, topic: str) -> list[Beside]:
    found: dict[int, list[tuple[Drained, float]]] = {workers: [] for workers in size.workers}
    for _ in range(size.rounds):
        for workers in size.workers:
            drained = drain(url, jobs=size.jobs, length=size.length, workers=workers, topic=topic)
            found[workers].append((drained, yardstick(url, size.seconds, workers, THREADS)))
    return [_beside(workers, rounds) for workers, rounds in found.items()]


def _peers(server: str, size: Size) -> list[Peer]:
    found = []
    for name in PEERS:
        for workers in size.workers:
            with a_database(server) as url:
                found.append(measure(url, name, jobs=size.peer_jobs, workers=workers))
    return found


def _latency(server: str, size: Size, drained: list[Beside]) -> Latency | None:
    with a_database(server) as url:
        migrate(url)
        rate = drained[0].per_second if drained else drain(url, jobs=size.jobs, length=size.length, workers=1).per_second
        return latency(url, idle_jobs=size.idle_jobs, busy_seconds=size.busy_seconds, per_second=rate / 2)


def _beside(workers: int, rounds: list[tuple[Drained, float]]) -> Beside:
    rate, raw = statistics.median(drained.per_second for drained, _ in rounds), statistics.median(raw for _, raw in rounds)
    each = [(drained.per_second, raw) for drained, raw in rounds]
    return Beside(workers, rate, raw, round(rate / raw, 3), each, [drained for drained, _ in rounds])


@contextmanager
def a_database(server: str) -> Iterator[str]:
    """A database of the bench's own, dropped afterwards."""
    name = _name()
    with psycopg.connect(plain_url(server), autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
        try:
            yield make_url(plain_url(server)).set(database=name).render_as_string(hide_password=False)
        finally:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _name() -> str:
    return f"baton_bench_queue_{os.getpid()}"


def lines(figures: QueueFigures) -> Iterator[str]:
    """The figures for people."""
    yield (
        f"PostgreSQL {figures.server}, cases of {figures.length} jobs"
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
    for peer in figures.peers:
        rate = peer.missing or f"{peer.per_second:8,.1f} jobs/s   {peer.name} {peer.version}"
        yield f"{peer.workers} worker(s)  {rate}"
    if figures.latency is not None:
        yield from _latency_lines(figures.latency)
    for case in figures.acquisition:
        wanted = "reported" if case.wanted is None else f"at most {case.wanted:g}"
        yield (
            f"acquire ten, {case.rows:9,} {case.what:28} {case.ratio:6.2f} times a thousand alone ({wanted});"
            f" {case.milliseconds:.2f} ms, {case.buffers} buffers beside {case.alone_buffers}"
        )


def _latency_lines(found: Latency) -> Iterator[str]:
    for waited in found.waited:
        rate = "" if waited.per_second is None else f", {waited.per_second:,.0f} jobs/s"
        yield f"due to started, {waited.what}{rate}: p50 {waited.p50:.1f} ms, p95 {waited.p95:.1f} ms, longest {waited.longest:.1f} ms"
    yield f"nothing to do: worker {found.idle_worker_cpu_percent:.1f} %, server {found.idle_server_cpu_percent:.1f} % of one core"
