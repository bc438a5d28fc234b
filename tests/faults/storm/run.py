"""One storm, from its beginning to its verdict: servers, processes, traffic, faults; calm; then the checker."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from engine.commands.api_keys import add_api_key
from engine.commands.deploy import deploy
from engine.commands.outcome import SYSTEM, Deployed
from engine.commands.people import add_person
from engine.db.session import connect
from tests.faults.load import Receiver, effects
from tests.faults.storm import handlers, sabotage
from tests.faults.storm.checker import Evidence, Violation, orphans, read_rows, violations
from tests.faults.storm.driver import PASSWORD, PEOPLE, Driver, Shared
from tests.faults.storm.entry import SABOTAGE
from tests.faults.storm.journal import Journal, read
from tests.faults.storm.models import files
from tests.faults.storm.monkey import Monkey, schedule
from tests.faults.storm.processes import WEB, WORKER, Process, Web, Worker
from tests.faults.storm.proxy import Proxies
from tests.faults.storm.topology import Topology
from tests.faults.storm.watch import Watch
from tests.worker.processes import eventually
from webapp.auth.passwords import rehash

DRAIN_SECONDS = 180.0  # for all that was begun to end; a storm that needs them all has found something
SABOTAGED, STILL_SABOTAGED = 20.0, 6.0  # the same for what was broken on purpose: it need not come to an end
STILL_SECONDS = 45.0  # nothing was written for so long: it will not be


@dataclass(frozen=True, slots=True)
class Plan:
    """`faults`: without, only the traffic. `sabotage`: 0, or which of tests.faults.storm.sabotage; then `seconds` is the most."""

    seed: int
    seconds: float
    faults: bool = True
    sabotage: int = 0
    workers: int = 3
    webs: int = 2
    in_flight: int = 10
    to_the_end: bool = True  # False: what was begun need not come to its end; a sabotage that was reported stays so


@dataclass(slots=True)
class Report:
    plan: Plan
    found: list[Violation] = field(default_factory=list)
    requests: Counter[str] = field(default_factory=Counter)
    sent: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    cases: Counter[str] = field(default_factory=Counter)
    deliveries_seen: int = 0
    leases_recovered: int = 0
    looks: int = 0
    worst_overdue: float = 0.0
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        return {
            "seed": self.plan.seed,
            "minutes": round(self.plan.seconds / 60, 2),
            "sabotage": self.plan.sabotage,
            "seconds_in_all": round(self.seconds, 1),
            "requests": dict(self.requests),
            "sent": self.sent,
            "faults": dict(self.faults),
            "cases_ended": dict(self.cases),
            "effects_seen": self.deliveries_seen,
            "leases_recovered": self.leases_recovered,
            "looks_at_leases": self.looks,
            "worst_overdue_lease_seconds": round(self.worst_overdue, 2),
            "violations": [{"rule": each.rule, "what": each.what, "ids": list(each.ids)} for each in self.found],
        }

    def lines(self) -> list[str]:
        def told(counted: Counter[str]) -> str:
            return ", ".join(f"{many} {name}" for name, many in sorted(counted.items())) or "none"

        return [
            f"requests: {sum(self.requests.values())} ({told(self.requests)}), sent {self.sent} times",
            f"faults: {told(self.faults)}",
            f"cases ended: {told(self.cases)}; effects seen outside: {self.deliveries_seen}; leases recovered: {self.leases_recovered}",
            f"worst lease past its expiry: {self.worst_overdue:.1f} s in {self.looks} looks; {self.seconds:.0f} s in all",
            *(f"VIOLATION {each}" for each in self.found[:40]),
            f"{len(self.found)} violations" if self.found else "nothing lost, nothing doubled, nothing left",
        ]


@contextmanager
def servers(folder: Path, *, whole: bool) -> Iterator[Topology]:
    """`whole`: with a standby and PgBouncer."""
    proxies = Proxies()
    topology = Topology(folder, proxies)
    try:
        topology.start()
        if whole:
            topology.add_pooler()
            topology.add_standby()
        yield topology
    finally:
        topology.stop()
        proxies.stop()


def storm(plan: Plan, *, say: Callable[[str], None] = print, keep: Path | None = None) -> Report:
    """Run it whole. `keep`: a folder for journal and logs, which otherwise go."""
    with tempfile.TemporaryDirectory(prefix="baton-storm-") as made:
        folder = keep or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        with servers(folder, whole=plan.faults) as topology, stage(plan, topology, folder, say) as scene:
            return scene.play()


@contextmanager
def stage(plan: Plan, topology: Topology, folder: Path, say: Callable[[str], None]) -> Iterator[Scene]:
    scene = Scene(plan, topology, folder, say)
    try:
        yield scene
    finally:
        scene.end()


class Scene:
    """Everything that one storm consists of, on servers that run."""

    def __init__(self, plan: Plan, topology: Topology, folder: Path, say: Callable[[str], None]) -> None:
        self.plan, self.topology, self.folder, self.say = plan, topology, folder, say
        self.begun = time.monotonic()
        self.notes = folder / "notes"
        self.outside = Receiver(folder, "tests.faults.storm.receivers")
        environment = {
            handlers.PLACE: str(self.notes),
            SABOTAGE: str(plan.sabotage or ""),
            **(sabotage.SABOTAGES[plan.sabotage].settings if plan.sabotage else {}),
        }
        self.workers = [self._process(Worker, f"worker-{n}", n, {**WORKER, **environment}) for n in range(plan.workers)]
        self.webs = [self._process(Web, f"web-{n}", n, {**WEB, **environment}) for n in range(plan.webs)]
        self.monkey = Monkey(topology, self.workers, self.webs, say)
        self.watch = Watch(topology.url, lambda: self.workers[0].alive)
        self.journal = Journal(folder / "journal")
        with connect(topology.url()) as conn:
            key = self._furnish(conn)
            sabotage.in_the_database(conn, plan.sabotage)
        shared = Shared(self.outside.url, plan.in_flight, lambda: self.watch.running)
        self.driver = Driver([web.address for web in self.webs], self.journal, shared, seed=plan.seed, key=key)

    def _process(self, made: Any, name: str, number: int, environment: dict[str, str]) -> Any:
        """Each on a link of its own: the first worker and the last web server to the primary, the others to PgBouncer."""
        pooler = self.topology.pgbouncer
        if pooler is None or name in ("worker-0", f"web-{self.plan.webs - 1}"):
            link = self.topology.proxies.link(lambda: self.topology.primary.port)
        else:
            link = self.topology.proxies.link(lambda: pooler.port)
            environment = {**environment, "BATON_POOLER": "transaction"}
        return made(name, link, self.topology.url_at(link.port), self.folder, environment)

    def _furnish(self, conn: psycopg.Connection[Any]) -> str:
        """Models, people, a key."""
        outcome = deploy(conn, list(files().items()), actor=SYSTEM)
        assert isinstance(outcome, Deployed), outcome
        hashed = rehash(PASSWORD)
        for name in PEOPLE:
            add_person(conn, name, actor=SYSTEM, display_name=name.title(), role="user", groups=("storm",), password_hash=hashed)
        add_person(conn, "machine", actor=SYSTEM, display_name="Machine", role="operator", groups=(), password_hash=None)
        return str(add_api_key(conn, "machine", actor=SYSTEM, name="storm", days=None).token)

    # ---- the play

    def play(self) -> Report:
        processes: list[Process] = [*self.workers, *self.webs]
        for process in processes:
            process.start()
        for web in self.webs:
            web.wait_until_ready()
        eventually(lambda: "worker_ready" in self.workers[0].text(), "the first worker to be ready", seconds=60)
        self.watch.start()
        self.driver.start()
        if self.plan.sabotage:
            self._until_reported()
        faults = schedule(self.plan.seed, self.plan.seconds, promote=self.topology.standby is not None) if self.plan.faults else []
        self.monkey.run(faults, 0 if self.plan.sabotage else self.plan.seconds)
        self.say("calm: nothing new is begun, what was begun comes to its end")
        self.driver.finish()
        self.monkey.calm()
        if self.plan.to_the_end:
            self._drain()
            if not self.plan.sabotage:
                self._everybody_works()
        self.driver.stop()
        self.watch.stop()
        return self._report()

    def _until_reported(self) -> None:
        """What was broken comes to light when the traffic brings it about; the verdict is that of the end."""
        end = time.monotonic() + self.plan.seconds
        while time.monotonic() < end and not sabotage.reported(self.plan.sabotage, violations(self.evidence())):
            time.sleep(0.5)

    def _drain(self) -> None:
        """Until every case has ended, or nothing is written any more."""
        end, seen, since = time.monotonic() + (SABOTAGED if self.plan.sabotage else DRAIN_SECONDS), -1, time.monotonic()
        still = STILL_SECONDS if not self.plan.sabotage else STILL_SABOTAGED
        with psycopg.connect(self.topology.url(), autocommit=True, application_name="storm-watch") as conn:
            while time.monotonic() < end:
                row = conn.execute(OPEN).fetchone()
                assert row is not None
                if row[0] == 0 and not self.driver.shared.to_pay:
                    return
                if row[1] != seen:
                    seen, since = row[1], time.monotonic()
                if time.monotonic() - since > still:
                    self.say(f"nothing moves any more, and {row[0]} things are open")
                    return
                time.sleep(0.1)
        self.say("the time to come to an end is over")

    def _everybody_works(self) -> None:
        """A process that lives and does nothing is as bad as one that is gone, and harder to see."""
        for web in self.webs:
            try:
                web.wait_until_ready(seconds=60)
            except AssertionError as silent:
                self.driver.shared.trouble.append(f"{web.name} lives and does not answer: {silent}")
        with psycopg.connect(self.topology.url(), autocommit=True, application_name="storm-watch") as conn:
            for worker in self.workers:
                try:
                    eventually(lambda worker=worker: conn.execute(WORKING, (worker.pid,)).fetchone() == (True,), "it to work", seconds=60)
                except AssertionError:
                    row = conn.execute(SILENT, (worker.pid,)).fetchone()
                    self.driver.shared.trouble.append(f"{worker.name} lives and does nothing: {row}")

    def evidence(self) -> Evidence:
        """The three sources, as they are now."""
        asks = read(self.journal.path)  # first: what it holds must show in the rows
        with psycopg.connect(self.topology.url(), application_name="storm-watch") as conn:
            conn.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            rows, lost = read_rows(conn), orphans(conn)
        return Evidence(
            asks,
            effects(self.outside.log, self.notes),
            rows,
            lost,
            self.watch.too_long,
            sorted(self.watch.notified),
            self.topology.logs(),
            {process.name: process.text() for process in (*self.workers, *self.webs)},
            self.driver.shared.trouble,
        )

    def _report(self) -> Report:
        evidence = self.evidence()
        history, instances = evidence.rows.history, evidence.rows.instances.values()
        return Report(
            self.plan,
            violations(evidence),
            Counter(ask.what for ask in evidence.asks),
            sum(len(ask.sent) for ask in evidence.asks),
            self.monkey.made,
            Counter(row["process"] for row in instances if row["status"] == "completed"),
            len(evidence.effects),
            sum(event["kind"].endswith("_recovered") for event in history),
            self.watch.looks,
            self.watch.worst,
            time.monotonic() - self.begun,
        )

    def end(self) -> None:
        self.driver.shared.ended.set()
        for process in (*self.workers, *self.webs):
            process.kill()
        self.outside.stop()


OPEN = (
    "SELECT (SELECT count(*) FROM process_instance WHERE status = 'running') + (SELECT count(*) FROM job) + (SELECT count(*) FROM"
    " external_task) + (SELECT count(*) FROM delivery WHERE status <> 'completed'), (SELECT coalesce(max(id), 0) FROM history)"
)
WORKING = (
    "SELECT heartbeat_at > baton_now() - interval '4 seconds' AND last_acquired_at > baton_now() - interval '8 seconds'"
    " FROM worker WHERE pid = %s AND stopped_at IS NULL ORDER BY started_at DESC LIMIT 1"
)
SILENT = (
    "SELECT baton_now() - heartbeat_at, baton_now() - last_acquired_at FROM worker WHERE pid = %s AND stopped_at IS NULL"
    " ORDER BY started_at DESC LIMIT 1"
)
