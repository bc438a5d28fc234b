"""How often programs may ask: told with every answer, refused beyond it, counted by all processes together, and never a write a request."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from flask import Flask

from engine.commands.upkeep import Kept, upkeep
from engine.config import Settings
from tests.conftest import Clock
from tests.web.conftest import Browser
from tests.web.operations import api_key, one
from tests.web.test_api_contract import Program, problem
from webapp.app import create_app
from webapp.db import db as flask_db

LIMIT = 5
COUNTED = "SELECT coalesce(sum(requests), 0)::int FROM request_count WHERE who LIKE %s"


@pytest.fixture
def replica(settings: Settings, people: Any, clock: Clock) -> Iterator[Callable[..., Flask]]:
    """Makes web processes, each with counts of its own; `every`: after how many seconds it adds them to those of the others."""
    made = []

    def make(*, every: float = 0.0) -> Flask:
        app = create_app(replace(settings, api_limit=LIMIT, api_guest_limit=2))
        app.extensions["baton_counts"].every = every
        made.append(app)
        return app

    yield make
    for app in made:
        with app.app_context():
            for engine in flask_db.engines.values():
                engine.dispose()


@pytest.fixture
def ada(committed_db: psycopg.Connection, people: Any) -> str:
    return api_key(committed_db, "ada")


def test_each_answer_says_how_many_requests_are_left_and_the_window_that_ends_lets_in_again(
    replica: Callable[..., Flask], ada: str, clock: Clock
) -> None:
    program = Program(replica().test_client(), ada)
    left = []
    for _ in range(LIMIT):
        answer = program.get("/tasks")
        assert answer.status_code == 200
        assert answer.headers["RateLimit-Policy"] == f'"minute";q={LIMIT};w=60'
        left.append(int(re.fullmatch(r'"minute";r=(\d+);t=\d+', answer.headers["RateLimit"])[1]))  # type: ignore[index]  # it matches
    assert left == [4, 3, 2, 1, 0]
    refused = program.get("/tasks")
    assert "5 requests a minute" in problem(refused, 429, "too_many_requests")["detail"]
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    clock.advance(seconds=60)
    assert program.get("/tasks").status_code == 200


def test_two_processes_count_together(replica: Callable[..., Flask], ada: str) -> None:
    programs = [Program(replica().test_client(), ada) for _ in range(2)]
    statuses = [programs[number % 2].get("/tasks").status_code for number in range(8)]
    assert statuses[:LIMIT] == [200] * LIMIT
    assert statuses[-2:] == [429, 429]


def test_a_request_costs_no_write_what_was_counted_is_added_once_in_a_while(
    replica: Callable[..., Flask], ada: str, committed_db: psycopg.Connection
) -> None:
    app = replica(every=3600)
    program = Program(app.test_client(), ada)
    for _ in range(4):
        assert program.get("/tasks").status_code == 200
    assert one(committed_db, COUNTED, "key %") == 0
    app.extensions["baton_counts"].every = 0.0
    program.get("/tasks")
    assert one(committed_db, COUNTED, "key %") == 4


def test_one_who_asks_too_often_keeps_nobody_else_out(replica: Callable[..., Flask], ada: str, committed_db: psycopg.Connection) -> None:
    app = replica()
    greedy, other = Program(app.test_client(), ada), Program(app.test_client(), api_key(committed_db, "ada"))
    while greedy.get("/tasks").status_code == 200:
        pass
    assert other.get("/tasks").status_code == 200
    browser = Browser(app.test_client())
    assert browser.sign_in("ada").status_code == 303
    for _ in range(LIMIT + 3):
        assert browser.get("/inbox").status_code == 200, "pages are not counted"
    assert browser.get("/api/v1/tasks").status_code == 200


def test_guests_are_counted_by_their_address(replica: Callable[..., Flask], ada: str, committed_db: psycopg.Connection) -> None:
    app = replica()
    guess = [app.test_client().get("/api/v1/tasks", headers={"Authorization": f"Bearer wrong{number}"}) for number in range(3)]
    assert [answer.status_code for answer in guess] == [401, 401, 429]
    elsewhere = app.test_client().get("/api/v1/tasks", environ_base={"REMOTE_ADDR": "203.0.113.9"})
    assert elsewhere.status_code == 401
    assert Program(app.test_client(), ada).get("/tasks").status_code == 200
    tasks = app.test_client().get("/engine-rest/task")
    assert (tasks.status_code, tasks.json["type"]) == (429, "RestException")


def test_what_is_kept_holds_no_key_and_goes_with_its_window(
    replica: Callable[..., Flask], ada: str, committed_db: psycopg.Connection, clock: Clock
) -> None:
    program = Program(replica().test_client(), ada)
    program.get("/tasks")
    program.get("/tasks")
    [(who,)] = committed_db.execute("SELECT who FROM request_count").fetchall()
    assert ada not in who
    kept = Kept(request_seconds=86_400, job_branches=[])
    assert upkeep(committed_db, kept)["request_counts"] == 0
    clock.advance(seconds=300)
    assert upkeep(committed_db, kept)["request_counts"] == 1


def test_counts_that_could_not_be_added_are_added_later(replica: Callable[..., Flask], ada: str, committed_db: psycopg.Connection) -> None:
    app = replica()
    program = Program(app.test_client(), ada)
    program.get("/tasks")
    committed_db.execute("ALTER TABLE request_count RENAME TO away")
    assert program.get("/tasks").status_code == 500
    committed_db.execute("ALTER TABLE away RENAME TO request_count")
    program.get("/tasks")
    assert one(committed_db, COUNTED, "key %") == 1


def test_no_limit_is_told_where_there_is_none(settings: Settings, people: Any, ada: str) -> None:
    app = create_app(replace(settings, api_limit=0))
    answer = Program(app.test_client(), ada).get("/tasks")
    assert answer.status_code == 200
    assert "RateLimit" not in answer.headers
