"""Twenty presses at once over HTTP: one wins, nineteen hear the same (S20)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import psycopg
import pytest
from flask import Flask

from engine.commands.tasks import claim
from engine.config import Settings
from tests.web.operations import ADA, api_key, deployed, one, started

PRESSES = 20


@pytest.fixture
def settings(database_url: str) -> Settings:
    """A connection for each press, so that they meet in the database and not in the pool."""
    return Settings(database_url=database_url, secret_key="s" * 40, pool_size=PRESSES)


def test_S20_twenty_completes_of_one_task_have_one_winner_and_one_successor(
    app: Flask, people: Any, committed_db: psycopg.Connection
) -> None:
    deployed(committed_db, "a_task_a_delivery_a_task")
    here = started(committed_db, "relay", business_key="INV-1")
    task = one(committed_db, "SELECT id FROM user_task")
    claim(committed_db, task, actor=ADA, request_id=None)
    headers = {"Authorization": f"Bearer {api_key(committed_db, 'ada')}"}
    barrier = Barrier(PRESSES)

    def press(place: int) -> Any:
        client = app.test_client()
        barrier.wait()
        return client.post(f"/api/v1/tasks/{task}/complete", headers=headers, json={"variables": {"typed": place}})

    with ThreadPoolExecutor(PRESSES) as pool:
        answers = list(pool.map(press, range(PRESSES)))

    assert sorted(answer.status_code for answer in answers) == [200] + [409] * (PRESSES - 1)
    lost = [answer.json for answer in answers if answer.status_code == 409]
    assert {problem["reason"] for problem in lost} == {"already_completed"}
    assert {problem["by"] for problem in lost} == {"ada"}
    assert len({problem["at"] for problem in lost}) == 1
    winner = next(place for place, answer in enumerate(answers) if answer.status_code == 200)
    assert one(committed_db, "SELECT value FROM variable WHERE name = 'typed'") == winner
    assert one(committed_db, "SELECT count(*) FROM user_task WHERE status = 'open'") == 1
    assert one(committed_db, "SELECT count(*) FROM delivery") == 1
    assert one(committed_db, "SELECT count(*) FROM history WHERE kind = 'task_completed' AND instance_id = %s", here) == 1


def test_a_repeated_start_with_one_idempotency_key_makes_one_instance(app: Flask, people: Any, committed_db: psycopg.Connection) -> None:
    deployed(committed_db, "a_task_a_delivery_a_task")
    headers = {"Authorization": f"Bearer {api_key(committed_db, 'ada')}", "Idempotency-Key": "order 4711"}
    barrier = Barrier(8)

    def press(_: int) -> Any:
        client = app.test_client()
        barrier.wait()
        return client.post("/api/v1/process-definitions/relay/start", headers=headers, json={"business_key": "ORD-4711"})

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(press, range(8)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json["id"] for answer in answers}) == 1
    assert one(committed_db, "SELECT count(*) FROM process_instance") == 1
