"""An instance that is being compensated says so, on its page and in its history."""

from __future__ import annotations

import re
from uuid import UUID

import psycopg

from engine.commands.complete_task import complete_task
from engine.commands.outcome import TaskCompleted
from tests.web.conftest import Browser
from tests.web.operations import ADA, Client, deployed, one, started


def done(conn: psycopg.Connection, element: str, **variables: object) -> None:
    task = one(conn, "SELECT id FROM user_task WHERE element_id = %s AND status = 'claimed'", element)
    assert isinstance(complete_task(conn, task, actor=ADA, variables=variables, request_id=None), TaskCompleted)


def part(olga: Browser, instance: UUID, name: str) -> str:
    html = olga.get(f"/operations/instances/{instance}/part?part={name}").text
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", html)).strip()


def test_what_is_being_compensated_is_named_beside_the_task_that_does_it(client_for: Client, committed_db: psycopg.Connection) -> None:
    deployed(committed_db, "compensation")
    here = started(committed_db, "compensation", guests=["Bo"])
    olga = client_for("olga")
    for element in ("hotel", "seat"):
        done(committed_db, element)
    done(committed_db, "agree", answer="no")

    waiting = part(olga, here, "why")
    assert "Compensation of Reserve a seat It is being compensated" in waiting
    assert "Reserve seats It is being compensated" in waiting
    assert "Free the seat of Bo Ada" in waiting and "${" not in waiting
    assert "this should not be" not in waiting
    task = one(committed_db, "SELECT id FROM user_task WHERE element_id = 'no_seat'")
    page = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", client_for("ada").get(f"/tasks/{task}").text))
    assert "Now: Free the seat of Bo" in page and "The process gave this to you" in page and "engine" not in page

    done(committed_db, "no_seat")
    page = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", olga.get(f"/operations/instances/{here}").text))
    for sentence in (
        "Book the trip was cancelled: what it had completed is compensated",
        "Reserve seats is being compensated",
        "Reserve a seat is compensated",
        "completed Free the seat of Bo",
        "All of them asked to compensate 1 completed activity",
    ):
        assert sentence in page, sentence
    assert olga.get(f"/operations/instances/{here}").status_code == 200


def test_a_completed_task_shows_what_was_known_then_and_not_what_the_same_step_set_further_on(
    client_for: Client, committed_db: psycopg.Connection
) -> None:
    deployed(committed_db, "compensation")
    started(committed_db, "compensation", guests=["Eve", "Max"])
    for element in ("hotel", "seat", "seat"):
        done(committed_db, element)
    done(committed_db, "agree", answer="no")
    done(committed_db, "no_seat", told="by phone")
    task = one(committed_db, "SELECT id FROM user_task WHERE element_id = 'no_seat' AND status = 'completed'")
    page = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", client_for("ada").get(f"/tasks/{task}").text))
    assert "Free the seat of Max" in page and "guest Max" in page and "by phone" in page
