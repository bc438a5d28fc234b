"""What a task's own status keeps from happening, whoever asks: an operator may everything but that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import psycopg
import pytest

from engine.commands.outcome import Refusal, Rejected
from engine.commands.tasks import assign, claim, take_next, unclaim
from tests import rows
from tests.cast import ADA, OP, engage

Connection = psycopg.Connection[Any]
Make = Callable[[Connection], UUID]


def unclaimed(conn: Connection) -> UUID:
    return rows.task(conn)


def over(status: str) -> Make:
    def make(conn: Connection) -> UUID:
        task = rows.task(conn, status="claimed", assignee="ada")
        conn.execute("UPDATE user_task SET status = %s, ended_at = baton_clock(), ended_by = 'ada' WHERE id = %s", (status, task))
        return task

    return make


PRESSES = {
    "claim": lambda c, task: claim(c, task, actor=OP, request_id=None),
    "unclaim": lambda c, task: unclaim(c, task, actor=OP, request_id=None),
    "assign": lambda c, task: assign(c, task, actor=OP, assignee="bo", request_id=None),
}


@pytest.mark.parametrize(
    ("press", "make", "refusal"),
    [
        ("unclaim", unclaimed, Refusal.NOT_CLAIMED),
        *((press, over("completed"), Refusal.ALREADY_COMPLETED) for press in PRESSES),
        *((press, over("cancelled"), Refusal.ALREADY_CANCELLED) for press in PRESSES),
    ],
)
def test_what_a_status_does_not_allow_changes_nothing_for_an_operator_either(
    committed_db: Connection, press: str, make: Make, refusal: Refusal
) -> None:
    engage(committed_db)
    task = make(committed_db)
    before = rows.everything(committed_db)
    refused = PRESSES[press](committed_db, task)
    assert isinstance(refused, Rejected)
    assert refused.refusal is refusal
    assert rows.everything(committed_db) == before


def test_take_next_passes_by_what_somebody_has(committed_db: Connection) -> None:
    engage(committed_db)
    had = rows.task(committed_db, priority=90, status="claimed", assignee="bo")
    free = rows.task(committed_db, priority=10)
    taken = take_next(committed_db, actor=ADA, request_id=None)
    assert not isinstance(taken, Rejected)
    assert taken.task_id == free
    assert rows.columns(committed_db, "user_task", had, "assignee") == ("bo",)
