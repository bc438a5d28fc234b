"""Durable engine commands a second, beside the four-statement loop of raw_command.py.

The mix: start, complete job, claim, complete task (and a tenth of an acquisition of ten a case, and of the one read for
ten jobs that a worker does before its handlers run), over the public commands and nothing else. Whether
commits wait for the disk is as the server has it, the same for both, and said (`durable`). Product and yardstick run in turns with the same
processes and threads, so that a machine whose mood changes harms both; the figure is the ratio of the medians.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy.engine import make_url

from engine.commands.complete_task import complete_task
from engine.commands.deploy import deploy
from engine.commands.jobs import complete_job
from engine.commands.outcome import SYSTEM, Actor, Claimed, Deployed, InstanceStarted, ItemDone, Lease, TaskCompleted
from engine.commands.start import start_instance
from engine.commands.tasks import claim
from engine.core.values import typed
from engine.db.acquire import acquire_jobs
from engine.db.load import load_batch
from engine.db.migrate import migrate
from engine.db.session import connect, plain_url
from engine.ids import new_id

YARDSTICK = Path(__file__).with_name("raw_command.py")
MODEL = Path(__file__).with_name("approval.bpmn")
CLERK = Actor("bench", groups=frozenset({"bench"}), display_name="Bench")
BATCH = 10


@dataclass(frozen=True, slots=True)
class EngineFigures:
    """What one run found. Rates are commands a second; `ratio` is product over yardstick.

    `each`: product and yardstick of every round. `durable`: synchronous_commit and fsync were on in both.
    """

    processes: int
    threads: int
    seconds: float
    rounds: int
    commands_per_second: float
    client_cpu_us: float
    yardstick_per_second: float
    ratio: float
    each: list[tuple[float, float]]
    server: str
    durable: bool


def bench_engine(server: str, *, seconds: float = 5, processes: int = 1, threads: int = 4, rounds: int = 3) -> EngineFigures:
    """Measure on `server` (a URL on which a database may be made; it is dropped afterwards)."""
    name = f"baton_bench_{os.getpid()}"
    url = make_url(plain_url(server)).set(database=name).render_as_string(hide_password=False)
    with psycopg.connect(plain_url(server), autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
        version = str(admin.execute("SHOW server_version").fetchone()[0])  # type: ignore[index]  # SHOW gives one row
        try:
            return _measure(url, version, seconds, processes, threads, rounds)
        finally:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _measure(url: str, version: str, seconds: float, processes: int, threads: int, rounds: int) -> EngineFigures:
    migrate(url)
    with connect(url) as conn:
        waits = durable(conn)
        made = deploy(conn, [(MODEL.name, MODEL.read_bytes())], actor=SYSTEM)
        if not isinstance(made, Deployed):
            raise RuntimeError(f"the bench model was refused: {made}")
    each, cpu = [], []
    for _ in range(rounds):
        product, used = _product(url, seconds, processes, threads)
        each.append((product, yardstick(url, seconds, processes, threads)))
        cpu.append(used)
    rate, raw = statistics.median(a for a, _ in each), statistics.median(b for _, b in each)
    return EngineFigures(
        processes, threads, seconds, rounds, round(rate, 1), round(statistics.median(cpu), 1), round(raw, 1),
        round(rate / raw, 3), each, version, waits,
    )  # fmt: skip


def durable(conn: psycopg.Connection[Any]) -> bool:
    """Whether a commit of these sessions waits until it is on the disk."""
    row = conn.execute("SELECT current_setting('synchronous_commit'), current_setting('fsync')").fetchone()
    assert row is not None, "current_setting gives one row"
    return row[0] not in ("off", "local") and row[1] == "on"


def yardstick(url: str, seconds: float, processes: int, threads: int) -> float:
    """Commands a second of the plain loop."""
    ran = subprocess.run(
        [sys.executable, str(YARDSTICK), url, "--seconds", str(seconds), "--processes", str(processes),
         "--threads", str(threads), "--shape", "plain"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return float(json.loads(ran.stdout)["per_second"])


def _product(url: str, seconds: float, processes: int, threads: int) -> tuple[float, float]:
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(processes), context.Queue()
    running = [context.Process(target=_process, args=(url, seconds, threads, barrier, results)) for _ in range(processes)]
    for process in running:
        process.start()
    found = [results.get(timeout=seconds + 120) for _ in running]
    for process in running:
        process.join()
    commands = sum(n for n, _ in found)
    return round(commands / seconds, 1), sum(cpu for _, cpu in found) / max(commands, 1) * 1e6


def _process(url: str, seconds: float, threads: int, barrier: Any, results: Any) -> None:
    done: list[int] = []
    ready = threading.Barrier(threads + 1)
    running = [threading.Thread(target=_clerk, args=(url, seconds, ready, done)) for _ in range(threads)]
    for thread in running:
        thread.start()
    gc.collect()
    gc.freeze()  # as the worker and the web do when they have started
    barrier.wait()
    ready.wait()
    cpu = time.process_time()
    for thread in running:
        thread.join()
    results.put((sum(done), time.process_time() - cpu))


def _clerk(url: str, seconds: float, ready: threading.Barrier, done: list[int]) -> None:
    """One thread: start ten cases, acquire and complete ten jobs, claim and complete their tasks; again and again."""
    with connect(url, application_name="baton-bench") as conn:
        conn.prepare_threshold = 0
        owner = str(new_id())
        _round(conn, owner)  # connections, caches and prepared statements are warm before the clock starts
        ready.wait()
        commands, end = 0, time.monotonic() + seconds
        while time.monotonic() < end:
            commands += _round(conn, owner)
        done.append(commands)


def _round(conn: psycopg.Connection[Any], owner: str) -> int:
    commands = 0
    for number in range(BATCH):
        started = start_instance(
            conn, "bench", actor=CLERK, business_key=f"order-{number}", request_id=str(new_id()),
            variables={"amount": typed(1200), "customer": typed("c"), "urgent": typed(False)},
        )  # fmt: skip
        assert isinstance(started, InstanceStarted), started
        commands += 1
    leased = acquire_jobs(conn, owner=owner, capabilities=[("service", "bench.score")], limit=BATCH, lease_seconds=60, workers=4)
    work = load_batch(conn, [job.item_id for job in leased])
    for job in leased:
        lease = Lease("job", job.item_id, job.number, owner, detail=work[job.item_id].detail)
        scored = complete_job(conn, lease, variables={"score": typed(7)})
        assert isinstance(scored, ItemDone), scored
        commands += 1
    tasks = conn.execute(
        "SELECT t.id FROM user_task t WHERE t.status = 'open' AND t.token_id IS NOT NULL AND t.instance_id = ANY(%s)",
        ([job.instance_id for job in leased],),
    ).fetchall()
    for (task,) in tasks:
        claimed = claim(conn, task, actor=CLERK, request_id=str(new_id()))
        assert isinstance(claimed, Claimed), claimed
        completed = complete_task(conn, task, actor=CLERK, variables={"approved": typed(True)}, request_id=str(new_id()))
        assert isinstance(completed, TaskCompleted), completed
        commands += 2
    return commands


def as_json(figures: EngineFigures) -> str:
    """One line of JSON."""
    return json.dumps(asdict(figures))
