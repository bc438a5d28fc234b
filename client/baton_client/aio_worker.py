"""A worker for external tasks, for asyncio: what `baton_client.worker` does in threads, with coroutines.

worker = AsyncWorker(AsyncClient("https://baton.example", api_key))

@worker("shipping.label")
async def label(task: Running) -> dict[str, object]: ...

asyncio.run(worker.run())
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from baton_client.aio import AsyncClient
from baton_client.calls import Call
from baton_client.errors import BatonError, LeaseLost, Refused, Unreachable
from baton_client.running import Running, looks
from baton_client.shapes import Ended, LeasedTask
from baton_client.worker import BEAT_SECONDS, STOP_SECONDS

logger = logging.getLogger("baton_client")

Coroutine = Callable[[Running], Awaitable[Mapping[str, Any] | None]]
F = TypeVar("F", bound=Coroutine)


class AsyncWorker:
    """`slots`: how many tasks run at once. `name`: as the Workers page calls it; two processes must not share one."""

    def __init__(
        self, client: AsyncClient, *, name: str | None = None, slots: int = 20, lease_seconds: float = 60.0, grace_seconds: float = 30.0
    ) -> None:
        self.name = name or f"{socket.gethostname()}:{os.getpid()}"
        self._client, self._slots, self._lease_seconds, self._grace_seconds = client, slots, lease_seconds, grace_seconds
        self._functions: dict[str, Coroutine] = {}
        self._running: dict[asyncio.Task[None], Running] = {}
        self._stopping, self._hurry = asyncio.Event(), asyncio.Event()

    def __call__(self, topic: str) -> Callable[[F], F]:
        """Make a coroutine function the one for `topic`. Raises ValueError if there is one."""

        def register(function: F) -> F:
            if topic in self._functions:
                raise ValueError(f"topic {topic!r}: expected one function, found two")
            self._functions[topic] = function
            return function

        return register

    def stop(self) -> None:
        """Acquire nothing more; what runs gets `grace_seconds`. A second call cuts that short."""
        if self._stopping.is_set():
            self._hurry.set()
        self._stopping.set()

    async def run(self, *, signals: bool = True) -> None:
        """Work until `stop`, SIGTERM or SIGINT. Returns when everything has been reported or given up."""
        if not self._functions:
            raise ValueError("expected a function for at least one topic, found none")
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT) if signals else ():
            loop.add_signal_handler(number, self.stop)
        beats = asyncio.create_task(self._beat())
        try:
            await self._acquire()
            await self._drain()
        finally:
            beats.cancel()
            for number in (signal.SIGTERM, signal.SIGINT) if signals else ():
                loop.remove_signal_handler(number)

    # ---- acquire

    async def _acquire(self) -> None:
        pauses = looks()
        while not self._stopping.is_set():
            free = self._slots - len(self._running)
            if free <= 0:
                await self._first_of(self._stopping, timeout=None)
            elif await self._take(free):
                pauses = looks()
            else:
                await _until(self._stopping, next(pauses))

    async def _take(self, free: int) -> bool:
        asked_at = time.monotonic()
        try:
            found = await self._client.acquire(self.name, list(self._functions), limit=free, lease_seconds=self._lease_seconds)
        except BatonError as problem:
            logger.warning("acquire failed: %s", problem)
            return False
        for leased in found:
            if self._stopping.is_set():
                await self._hand_back(leased)
                continue
            running = Running(leased, lease_seconds=self._lease_seconds, asked_at=asked_at)
            task = asyncio.create_task(self._work(running))
            self._running[task] = running
            task.add_done_callback(lambda done: self._running.pop(done, None))
        return bool(found)

    async def _hand_back(self, leased: LeasedTask) -> None:
        """It came while the worker was told to stop: unstarted, its attempt is not spent."""
        try:
            await self._client.release_external(leased)
        except BatonError as problem:
            logger.warning("task %s: could not be handed back, and comes back when its lease ends: %s", leased.id, problem)

    # ---- run and report

    async def _work(self, running: Running) -> None:
        try:
            outcome = await self._result(running)
        except asyncio.CancelledError:
            return  # given up, and reported by who gave it up
        try:
            await self._report(running, outcome)
        except Exception:
            logger.exception("task %s: could not be reported", running.leased.id)

    async def _result(self, running: Running) -> Call[Ended]:
        try:
            return running.result(await self._functions[running.leased.topic](running))
        except asyncio.CancelledError:
            raise
        except BaseException as problem:  # SystemExit too: the function failed, the worker goes on
            return running.failure(problem)

    async def _report(self, running: Running, outcome: Call[Ended]) -> None:
        """Until the server has answered, or the lease is over: by then somebody else has the task."""
        await self._tell(running)
        while not running.lost:
            try:
                await self._client.do(outcome)
                return
            except LeaseLost:
                running.cancel(lost=True)
                logger.warning("task %s: its lease was lost; what it did is not reported", running.leased.id)
            except Refused as problem:
                logger.warning("task %s: its outcome was refused: %s", running.leased.id, problem)
                outcome = running.refused(problem)
            except Unreachable as problem:
                if running.seconds_left <= 0:
                    logger.warning("task %s: its outcome could not be reported: %s", running.leased.id, problem)
                    return

    # ---- renewals and words

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            await asyncio.gather(*(self._renew_and_tell(running) for running in list(self._running.values())))

    async def _renew_and_tell(self, running: Running) -> None:
        asked_at = time.monotonic()
        if asked_at >= running.renew_at and not running.lost:
            try:
                await self._client.do(running.renewal(), tries=1)
            except LeaseLost:
                running.cancel(lost=True)
            except BatonError as problem:
                logger.warning("task %s: not renewed: %s", running.leased.id, problem)
                if running.seconds_left <= 0:
                    running.cancel(lost=True)
            else:
                running.renewed(asked_at)
        await self._tell(running)

    async def _tell(self, running: Running) -> None:
        words = None if running.lost else running.words()
        if words is None:
            return
        try:
            await self._client.do(words, tries=2)
        except BatonError as problem:
            logger.warning("task %s: what it said was not kept: %s", running.leased.id, problem)

    # ---- the end

    async def _drain(self) -> None:
        await self._wait(self._grace_seconds)
        for running in list(self._running.values()):
            running.cancel(lost=False)
        self._hurry.clear()
        await self._wait(STOP_SECONDS)
        for task, running in list(self._running.items()):  # it does not listen
            running.cancel(lost=True)
            task.cancel()
            try:
                await self._client.do(running.stopped(), tries=2)
            except BatonError as problem:
                logger.warning("task %s: could not be given up, and comes back when its lease ends: %s", running.leased.id, problem)

    async def _wait(self, seconds: float) -> None:
        """Until nothing runs, at most so long, unless somebody is in a hurry."""
        until = time.monotonic() + seconds
        while self._running and not self._hurry.is_set() and (left := until - time.monotonic()) > 0:
            await self._first_of(self._hurry, timeout=left)

    async def _first_of(self, event: asyncio.Event, *, timeout: float | None) -> None:
        """Until the event is set or a task has ended."""
        asked = asyncio.create_task(event.wait())
        await asyncio.wait({asked, *self._running}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()


async def _until(event: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return
