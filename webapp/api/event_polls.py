"""Who waits for process events: one look of a process, at the newest event that can be read, calls all who have not come to it."""

from __future__ import annotations

import time
from typing import Any

from flask import Flask, current_app
from prometheus_client import Gauge

from engine.config import Settings
from engine.queries.events import Place, newest
from webapp.db import db
from webapp.engine_rest.waiting import Polls, Waiter

WAITING = Gauge("baton_web_event_polls", "Programs that wait for process events.")


class EventPolls(Polls):
    """As Polls, but for events: whoever is behind the newest one is called, and judges for itself whether it was meant."""

    def __init__(self, app: Flask, *, cap: int, per_person: int) -> None:
        super().__init__(lambda topics, limit: {}, cap=cap, per_person=per_person, gauge=WAITING)
        self._app = app

    def call_those_who_may_go(self) -> int:
        with self._app.app_context(), db.engine.connect() as conn:  # one of the pool's, for the time of the look
            reached = newest(conn)
        with self._lock:
            called = [self._call(each, over=over) for each, over in self._due(reached)]
        return sum(called)

    def _due(self, reached: Place) -> list[tuple[Waiter, bool]]:
        now = time.monotonic()
        found = [(each, now >= each.ends, _place_of(each)) for each in self._waiters]
        return [(each, over) for each, over, place in found if over or place is None or place < reached]


def _place_of(waiter: Waiter) -> Place | None:
    asked: Any = waiter.asked
    place: Place | None = asked.place
    return place


def event_polls() -> EventPolls:
    """Made when the first waits (after gunicorn forked)."""
    found = current_app.extensions.get("baton_event_polls")
    if found is None:
        settings: Settings = current_app.config["BATON"]
        app: Flask = current_app._get_current_object()  # type: ignore[attr-defined]  # a LocalProxy
        made = EventPolls(app, cap=settings.long_polls, per_person=max(1, settings.long_polls // 2))
        found = current_app.extensions.setdefault("baton_event_polls", made)
    assert isinstance(found, EventPolls), f"expected EventPolls, found {type(found).__name__}"
    return found
