"""Who waits for external tasks: one thread of a process looks for all of them together, by one short query.

A waiter holds no thread and no database connection (webapp/parking.py). Where the look finds something for its topics it is
called: its request is run again, and acquires for itself, if its client is still there. As many are called as there are
tasks, those that came first before the others; who was too late waits on. A look comes soon after this process has
changed something, else at a growing interval, for what other processes do. There is room for so many, in all and for one person;
who finds none is answered at once.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakSet

from flask import Flask, Response, current_app, request
from prometheus_client import Gauge
from psycopg_pool import PoolTimeout
from sqlalchemy.exc import SQLAlchemyError

from engine.config import Settings
from engine.queries.external_tasks import Branch, free_tasks
from webapp.db import db
from webapp.engine_rest.blueprint import blueprint

log = logging.getLogger("baton.polls")

LONGEST_SECONDS = 50.0  # then it is answered with nothing, and asks again: proxies give up after a minute
SOONEST_SECONDS, LATEST_SECONDS = 0.05, 0.5  # between two looks
GROWTH = 1.5  # of the pause after a look in vain
UNREACHABLE_SECONDS = 2.0  # until the next look, where one failed
PICKY_SECONDS = 1.0  # who wants only some tasks of a topic is called so often at most while there are any

WAITING = Gauge("baton_web_long_polls", "Programs that wait for external tasks.")
Look = Callable[[Collection[Branch], int], dict[Branch, int]]


@dataclass(eq=False)
class Waiter:
    """One request that waits. `topics`: (tenant, topic) -> whether it wants only some of that topic. Times are monotonic.

    Its `polls` guards everything here that changes.
    """

    polls: Polls
    asked: Any
    person: tuple[str, str]
    topics: dict[Branch, bool]
    ends: float
    over: bool = False
    resume: Callable[[], None] | None = None
    called_at: float = field(default=float("-inf"))

    def start(self, resume: Callable[[], None]) -> None:
        self.polls.start(self, resume)

    def give_up(self) -> bool:
        return self.polls.give_up(self)

    def end(self) -> None:
        self.polls.leave(self)


_all_polls: WeakSet[Polls] = WeakSet()


def close_polls() -> None:
    """Answer everybody who waits at this process: it stops."""
    for each in list(_all_polls):
        each.close()


class Polls:
    """Those who wait at one process, and the thread that looks for them. It lives while somebody waits."""

    def __init__(self, look: Look, *, cap: int, per_person: int, gauge: Gauge = WAITING) -> None:
        self._look, self.cap, self.per_person, self._gauge = look, cap, per_person, gauge
        self._lock = threading.Lock()
        self._sign = threading.Event()
        self._waiters: dict[Waiter, None] = {}  # in the order in which they came
        self._thread: threading.Thread | None = None
        self._closed = False
        _all_polls.add(self)

    def __len__(self) -> int:
        with self._lock:
            return len(self._waiters)

    def join(self, waiter: Waiter) -> bool:
        """Whether there was room, in all and for this person. It is looked for once it is started."""
        with self._lock:
            own = sum(1 for each in self._waiters if each.person == waiter.person)
            if self._closed or len(self._waiters) >= self.cap or own >= self.per_person:
                return False
            self._waiters[waiter] = None
            self._gauge.set(len(self._waiters))
            if self._thread is None:
                self._thread = threading.Thread(target=self._follow, name="baton-polls", daemon=True)
                self._thread.start()
            return True

    def start(self, waiter: Waiter, resume: Callable[[], None]) -> None:
        with self._lock:
            waiter.resume = resume
            if self._closed:
                self._call(waiter, over=True)
        self._sign.set()

    def give_up(self, waiter: Waiter) -> bool:
        """Its client has gone. False: it was called a moment ago, and its request will see for itself."""
        with self._lock:
            if waiter.resume is None:
                return False
            waiter.resume = None
            self._forget(waiter)
            return True

    def leave(self, waiter: Waiter) -> None:
        with self._lock:
            self._forget(waiter)

    def _forget(self, waiter: Waiter) -> None:
        self._waiters.pop(waiter, None)
        self._gauge.set(len(self._waiters))

    def wake(self) -> None:
        """Something may have become free."""
        self._sign.set()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            for waiter in self._waiters:
                self._call(waiter, over=True)
        self._sign.set()

    # ---- the thread

    def _follow(self) -> None:
        pause = SOONEST_SECONDS
        while self._somebody_waits():
            began = time.monotonic()
            try:
                called = self.call_those_who_may_go()
                pause = SOONEST_SECONDS if called else min(pause * GROWTH, LATEST_SECONDS)
            except (SQLAlchemyError, PoolTimeout) as problem:
                log.warning("look_failed waiting=%d error=%s", len(self), type(problem).__name__)
                pause = UNREACHABLE_SECONDS
            if self._sign.wait(max(0.0, min(pause, self._first_end() - time.monotonic()))):
                self._sign.clear()
                pause = min(pause, SOONEST_SECONDS * 2)
            time.sleep(max(0.0, SOONEST_SECONDS - (time.monotonic() - began)))

    def _somebody_waits(self) -> bool:
        with self._lock:
            if self._waiters:
                return True
            self._thread = None
            return False

    def _first_end(self) -> float:
        with self._lock:
            return min((each.ends for each in self._waiters if each.resume is not None), default=float("inf"))

    def call_those_who_may_go(self) -> int:
        now = time.monotonic()
        with self._lock:
            for each in self._waiters:
                if now >= each.ends:
                    self._call(each, over=True)
            waiting = [each for each in self._waiters if each.resume is not None]
        topics = {topic for each in waiting for topic in each.topics}
        free = self._look(topics, len(waiting)) if topics else {}
        with self._lock:
            chosen = _who_may_go(waiting, free, now=now)
            return sum(self._call(each) for each in chosen)

    def _call(self, waiter: Waiter, *, over: bool = False) -> bool:
        """Under the lock: run its request again, unless that was done or its client has gone."""
        resume, waiter.resume = waiter.resume, None
        waiter.over = waiter.over or over
        if resume is None:
            return False
        waiter.called_at = time.monotonic()
        resume()
        return True


def _who_may_go(waiting: Iterable[Waiter], free: dict[Branch, int], *, now: float) -> list[Waiter]:
    """As many as there are tasks, in their order. Who wants only some of a topic may find nothing, so it takes nobody's place."""
    left, called = dict(free), []
    for waiter in waiting:
        topic = next((each for each, picky in waiter.topics.items() if left.get(each, 0) > 0 and not picky), None)
        if topic is not None:
            left[topic] -= 1
            called.append(waiter)
        elif any(free.get(each) and picky for each, picky in waiter.topics.items()) and now >= waiter.called_at + PICKY_SECONDS:
            called.append(waiter)
    return called


# ---- of this process


def polls() -> Polls:
    """Made when the first waits (after gunicorn forked)."""
    found = current_app.extensions.get("baton_polls")
    if found is None:
        settings: Settings = current_app.config["BATON"]
        app: Flask = current_app._get_current_object()  # type: ignore[attr-defined]  # a LocalProxy
        made = Polls(_looking(app), cap=settings.long_polls, per_person=max(1, settings.long_polls // 2))
        found = current_app.extensions.setdefault("baton_polls", made)
    assert isinstance(found, Polls), f"expected Polls, found {type(found).__name__}"
    return found


def _looking(app: Flask) -> Look:
    def look(topics: Collection[Branch], limit: int) -> dict[Branch, int]:
        with app.app_context(), db.engine.connect() as conn:  # one of the pool's, for the time of the look
            return free_tasks(conn, topics, limit=limit)

    return look


@blueprint.after_app_request
def wake_who_waits(response: Response) -> Response:
    """What this process changed may be work for somebody."""
    if request.method not in ("GET", "HEAD", "OPTIONS") and response.status_code < 400:
        for name in ("baton_polls", "baton_event_polls"):
            if (waiting := current_app.extensions.get(name)) is not None:
                waiting.wake()
    return response
