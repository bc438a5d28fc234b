"""Live pages: one tail of the history per process, one hint stream per browser.

A stream carries hints ("inbox changed"), never HTML and never data; the page fetches its fragments again by ordinary
GETs with an ETag. The tail re-reads the last seconds each time and drops what it knew, so an event that commits late is
not lost (a tail by id alone loses it). No stream holds a database connection. Streams are capped below the number of
threads; who gets none (503) polls.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Any
from weakref import WeakSet

import psycopg
from flask import Blueprint, Response, abort, current_app, request

from engine.commands.outcome import Actor
from engine.config import Settings
from engine.db.session import connect
from engine.queries.live import Change, changes_since_seconds
from webapp.auth.identity import current_actor, is_operator
from webapp.db import db

log = logging.getLogger("baton.live")
blueprint = Blueprint("live", __name__)

POLL_SECONDS = 1.0
OVERLAP_SECONDS = 20  # how far back each look reaches; a transaction that is open longer loses its hint, the next poll shows it
STREAM_SECONDS = 300  # then the browser opens a new one; a lost session ends here at the latest
HEARTBEAT_SECONDS = 15
REMEMBERED = 20_000  # events of the overlap that the tail recognises
TOPICS = ("inbox", "task", "instance", "definition", "operations")
SPARE_THREADS = 8  # threads that streams never take
PER_PERSON = 8  # streams that one person holds in this process at most: further windows poll, and other people find room


@dataclass(eq=False)
class Subscriber:
    """One open stream: who reads it, what it wants to hear of, and the hints that wait to be sent.

    `since`: the database's time when the page was made; what happened between that and the stream's opening is told, too.
    """

    actor: Actor
    topics: frozenset[str]
    since: float | None = None
    hints: queue.Queue[str | None] = field(default_factory=lambda: queue.Queue(64))

    def tell(self, topic: str | None) -> None:
        """Drop what a slow reader does not take: a topic means the same once or twice. None ends the stream."""
        try:
            self.hints.put_nowait(topic)
        except queue.Full:
            log.debug("stream_full actor=%s", self.actor.username)


_hubs: WeakSet[Hub] = WeakSet()


def close_streams() -> None:
    """End all streams of this process."""
    for each in list(_hubs):
        each.close()


class Hub:
    """The streams of one process and the one thread that feeds them. The thread lives while a stream does."""

    def __init__(self, database_url: str, *, cap: int) -> None:
        self.database_url = database_url
        self.cap = cap
        self._lock = threading.Lock()
        self._subscribers: set[Subscriber] = set()
        self._tail: threading.Thread | None = None
        self._has_read = threading.Event()
        self._idle = threading.Event()
        self._known: OrderedDict[int, Change] = OrderedDict()
        _hubs.add(self)

    def join(self, subscriber: Subscriber) -> bool:
        """Whether there was room, in all and for this person."""
        actor = subscriber.actor
        with self._lock:
            own = sum(1 for each in self._subscribers if (each.actor.tenant_id, each.actor.username) == (actor.tenant_id, actor.username))
            if len(self._subscribers) >= self.cap or own >= PER_PERSON:
                return False
            self._subscribers.add(subscriber)
            if subscriber.since is not None:
                for change in self._known.values():
                    self._tell(subscriber, change, fresh=False)
            if self._tail is None:
                self._idle.clear()
                self._tail = threading.Thread(target=self._follow, name="baton-live-tail", daemon=True)
                self._tail.start()
            return True

    def close(self) -> None:
        """End every stream; the browsers open new ones, elsewhere if this process stops."""
        with self._lock:
            subscribers = list(self._subscribers)
        for subscriber in subscribers:
            subscriber.tell(None)

    def leave(self, subscriber: Subscriber) -> None:
        with self._lock:
            self._subscribers.discard(subscriber)

    @property
    def subscribers(self) -> frozenset[Subscriber]:
        with self._lock:
            return frozenset(self._subscribers)

    def wait_until_read(self, *, seconds: float) -> bool:
        """Whether the tail knows what happened before now: from then on every change is told."""
        return self._has_read.wait(seconds)

    def wait_until_idle(self, *, seconds: float) -> bool:
        """Whether the tail has ended, as it does once nobody listens."""
        return self._tail is None or self._idle.wait(seconds)

    def _follow(self) -> None:
        """Read the history until nobody listens. A lost connection is opened again; meanwhile pages poll."""
        for wait in chain((1, 2, 4), repeat(8)):
            try:
                with connect(self.database_url, application_name="baton-live") as conn:
                    if self._read_until_idle(conn):
                        return
            except psycopg.Error as error:
                log.warning("tail_lost error=%s retry_in=%ds", type(error).__name__, wait)
            if self._ends_when_idle():
                return
            time.sleep(wait)

    def _read_until_idle(self, conn: psycopg.Connection) -> bool:
        """The first look of all only learns what there was. After a lost connection the overlap tells what was missed."""
        while True:
            changes = changes_since_seconds(conn, OVERLAP_SECONDS)
            with self._lock:
                self._spread([change for change in changes if change.id not in self._known])
            self._has_read.set()
            if self._ends_when_idle():
                return True
            time.sleep(POLL_SECONDS)

    def _ends_when_idle(self) -> bool:
        with self._lock:
            if self._subscribers:
                return False
            self._tail = None
            self._known.clear()
            self._has_read.clear()
            self._idle.set()
            return True

    def _spread(self, changes: list[Change]) -> None:
        """Under the lock, so that whoever joins meanwhile hears of a change once or twice, but not never."""
        for change in changes:
            self._known[change.id] = change
            for subscriber in self._subscribers:
                self._tell(subscriber, change, fresh=self._has_read.is_set())
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)

    def _tell(self, subscriber: Subscriber, change: Change, *, fresh: bool) -> None:
        if fresh or (subscriber.since is not None and change.at >= subscriber.since):
            for topic in _topics_of(change, subscriber.actor) & subscriber.topics:
                subscriber.tell(topic)


def _topics_of(change: Change, actor: Actor) -> frozenset[str]:
    """What this change is called for this reader; nothing for whoever may not see the task (S61)."""
    if change.tenant_id != actor.tenant_id:
        return frozenset()
    topics: set[str] = set()
    sees = is_operator(actor) or actor.username in change.people or not actor.groups.isdisjoint(change.groups)
    if change.kind.startswith("task_") and sees:
        topics |= {"inbox", f"task:{change.item_id}"}
    if sees or actor.username == change.started_by:
        topics |= {f"instance:{change.instance_id}", f"instance:{change.root_id}"}
    if is_operator(actor):
        topics |= {"operations", f"definition:{change.definition_id}"}
    return frozenset(topics)


def hub() -> Hub:
    """This process's hub, made at the first stream (after gunicorn forked)."""
    found = current_app.extensions.get("baton_live")
    if found is None:
        settings: Settings = current_app.config["BATON"]
        cap = max(settings.web_threads - SPARE_THREADS, settings.web_threads // 2, 1)
        found = current_app.extensions.setdefault("baton_live", Hub(settings.need_database(), cap=cap))
    assert isinstance(found, Hub), f"expected the hub, found {type(found).__name__}"
    return found


@blueprint.get("/live")
def stream() -> Any:
    """Server-sent events: `event: changed`, the topic as data."""
    subscriber = Subscriber(current_actor(), _asked_topics(), request.args.get("since", type=float))
    room = hub()
    if not room.join(subscriber):
        abort(503)
    db.session.remove()  # give the connection back: a stream holds none
    response = Response(_events(room, subscriber), mimetype="text/event-stream")
    response.headers["X-Accel-Buffering"] = "no"
    response.call_on_close(lambda: room.leave(subscriber))
    return response


def _asked_topics() -> frozenset[str]:
    asked = frozenset(topic for topic in request.args.get("topics", "").split(",") if topic)
    if not asked or len(asked) > 20 or any(topic.partition(":")[0] not in TOPICS for topic in asked):
        abort(400)
    return asked


def _events(room: Hub, subscriber: Subscriber) -> Iterator[str]:
    """Hints as they come, one line of comment in silence, so that a closed browser is noticed."""
    ends = time.monotonic() + STREAM_SECONDS
    try:
        yield "retry: 3000\n\n"
        while time.monotonic() < ends:
            try:
                heard = {subscriber.hints.get(timeout=HEARTBEAT_SECONDS)}
            except queue.Empty:
                yield ": still here\n\n"
                continue
            while not subscriber.hints.empty():
                heard.add(subscriber.hints.get_nowait())
            if None in heard:
                return
            for topic in sorted(topic for topic in heard if topic):
                yield f"event: changed\ndata: {topic}\n\n"
    finally:
        room.leave(subscriber)
