"""From where programs outside ask for work, kept for the page of workers: two addresses of one name may be two programs."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict

from flask import current_app, request

from engine.commands.may import may
from engine.commands.workers import see_external_worker
from webapp.auth.identity import current_actor
from webapp.db import command_connection

AGAIN_SECONDS = 60.0  # what was seen so lately is not written again by this process
REMEMBERED = 10_000


class Seen:
    """Who was written lately, by this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._at: OrderedDict[tuple[str, str, str], float] = OrderedDict()

    def is_news(self, who: tuple[str, str, str]) -> bool:
        now = time.monotonic()
        with self._lock:
            if now - self._at.get(who, float("-inf")) < AGAIN_SECONDS:
                return False
            self._at[who] = now
            self._at.move_to_end(who)
            while len(self._at) > REMEMBERED:
                self._at.popitem(last=False)
            return True


def note_worker(worker_id: str) -> None:
    """Before work is acquired, so that a database that is away fails the request while nothing is leased."""
    actor, address = current_actor(), request.remote_addr or "unknown"
    seen: Seen = current_app.extensions.setdefault("baton_outside", Seen())
    if may(actor, "work", "external_task") and seen.is_news((actor.tenant_id, worker_id, address)):
        see_external_worker(command_connection(), worker_id, tenant_id=actor.tenant_id, address=address)
