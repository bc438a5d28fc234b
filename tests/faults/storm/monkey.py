"""The faults. The same seed gives the same schedule: what, when, to whom, for how long.

One worker, the first, is never killed, stopped or cut off, so that there is always one that recovers what others lost;
the database goes away under it as under all of them.
"""

from __future__ import annotations

import heapq
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psycopg

from engine.failpoints import NAMES
from tests.faults.storm.processes import LEASE_SECONDS, Process, Web, Worker
from tests.faults.storm.topology import Topology

FIRST, LAST = 3.0, 4.0  # seconds before the first fault, and after the last
KINDS = (
    "kill_worker",
    "kill_worker_at_a_fail_point",
    "stop_worker",
    "roll_worker",
    "kill_web",
    "stop_web",
    "restart_database",
    "terminate_backends",
    "half_open_worker",
    "half_open_web",
    "half_open_pool",
    "cut_lines",
    "slow_lines",
    "hold_snapshot",
    "kill_pgbouncer",
)
DATABASE_DOWN = ("fast", "immediate", "kill")


@dataclass(frozen=True, slots=True)
class Fault:
    """`at`, `seconds`: when it comes, and how long it lasts. `victim`: picks among those that there are. `how`: a further choice."""

    at: float
    kind: str
    victim: int
    seconds: float
    how: str

    def __str__(self) -> str:
        return f"{self.at:6.1f}  {self.kind:28} victim={self.victim} seconds={self.seconds:g} how={self.how}"


def schedule(seed: int, seconds: float, *, promote: bool = True) -> list[Fault]:
    """Every kind once before any comes again; a promotion a little past the middle."""
    chance = random.Random(f"faults {seed}")
    faults: list[Fault] = []
    at, bag = FIRST, []
    while at < seconds - LAST:
        bag = bag or chance.sample(KINDS, len(KINDS))
        kind = bag.pop()
        faults.append(_fault(chance, round(at, 1), kind))
        at += chance.uniform(2.0, 5.0)
    if promote:
        faults.append(Fault(round(seconds * chance.uniform(0.5, 0.65), 1), "promote_standby", 0, 0, chance.choice(("immediate", "kill"))))
    return sorted(faults, key=lambda fault: fault.at)


def _fault(chance: random.Random, at: float, kind: str) -> Fault:
    how = ""
    lasts = round(chance.uniform(3, 8), 1)
    match kind:
        case "restart_database":
            how = chance.choice(DATABASE_DOWN)
        case "kill_worker_at_a_fail_point":
            how = f"{chance.choice(list(NAMES))}#{chance.randrange(2, 8)}=kill"
        case "stop_worker":
            lasts = round(LEASE_SECONDS + chance.uniform(2, 6), 1)  # past its leases
        case "half_open_worker" | "half_open_web" | "half_open_pool":
            how = chance.choice(("ends", "stays"))
        case "hold_snapshot":
            lasts = round(chance.uniform(15, 40), 1)
    return Fault(at, kind, chance.randrange(1000), lasts, how)


class Monkey:
    """Makes the faults of a schedule, and ends each in its time. Runs in the main thread: children belong to who forks them."""

    def __init__(self, topology: Topology, workers: Sequence[Worker], webs: Sequence[Web], say: Callable[[str], None]) -> None:
        self.topology, self.workers, self.webs, self.say = topology, list(workers), list(webs), say
        self.made: Counter[str] = Counter()
        self._begun = time.monotonic()
        self._ends: list[tuple[float, int, Callable[[], None]]] = []
        self._snapshots: list[psycopg.Connection[Any]] = []

    def run(self, faults: Sequence[Fault], seconds: float) -> None:
        self._begun = time.monotonic()
        for fault in faults:
            self._wait_until(fault.at)
            self.say(str(fault))
            getattr(self, f"_{fault.kind}")(fault)
            self.made[fault.kind] += 1
        self._wait_until(seconds)

    def calm(self) -> None:
        """End whatever goes on. Lines that are to stay half open stay so."""
        while self._ends:
            heapq.heappop(self._ends)[2]()
        for process in (*self.workers, *self.webs):
            if not process.alive:
                process.start()
        for conn in self._snapshots:
            conn.close()

    # ---- time

    def _wait_until(self, at: float) -> None:
        while True:
            now = time.monotonic() - self._begun
            if self._ends and self._ends[0][0] <= now:
                heapq.heappop(self._ends)[2]()
                continue
            self._keep_alive()
            if now >= at:
                return
            time.sleep(min(0.2, at - now))

    def _later(self, fault: Fault, end: Callable[[], None]) -> None:
        heapq.heappush(self._ends, (time.monotonic() - self._begun + fault.seconds, len(self._ends) + 1000 * sum(self.made.values()), end))

    def _keep_alive(self) -> None:
        """Who died at a fail-point is started again, as a supervisor would."""
        for worker in self.workers:
            if not worker.alive:
                self.made["worker_started_again"] += 1
                worker.start()

    # ---- our processes

    def _victim(self, fault: Fault) -> Worker:
        return self.workers[1 + fault.victim % (len(self.workers) - 1)]

    def _web(self, fault: Fault) -> Web:
        return self.webs[fault.victim % len(self.webs)]

    def _kill_worker(self, fault: Fault) -> None:
        self._again(self._victim(fault))

    def _kill_worker_at_a_fail_point(self, fault: Fault) -> None:
        self._again(self._victim(fault), fault.how)

    def _kill_web(self, fault: Fault) -> None:
        self._again(self._web(fault))

    def _again(self, process: Process, failpoints: str = "") -> None:
        process.kill()
        process.start(failpoints)

    def _roll_worker(self, fault: Fault) -> None:
        worker = self._victim(fault)
        if not worker.stopped:
            worker.terminate()
        self._again(worker)

    def _stop_worker(self, fault: Fault) -> None:
        self._stop(self._victim(fault), fault)

    def _stop_web(self, fault: Fault) -> None:
        self._stop(self._web(fault), fault)

    def _stop(self, process: Process, fault: Fault) -> None:
        process.stop()
        self._later(fault, process.go_on)

    # ---- the database

    def _restart_database(self, fault: Fault) -> None:
        self.topology.primary.halt(fault.how)
        self.topology.primary.start()

    def _promote_standby(self, fault: Fault) -> None:
        self.topology.promote(fault.how)

    def _kill_pgbouncer(self, fault: Fault) -> None:
        assert self.topology.pgbouncer is not None, "expected a PgBouncer to kill"
        self.topology.pgbouncer.restart()

    def _terminate_backends(self, fault: Fault) -> None:
        """Half of what works at this moment, several times over."""
        query = (
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND backend_type = 'client backend' AND application_name <> 'storm-watch' AND (state <> 'idle' OR random() < 0.2)"
        )
        with suppress(psycopg.OperationalError), psycopg.connect(self.topology.url(), autocommit=True) as conn:
            for _ in range(10):
                self.made["backends_terminated"] += conn.execute(query).rowcount
                time.sleep(0.05)

    def _hold_snapshot(self, fault: Fault) -> None:
        with suppress(psycopg.OperationalError):
            conn = psycopg.connect(self.topology.url(), application_name="storm-watch")
            conn.execute("SET idle_in_transaction_session_timeout = 0")
            conn.commit()
            conn.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            conn.execute("SELECT count(*) FROM job")
            self._snapshots.append(conn)
            self._later(fault, conn.close)

    # ---- the lines between them

    def _half_open_worker(self, fault: Fault) -> None:
        self._silence(self._victim(fault).link, fault)

    def _half_open_web(self, fault: Fault) -> None:
        self._silence(self._web(fault).link, fault)

    def _half_open_pool(self, fault: Fault) -> None:
        self._silence(self.topology.back, fault)

    def _silence(self, link: Any, fault: Fault) -> None:
        self.made["lines_half_opened"] += link.silence()
        if fault.how == "ends":
            self._later(fault, link.cut)

    def _cut_lines(self, fault: Fault) -> None:
        for process in (self._victim(fault), self._web(fault)):
            process.link.cut()

    def _slow_lines(self, fault: Fault) -> None:
        for process in (self._victim(fault), self._web(fault)):
            process.link.seconds = 0.02
            self._later(fault, lambda link=process.link: setattr(link, "seconds", 0.0))
