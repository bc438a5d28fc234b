"""The database's connection is lost in the middle of a request: 503, which may be repeated, and the next press works."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import psycopg
import pytest

from tests import rows
from tests.web.conftest import Browser


@pytest.fixture
def task(committed_db: psycopg.Connection, people: dict[str, UUID]) -> UUID:
    return rows.task(committed_db, groups=("clerks",))


def _losing(admin: psycopg.Connection, function: Callable[..., Any], pid_of: Callable[[Any], int]) -> Callable[..., Any]:
    """`function`, whose first argument is a connection that the server has just ended; once."""
    lost: list[int] = []

    def lose(conn: Any, *args: Any, **kwargs: Any) -> Any:
        if not lost:
            lost.append(pid_of(conn))
            admin.execute("SELECT pg_terminate_backend(%s, 5000)", (lost[0],))
        return function(conn, *args, **kwargs)

    return lose


def _pid(conn: Any) -> int:
    return int(conn.connection.driver_connection.info.backend_pid)


def test_F42_a_page_whose_connection_is_lost_while_it_is_read_is_unavailable_and_not_broken(committed_db, client_for, task, monkeypatch):
    from webapp.tasks import page

    ada: Browser = client_for("ada")
    monkeypatch.setattr(page, "task_detail", _losing(committed_db, page.task_detail, _pid))
    assert ada.get(f"/tasks/{task}").status_code == 503
    assert ada.get(f"/tasks/{task}").status_code == 200


def test_F42_a_press_whose_connection_is_lost_is_unavailable_and_the_same_press_again_is_done(committed_db, client_for, task, monkeypatch):
    from webapp.tasks import views

    ada: Browser = client_for("ada")
    monkeypatch.setattr(views, "claim_task", _losing(committed_db, views.claim_task, lambda conn: conn.info.backend_pid))
    assert ada.post(f"/tasks/{task}/claim", {"request_id": "one"}).status_code == 503
    assert ada.post(f"/tasks/{task}/claim", {"request_id": "one"}).status_code == 303
    assert committed_db.execute("SELECT assignee FROM user_task").fetchone() == ("ada",)


def test_F42_what_was_done_is_answered_though_the_session_cannot_be_saved(committed_db, client_for, task, monkeypatch):
    from webapp.auth import store

    ada: Browser = client_for("ada")
    assert ada.post(f"/tasks/{task}/claim", {"request_id": "one"}).status_code == 303
    monkeypatch.setattr(store, "save_session", _losing(committed_db, store.save_session, _pid))
    assert ada.post(f"/tasks/{task}/unclaim", {"request_id": "two"}).status_code == 303  # its notice is lost, and nothing else
    assert committed_db.execute("SELECT status FROM user_task").fetchone() == ("open",)
    assert ada.get(f"/tasks/{task}").status_code == 200


def test_F42_a_request_that_loses_its_connection_while_its_session_is_read_is_unavailable(committed_db, client_for, task, monkeypatch):
    from webapp.auth import store

    ada: Browser = client_for("ada")
    committed_db.execute("UPDATE web_session SET last_seen_at = baton_clock() - interval '1 hour'")
    monkeypatch.setattr(store, "touch_session", _losing(committed_db, store.touch_session, _pid))
    assert ada.get(f"/tasks/{task}").status_code == 503
    assert ada.get(f"/tasks/{task}").status_code == 200
