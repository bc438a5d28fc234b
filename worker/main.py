"""A worker: one process that acquires, runs and reports, until it is told to stop.

    run(settings)   blocks until SIGTERM or SIGINT, then drains

Threads: `acquirer`, `renewals`, `pulse` (heartbeat, recovery) and `scribe` (what handlers say while they run), each on a connection of
its own; upkeep's; and a thread for every slot, those with handler processes two, on a connection of its own once it reports. In all:
these (worker/lanes.py) + 5; the main thread has one before the scribe begins and after it ended.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version

import psycopg

from engine import failpoints, logs
from engine.commands.upkeep import Kept
from engine.commands.workers import Beat, stopped
from engine.config import ConfigurationError, Settings
from engine.db.room import of_worker, too_few
from engine.db.session import behind_pooler
from engine.ids import new_id
from engine.logs import line
from engine.told import when_told
from worker import health
from worker.acquirer import Acquirer, Lane
from worker.children import STOP_SECONDS, Children
from worker.database import Database, Stopping
from worker.handlers import Handler, load_handlers
from worker.lanes import Plan, plan, unknown
from worker.pulse import Pulse
from worker.renewals import Renewals
from worker.runner import Item, Runner
from worker.scribe import Scribe
from worker.slots import Slots
from worker.upkeep import Upkeep

logger = logging.getLogger("baton.worker")

LATELY_SECONDS = 4.0  # and two of the usual pauses: an acquisition that is longer ago is not lately
COLLECTIONS = (10_000, 20, 50)  # an item makes a thousand objects that die at once: looking for cycles after every 700 finds none
LAST_REPORTS_SECONDS = 5.0  # after everything was told to stop: time for what is being reported


def run(settings: Settings) -> int:
    """Work until SIGTERM or SIGINT; returns the exit code. A second signal cuts the grace period short.

    Raises ConfigurationError for what is wrong with the settings or the handlers, before anything was acquired.
    """
    logs.set_up(settings.log_level)
    failpoints.install(settings.failpoints)
    told = threading.Semaphore(0)
    worker = Worker(settings)

    def tell() -> None:
        told.release()
        worker.unwanted.set()

    when_told((signal.SIGTERM, signal.SIGINT), tell)
    # What was loaded stays for good: full collections need not look through it again.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTIONS)
    try:
        worker.start()
    except Stopping:
        logger.info(line("worker_stopped", worker=worker.id, because="told to while it waited for the database"))
        return 0
    told.acquire()
    worker.drain(hurry=lambda: told.acquire(blocking=False))
    return 0


class Worker:
    """The parts of one worker, wired. `start`, then `drain` once."""

    def __init__(self, settings: Settings) -> None:
        self.id = new_id()  # fresh at every start: the owner of its leases (R4)
        self._settings = settings
        self._handlers = load_handlers(settings.handlers)
        self.unwanted = threading.Event()  # it shall not begin any more
        self._abandoned = threading.Event()
        self._draining = False
        self._database = Database(
            settings.need_database(),
            name=f"baton-worker {os.getpid()}",
            stopping=self._abandoned,
            # A command makes four calls at most: no command outlasts a lease (F1).
            statement_seconds=max(1.0, settings.lease_seconds / 5),
            idle_seconds=max(0.5, settings.lease_seconds / 2),
        )
        self._plans = plan(settings, self._handlers)
        self._children = Children(settings, count=sum(each.slots for each in self._plans if each.children))
        self._renewals = Renewals(self._renewal_database(), lease_seconds=settings.lease_seconds)
        self._scribe = Scribe(self._database)
        self._runner = Runner(settings, self._database, self._renewals, self._handlers, self._children, self._scribe)
        self._lanes = self._make_lanes()
        self._acquirer = Acquirer(
            self._database,
            self._renewals,
            self._runner,
            self._lanes,
            owner=str(self.id),
            lease_seconds=settings.lease_seconds,
            poll_seconds=settings.poll_seconds,
        )
        self._pulse = Pulse(
            self._database,
            say=self._say,
            heard=self._heard,
            heartbeat_seconds=settings.heartbeat_seconds,
            recovery_seconds=settings.recovery_seconds,
            forgiven=settings.forgiven_topics,
        )
        branches = [pair for lane in self._lanes if not lane.deliveries for pair in lane.capabilities]
        self._upkeep = Upkeep(self._upkeep_database(), Kept(settings.request_seconds, branches), seconds=settings.upkeep_seconds)

    def _renewal_database(self) -> Database:
        # A renewal that takes longer than a fraction of the lease is better asked again.
        seconds = max(0.5, self._settings.lease_seconds / 6)
        return Database(
            self._settings.need_database(),
            name=f"baton-renewals {os.getpid()}",
            stopping=self._abandoned,
            statement_seconds=seconds,
        )

    def _upkeep_database(self) -> Database:
        return Database(self._settings.need_database(), name=f"baton-upkeep {os.getpid()}", stopping=self._abandoned)

    def _make_lanes(self) -> list[Lane]:
        for name in unknown(self._settings, self._plans):
            logger.warning(line("kind_slots_unused", name=name))
        return [Lane(each.name, self._slots(each), each.kinds, each.deliveries) for each in self._plans]

    def _slots(self, plan: Plan) -> Slots[Item]:
        reporting = plan.slots if plan.children else 0
        return Slots(plan.name, plan.slots, run=self._runner.run, freed=lambda: self._acquirer.wake(), reporting=reporting)

    # ---- life

    def start(self) -> None:
        """Register, waiting for the database if need be; then work. Raises Stopping if it became unwanted while it waited."""
        if self._settings.worker_listen is not None:
            health.Health(self._settings.worker_listen, self.state).start()
        try:
            self._database.patiently(lambda conn: self._pulse.beat(), unless=self.unwanted)
            self._ask_for_room()
        except psycopg.errors.UndefinedTable as problem:
            raise ConfigurationError(f"DATABASE_URL: expected a database that `baton migrate` was run on, found {problem}") from problem
        self._database.drop()  # this thread needs none until the end
        for part in (self._renewals, self._pulse, self._upkeep, self._scribe, self._acquirer):
            part.start()
        said = self._say()
        logger.info(line("worker_ready", worker=self.id, host=said.host, pid=said.pid, slots=said.slots, kinds=_kinds(self._handlers)))

    def _ask_for_room(self) -> None:
        wanted = of_worker(*(lane.slots.threads for lane in self._lanes))
        if not behind_pooler(self._settings.need_database()) and (found := self._database.patiently(lambda conn: too_few(conn, wanted))):
            logger.warning(line("connections_may_run_out", wanted=found.wanted, allowed=found.allowed, used_by_others=found.used))

    def drain(self, *, hurry: Callable[[], bool] | None = None) -> None:
        """Acquire nothing more, give what runs the grace period, hand back the rest, sign off."""
        self._draining = True
        logger.info(line("worker_draining", worker=self.id, busy=self._busy(), grace=self._settings.drain_seconds))
        end = time.monotonic() + self._settings.drain_seconds
        hurried = self._wait_for_the_last_batch(max(1.0, self._settings.drain_seconds), hurry)
        self._wait_for_slots(0.0 if hurried else max(0.0, end - time.monotonic()), hurry)
        for held in self._renewals.in_hand():
            held.cancel(lost=False)
        self._wait_for_slots(STOP_SECONDS + LAST_REPORTS_SECONDS, None)
        self._upkeep.stop()
        self._pulse.stop()
        self._renewals.stop()
        self._scribe.stop()
        self._sign_off()
        self._abandoned.set()
        self._children.kill()
        logger.info(line("worker_stopped", worker=self.id, unfinished=self._busy()))

    def _wait_for_the_last_batch(self, seconds: float, hurry: Callable[[], bool] | None) -> bool:
        """Whether it was cut short: without a database a batch may hang between being leased and being read."""
        end = time.monotonic() + seconds
        while not self._acquirer.stop(seconds=min(0.2, max(0.0, end - time.monotonic()))):
            if hurry is not None and hurry():
                return True
            if time.monotonic() >= end:
                return False
        return False

    def _wait_for_slots(self, seconds: float, hurry: Callable[[], bool] | None) -> None:
        end = time.monotonic() + seconds
        for lane in self._lanes:
            while not lane.slots.wait_until_idle(seconds=min(0.2, max(0.0, end - time.monotonic()))):
                if time.monotonic() >= end or (hurry is not None and hurry()):
                    return

    def _sign_off(self) -> None:
        try:
            stopped(self._database.connection(), self.id)
        except psycopg.Error as problem:
            # Its row then says that it fell silent, which is true as well.
            logger.warning(line("worker_not_signed_off", worker=self.id, problem=problem))

    # ---- what it says about itself

    def _say(self) -> Beat:
        return Beat(
            id=self.id,
            host=socket.gethostname(),
            pid=os.getpid(),
            version=_version(),
            slots=sum(lane.slots.count for lane in self._lanes),
            busy=self._busy(),
            kinds=[pair for lane in self._lanes for pair in lane.capabilities],
            draining=self._draining,
            acquired=self._acquirer.has_looked(),
            longest_gap=round(self._renewals.longest_gap, 3),
        )

    def state(self) -> str:
        """`ready` if an acquisition has succeeded lately. One without a free slot asks for nothing: then its heartbeat counts."""
        if self._draining:
            return health.DRAINING
        now, settings = time.monotonic(), self._settings
        if now - self._acquirer.acquired_at <= LATELY_SECONDS + 2 * settings.poll_seconds:
            return health.READY
        full = not any(lane.slots.room() for lane in self._lanes)
        answers = now - self._pulse.beaten_at <= LATELY_SECONDS + 2 * settings.heartbeat_seconds
        return health.READY if full and answers else health.UNAVAILABLE

    def _busy(self) -> int:
        return sum(lane.slots.busy() for lane in self._lanes)

    def _heard(self, workers_alive: int) -> None:
        self._acquirer.workers_alive = workers_alive


def _kinds(handlers: Mapping[str, Handler]) -> str:
    return ",".join(sorted(handlers))


def _version() -> str:
    try:
        return version("baton")
    except PackageNotFoundError:
        return "checkout"
