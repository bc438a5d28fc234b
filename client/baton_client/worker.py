"""A worker for external tasks, in threads: leases tasks, runs a function for each, renews meanwhile, reports, stops gently.

from baton_client import BpmnError, Client, Running, Worker

worker = Worker(Client("https://baton.example", api_key))

@worker("shipping.label")
def label(task: Running) -> dict[str, object]:
    task.progress(0.1, "asking the carrier")
    task.check()  # does the lease still hold?
    answer = carrier.order(task.variables["address"], idempotency_key=task.idempotency_key)
    if answer.unknown:
        raise BpmnError("UNKNOWN_ADDRESS")
    return {"tracking": answer.number}

worker.run()  # until SIGTERM or SIGINT
"""

from __future__ import annotations

import logging
import os
import queue
import signal
import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from baton_client.calls import Call
from baton_client.client import Client
from baton_client.errors import BatonError, LeaseLost, Refused, Unreachable
from baton_client.running import Running, looks
from baton_client.shapes import Ended, LeasedTask

logger = logging.getLogger("baton_client")

Function = Callable[[Running], Mapping[str, Any] | None]
F = TypeVar("F", bound=Function)

BEAT_SECONDS = 0.5
STOP_SECONDS = 3.0  # what a function gets between being told to stop and being given up


class Worker:
    """`slots`: how many tasks run at once. `name`: as the Workers page calls it; two processes must not share one."""

    def __init__(
        self, client: Client, *, name: str | None = None, slots: int = 4, lease_seconds: float = 60.0, grace_seconds: float = 30.0
    ) -> None:
        self.name = name or f"{socket.gethostname()}:{os.getpid()}"
        self._client, self._slots, self._lease_seconds, self._grace_seconds = client, slots, lease_seconds, grace_seconds
        self._functions: dict[str, Function] = {}
        self._running: dict[Running, None] = {}
        self._changed = threading.Condition()
        self._stopping, self._over, self._hurry = threading.Event(), threading.Event(), threading.Event()
        self._work: queue.SimpleQueue[Running] = queue.SimpleQueue()

    def __call__(self, topic: str) -> Callable[[F], F]:
        """Make a function the one for `topic`. Raises ValueError if there is one."""

        def register(function: F) -> F:
            if topic in self._functions:
                raise ValueError(f"topic {topic!r}: expected one function, found two")
            self._functions[topic] = function
            return function

        return register

    def stop(self) -> None:
        """Acquire nothing more; what runs gets `grace_seconds`. A second call cuts that short. Safe in a signal handler."""
        if self._stopping.is_set():
            self._hurry.set()
        self._stopping.set()

    def run(self, *, signals: bool = True) -> None:
        """Work until `stop`, or, in the main thread, SIGTERM or SIGINT. Returns when everything has been reported or given up."""
        if not self._functions:
            raise ValueError("expected a function for at least one topic, found none")
        before = [(number, signal.signal(number, lambda *_: self.stop())) for number in (signal.SIGTERM, signal.SIGINT)] if signals else []
        for number in range(self._slots):
            threading.Thread(target=self._slot, name=f"baton-{number + 1}", daemon=True).start()
        beats = threading.Thread(target=self._beat, name="baton-beat", daemon=True)
        beats.start()
        try:
            self._acquire()
            self._drain()
        finally:
            self._stopping.set()
            self._over.set()
            beats.join(timeout=STOP_SECONDS)
            for signal_number, earlier in before:
                signal.signal(signal_number, earlier)

    # ---- acquire

    def _acquire(self) -> None:
        pauses = looks()
        while not self._stopping.is_set():
            with self._changed:
                self._changed.wait_for(lambda: len(self._running) < self._slots or self._stopping.is_set(), timeout=BEAT_SECONDS)
                free = self._slots - len(self._running)
            if free <= 0 or self._stopping.is_set():
                continue
            if self._take(free):
                pauses = looks()
            else:
                self._stopping.wait(next(pauses))

    def _take(self, free: int) -> bool:
        asked_at = time.monotonic()
        try:
            found = self._client.acquire(self.name, list(self._functions), limit=free, lease_seconds=self._lease_seconds)
        except BatonError as problem:
            logger.warning("acquire failed: %s", problem)
            return False
        for leased in found:
            if self._stopping.is_set():
                self._hand_back(leased)
            else:
                self._begin(leased, asked_at)
        return bool(found)

    def _hand_back(self, leased: LeasedTask) -> None:
        """It came while the worker was told to stop: unstarted, its attempt is not spent."""
        try:
            self._client.release_external(leased)
        except BatonError as problem:
            logger.warning("task %s: could not be handed back, and comes back when its lease ends: %s", leased.id, problem)

    def _begin(self, leased: LeasedTask, asked_at: float) -> None:
        running = Running(leased, lease_seconds=self._lease_seconds, asked_at=asked_at)
        with self._changed:
            self._running[running] = None
        self._work.put(running)

    # ---- run and report

    def _slot(self) -> None:
        while True:
            running = self._work.get()
            try:
                self._report(running, self._result(running))
            except Exception:
                logger.exception("task %s: could not be reported", running.leased.id)
            finally:
                with self._changed:
                    self._running.pop(running, None)
                    self._changed.notify_all()

    def _result(self, running: Running) -> Call[Ended]:
        try:
            return running.result(self._functions[running.leased.topic](running))
        except BaseException as problem:  # SystemExit too: the function failed, the worker goes on
            return running.failure(problem)

    def _report(self, running: Running, outcome: Call[Ended]) -> None:
        """Until the server has answered, or the lease is over: by then somebody else has the task."""
        self._tell(running)
        while not running.lost:
            try:
                self._client.do(outcome)
                return
            except LeaseLost:
                running.cancel(lost=True)
                logger.warning("task %s: its lease was lost; what it did is not reported", running.leased.id)
            except Refused as problem:
                logger.warning("task %s: its outcome was refused: %s", running.leased.id, problem)
                outcome = running.refused(problem)
            except Unreachable as problem:
                if running.seconds_left <= 0 or self._over.is_set():
                    logger.warning("task %s: its outcome could not be reported: %s", running.leased.id, problem)
                    return

    # ---- renewals and words

    def _beat(self) -> None:
        while not self._over.wait(BEAT_SECONDS):
            for running in self._in_hand():
                if time.monotonic() >= running.renew_at:
                    self._renew(running)
                self._tell(running)

    def _renew(self, running: Running) -> None:
        asked_at = time.monotonic()
        try:
            self._client.do(running.renewal(), tries=1)
        except LeaseLost:
            running.cancel(lost=True)
        except BatonError as problem:
            logger.warning("task %s: not renewed: %s", running.leased.id, problem)
            if running.seconds_left <= 0:
                running.cancel(lost=True)
        else:
            running.renewed(asked_at)

    def _tell(self, running: Running) -> None:
        words = None if running.lost else running.words()
        if words is None:
            return
        try:
            self._client.do(words, tries=2)
        except BatonError as problem:
            logger.warning("task %s: what it said was not kept: %s", running.leased.id, problem)

    # ---- the end

    def _in_hand(self) -> list[Running]:
        with self._changed:
            return list(self._running)

    def _drain(self) -> None:
        self._wait(self._grace_seconds)
        for running in self._in_hand():
            running.cancel(lost=False)
        self._hurry.clear()
        self._wait(STOP_SECONDS)
        for running in self._in_hand():  # its function does not listen: what it reports later is refused
            running.cancel(lost=True)
            try:
                self._client.do(running.stopped(), tries=2)
            except BatonError as problem:
                logger.warning("task %s: could not be given up, and comes back when its lease ends: %s", running.leased.id, problem)

    def _wait(self, seconds: float) -> None:
        """Until nothing runs, at most so long, unless somebody is in a hurry."""
        until = time.monotonic() + seconds
        with self._changed:
            while self._running and not self._hurry.is_set() and (left := until - time.monotonic()) > 0:
                self._changed.wait(min(left, BEAT_SECONDS / 2))
