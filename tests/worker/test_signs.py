"""What becomes due by itself, to which nobody commits anything: a worker that has nothing to do comes for it at once all the same."""

from __future__ import annotations

import threading
from typing import Any

from engine.config import Settings
from tests import rows
from tests.worker.processes import eventually, row
from worker.acquirer import Acquirer, Lane
from worker.database import Database
from worker.renewals import Renewals
from worker.runner import Item, Runner


class OneSlot:
    """A slot that is always free, and keeps what it was given."""

    def __init__(self) -> None:
        self.begun: list[Any] = []

    def room(self) -> int:
        return 1

    def some_wait(self) -> bool:
        return False

    def take_back(self, *, waiting_for: float) -> None:
        return None

    def begin(self, item: Item) -> None:
        self.begun.append(item.row.item_id)


def test_what_became_due_between_a_look_and_the_question_what_is_due_next_is_looked_for_at_once(database_url, committed_db, monkeypatch):
    monkeypatch.setattr("worker.acquirer.seen", lambda conn: "as before")
    database, slot = Database(database_url, name="baton-test", stopping=threading.Event()), OneSlot()
    renewals = Renewals(database, lease_seconds=30)
    runner = Runner(Settings(database_url=database_url), database, renewals, {}, None, None)  # type: ignore[arg-type]
    lane = Lane("handlers", slot, (("service", "test.fails"),))  # type: ignore[arg-type]
    acquirer = Acquirer(database, renewals, runner, [lane], owner="w", lease_seconds=30, poll_seconds=60)
    acquirer._seen, acquirer._due_asked_at = "as before", float("inf")  # it has only just asked

    acquirer._look()
    job = rows.job(committed_db, topic="test.fails", overdue=-0.1)
    eventually(lambda: row(committed_db, "SELECT available_at < baton_now() FROM job WHERE id = %s", job)[0], "the job to become due")
    acquirer._due_asked_at = float("-inf")
    acquirer._look()
    assert slot.begun == [], "nothing was committed: it only asks, and learns that the job is due already"
    acquirer._look()
    assert slot.begun == [job]
    database.drop()
